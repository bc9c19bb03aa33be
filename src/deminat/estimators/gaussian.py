"""Gaussian and Gaussian copula: the closed form from covariances."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..data.sample import Sample, Schema, as_sample
from ..data.transforms import RankToNormal, Standardize, Transform
from ..results import Caution, MIResult
from ..runtime.progress import Progress
from .base import Array, Sides, cross_entropy_of, flat, requires_y
from .scores import result_from_pointwise

__all__ = ["Gaussian"]

_BIAS = 0.02  # nats of expected overestimate that are worth a word
_SKEWED = 2.0  # that of an exponential
_CERTAIN = 1 - 1e-12  # a canonical correlation that is 1 but for rounding


@dataclass(eq=False, repr=False)
class Gaussian(BaseEstimator):  # type: ignore[misc]
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
        x, y = self._mapped(sample)
        self.means_ = x.mean(axis=0), y.mean(axis=0)
        x, y = x - self.means_[0], y - self.means_[1]
        x_white, y_white = _whitener(x), _whitener(y)
        u, rho, vt = np.linalg.svd(x_white.T @ (x.T @ y / len(x)) @ y_white, full_matrices=False)
        self.directions_ = x_white @ u, y_white @ vt.T
        self.correlations_ = np.minimum(rho, _CERTAIN)
        return self

    def log_ratio(self, x: Any, y: Any) -> Array:
        """Return the log ratio (n,) of pairs, in nats, were they jointly normal."""
        check_is_fitted(self)
        return self.joint(as_sample(x, y, least=1))

    def joint(self, sample: Sample) -> Array:
        """Return the same of a checked sample."""
        x, y = self._mapped(sample)
        p = (x - self.means_[0]) @ self.directions_[0]
        q = (y - self.means_[1]) @ self.directions_[1]
        r = self.correlations_
        quadratic = (r * (p**2 + q**2) - 2 * p * q) * r / (1 - r**2)
        return np.asarray(-0.5 * (np.log1p(-(r**2)) + quadratic).sum(axis=1))

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mean log ratio of pairs under the fitted covariances."""
        sample = as_sample(x, y)
        return result_from_pointwise(self.log_ratio(sample.x, sample.y), self.name, sample.warnings)

    def score(self, x: Any, y: Any) -> float:
        """Return minus the cross-entropy of telling pairs from unpaired ones."""
        return -cross_entropy_of(self, x, y)

    def measure(
        self, sample: Sample, *, folds: int = 5, n_jobs: int = 1, progress: Progress | None = None
    ) -> MIResult:
        """Return the closed form from all pairs: the mean log ratio under their covariances.

        `folds`, `n_jobs` and `progress` do nothing here: nothing is trained.
        """
        fitted = clone(self).fit(sample.x, sample.y)
        pointwise = fitted.log_ratio(sample.x, sample.y)
        warnings = sample.warnings + fitted._cautions(sample)
        figures = {
            "canonical_correlations": fitted.correlations_.tolist(),
            "scaling": type(fitted.maps_[0]).__name__,
        }
        result = result_from_pointwise(pointwise, self.name, warnings, figures)
        return replace(result, model=(fitted,))

    def _mapped(self, sample: Sample) -> Sides:
        self.schema_.check(sample)
        return self.maps_[0](flat(sample.x)), self.maps_[1](flat(sample.y))

    def _cautions(self, sample: Sample) -> tuple[Caution, ...]:
        found = []
        skewness = max(float(np.abs((z**3).mean(axis=0)).max()) for z in self._mapped(sample))
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
                    "a linear combination of y is one of x exactly, so the MI may be infinite",
                    "Look for a column that stands on both sides",
                )
            )
        return tuple(found)

    def __sklearn_tags__(self) -> Tags:
        return requires_y(super().__sklearn_tags__())


def _whitener(a: Array) -> Array:
    """Return W (d, rank) with a @ W uncorrelated and of unit variance; a (n, d) is centred."""
    values, vectors = np.linalg.eigh(a.T @ a / len(a))
    keep = values > max(values.max(initial=0), 1e-300) * 1e-12  # collinear columns add nothing
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))
