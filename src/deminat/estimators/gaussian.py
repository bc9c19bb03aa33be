r"""Gaussian: the closed form from covariances, exact for jointly normal data.

$I = -\frac12\sum_i\log(1 - \rho_i^2)$ over the canonical correlations. With rank-to-normal
marginals it is the information of a Gaussian copula, whatever the marginals are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..critics.baselines.base import whitener
from ..data.sample import Sample, as_sample
from ..data.transforms import RankToNormal, Standardize, Transform
from ..records import Diagnostics
from ..results import Caution
from .base import Array, Estimate, UntrainedEstimator
from .scores import result_from_pointwise

__all__ = ["Gaussian"]

_BIAS = 0.02  # nats of expected overestimate that are worth a warning
_SKEWED = 2.0  # that of an exponential
_CERTAIN = 1 - 1e-12  # a canonical correlation that is 1 but for rounding
_COLLINEAR = 1e-12  # share of the largest variance below which a direction adds nothing


@dataclass(eq=False, repr=False)
class Gaussian(UntrainedEstimator):
    """Closed form from covariances; with `ranks` that of a Gaussian copula.

    Args:
        ranks: Make each column normal by its ranks first.

    After `fit`: `correlations_`, the canonical correlations.
    """

    ranks: bool = False

    @property
    def name(self) -> str:
        """`gaussian`, or `copula` with ranks."""
        return "copula" if self.ranks else "gaussian"

    def fit(self, x: Any, y: Any) -> Self:
        """Take the covariances of pairs x (n, ...), y (n, ...)."""
        transform: type[Transform] = RankToNormal if self.ranks else Standardize
        x, y = self.fit_maps(transform, as_sample(x, y))
        self.means_ = x.mean(axis=0), y.mean(axis=0)
        x, y = x - self.means_[0], y - self.means_[1]
        x_white, y_white = whitener(x, _COLLINEAR), whitener(y, _COLLINEAR)
        u, rho, vt = np.linalg.svd(x_white.T @ (x.T @ y / len(x)) @ y_white, full_matrices=False)
        self.directions_ = x_white @ u, y_white @ vt.T
        self.correlations_ = np.minimum(rho, _CERTAIN)
        return self

    def joint(self, sample: Sample) -> Array:
        """Return the log ratio (n,) of the pairs of a sample, in nats, were they jointly normal."""
        x, y = self.mapped(sample)
        p = (x - self.means_[0]) @ self.directions_[0]
        q = (y - self.means_[1]) @ self.directions_[1]
        r = self.correlations_
        quadratic = (r * (p**2 + q**2) - 2 * p * q) * r / (1 - r**2)
        return np.asarray(-0.5 * (np.log1p(-(r**2)) + quadratic).sum(axis=1))

    def estimate_sample(self, sample: Sample) -> Estimate:
        """Return the closed form from all pairs: the mean log ratio under their covariances."""
        fitted = self.fitted_to(sample)
        warnings = *sample.warnings, *fitted._warnings(sample)
        figures = Diagnostics(
            canonical_correlations=tuple(fitted.correlations_.tolist()),
            scaling=type(fitted.maps_[0]).__name__,
        )
        pointwise = fitted.log_ratio(sample.x, sample.y)
        result = result_from_pointwise(pointwise, self.name, warnings, figures)
        return Estimate(result, (fitted,))

    def _warnings(self, sample: Sample) -> Iterator[Caution]:
        skewness = max(float(np.abs((z**3).mean(axis=0)).max()) for z in self.mapped(sample))
        if skewness > _SKEWED:
            yield Caution(
                "skewed",
                f"a column has skewness {skewness:.1f}, and the closed form is for normal data",
                "Use method='copula', or 'demi'",
            )
        bias = len(self.directions_[0]) * len(self.directions_[1]) / (2 * len(sample))
        if bias > _BIAS:
            yield Caution(
                "overfit",
                f"covariances of so many columns overestimate by about {bias:.2f} nats",
                "Use method='demi', or fewer columns",
            )
        if self.correlations_.max(initial=0) >= _CERTAIN:
            yield Caution(
                "infinite",
                "a linear combination of y equals one of x exactly, so the MI may be infinite",
                "Look for a column that is on both sides",
            )
