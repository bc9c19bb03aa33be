r"""Gaussian: the closed form from covariances, exact for jointly normal data.

$I = -\frac12\sum_i\log(1 - \rho_i^2)$ over the canonical correlations. With rank-to-normal
marginals it is the information of a Gaussian copula, whatever the marginals are.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..data.sample import Sample, as_sample
from ..data.schema import Schema
from ..data.transforms import RankToNormal, Standardize, Transform
from ..records import Diagnostics
from ..results import Caution
from .base import Array, Estimate, UntrainedEstimator, flat
from .scores import result_from_pointwise

__all__ = ["Gaussian"]

_BIAS = 0.02  # nats of expected overestimate that are worth a warning
_SKEWED = 2.0  # that of an exponential
_CERTAIN = 1 - 1e-12  # a canonical correlation that is 1 but for rounding


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
        sample = as_sample(x, y)
        self.n_features_in_ = sample.x.shape[1]
        transform: type[Transform] = RankToNormal if self.ranks else Standardize
        self.maps_ = transform.fit(flat(sample.x)), transform.fit(flat(sample.y))
        self.schema_ = Schema.of(sample)
        x, y = self.mapped(sample)
        self.means_ = x.mean(axis=0), y.mean(axis=0)
        x, y = x - self.means_[0], y - self.means_[1]
        x_white, y_white = _whitener(x), _whitener(y)
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
        warnings = sample.warnings + fitted._warnings(sample)
        figures = Diagnostics(
            canonical_correlations=tuple(fitted.correlations_.tolist()),
            scaling=type(fitted.maps_[0]).__name__,
        )
        pointwise = fitted.log_ratio(sample.x, sample.y)
        result = result_from_pointwise(pointwise, self.name, warnings, figures)
        return Estimate(result, (fitted,))

    def _warnings(self, sample: Sample) -> tuple[Caution, ...]:
        found = []
        skewness = max(float(np.abs((z**3).mean(axis=0)).max()) for z in self.mapped(sample))
        if skewness > _SKEWED:
            found.append(
                Caution(
                    "skewed",
                    f"a column has skewness {skewness:.1f}, and the closed form is for normal data",
                    "Use method='copula', or 'demi'",
                )
            )
        bias = len(self.directions_[0]) * len(self.directions_[1]) / (2 * len(sample))
        if bias > _BIAS:
            found.append(
                Caution(
                    "overfit",
                    f"covariances of so many columns overestimate by about {bias:.2f} nats",
                    "Use method='demi', or fewer columns",
                )
            )
        if self.correlations_.max(initial=0) >= _CERTAIN:
            found.append(
                Caution(
                    "infinite",
                    "a linear combination of y equals one of x exactly, so the MI may be infinite",
                    "Look for a column that is on both sides",
                )
            )
        return tuple(found)


def _whitener(a: Array) -> Array:
    """Return W (d, rank) with a @ W uncorrelated and of unit variance; a (n, d) is centred."""
    values, vectors = np.linalg.eigh(a.T @ a / len(a))
    keep = values > max(values.max(initial=0), 1e-300) * 1e-12  # collinear columns add nothing
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))
