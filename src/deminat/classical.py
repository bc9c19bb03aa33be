r"""KSG and Gaussian: no training, the same protocol.

**KSG** (Kraskov, Stögbauer and Grassberger, 2004) compares, around each pair, the distance of
its k-th neighbour in the joint space (largest coordinate difference) with how many neighbours
that distance holds on each side:

$$ i(x, y) = \psi(k) + \psi(n) - \psi(n_x + 1) - \psi(n_y + 1). $$

Where the k-th neighbour is at distance 0 (discrete values) equal points are counted instead, the
pair itself among them: the plug-in ratio of a table. No noise is added, so a constant column has
information 0 with everything. Rounded values put several neighbours at the same distance, which
reads too high; then the result says so.

**Gaussian** is exact for jointly normal data: $I = -\frac12\sum_i\log(1 - \rho_i^2)$ over the
canonical correlations, and at least a start elsewhere. With rank-to-normal marginals it is the
information of a Gaussian copula, whatever the marginals are.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .fitting import requires_y, same_shape, some_partners
from .inputs import Sample, as_sample
from .objectives import DEMI
from .results import Caution, MIResult
from .scores import Scores, from_pointwise, held_out_loss
from .training import Progress
from .transforms import RankToNormal, Standardize, Transform

__all__ = ["KSG", "Gaussian"]

Array = NDArray[np.float64]

_TIED = 0.05  # share of pairs with tied neighbours that is worth a word
_BIAS = 0.02  # nats of expected overestimate that are worth a word
_CERTAIN = 1 - 1e-12  # a canonical correlation that is 1 but for rounding


@dataclass(eq=False, repr=False)
class KSG(BaseEstimator):  # type: ignore[misc]
    """Nearest neighbours: good in few dimensions, blind in many.

    Args:
        k: Which neighbour sets the distance; larger is smoother.

    `fit` remembers the pairs; `log_ratio` looks for neighbours among them.
    """

    k: int = 3

    @property
    def name(self) -> str:
        """`ksg`, with its k."""
        return f"ksg(k={self.k})"

    def fit(self, x: Any, y: Any) -> Self:
        """Remember pairs x (n, ...), y (n, ...) as the reference."""
        if self.k < 1:
            raise ValueError(f"k must be at least 1, got {self.k!r}")
        sample = as_sample(x, y, least=self.k + 2)
        self.n_features_in_ = sample.x.shape[1]
        self.maps_ = Standardize.fit(_flat(sample.x)), Standardize.fit(_flat(sample.y))
        self.reference_ = self._mapped(sample)
        return self

    def log_ratio(self, x: Any, y: Any) -> Array:
        """Return the local information (n,) of pairs, in nats."""
        check_is_fitted(self)
        return self._local(*self._mapped(as_sample(x, y, least=1)), own=False)[0]

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, with neighbours from the fitted ones."""
        return from_pointwise(self.log_ratio(x, y), self.name)

    def score(self, x: Any, y: Any) -> float:
        """Return minus the cross-entropy of telling pairs from unpaired ones."""
        return -_cross_entropy(self, x, y)

    def measure(
        self, sample: Sample, *, folds: int = 5, n_jobs: int = 1, progress: Progress | None = None
    ) -> MIResult:
        """Return the mutual information of all pairs, each left out of its own neighbours.

        `folds`, `n_jobs` and `progress` do nothing here: nothing is trained.
        """
        self.fit(sample.x, sample.y)
        pointwise, tied = self._local(*self.reference_, own=True)
        return from_pointwise(pointwise, self.name, sample.warnings + _ties(tied))

    def _mapped(self, sample: Sample) -> tuple[Array, Array]:
        flat = _flat(sample.x), _flat(sample.y)
        for side, a, fitted in zip("xy", flat, self.maps_, strict=True):
            same_shape(side, a.shape[1:], fitted.center.shape)
        x_map, y_map = self.maps_
        return x_map(flat[0]), y_map(flat[1])

    def _local(self, x: Array, y: Array, own: bool) -> tuple[Array, float]:
        """Return (n,) terms, and the share of pairs with several neighbours at the k-th distance.

        `own` if the pairs are the reference itself and must not see themselves.
        """
        x_tree, y_tree = (cKDTree(side) for side in self.reference_)
        joint, both = cKDTree(np.hstack(self.reference_)), np.hstack([x, y])
        far = np.asarray(joint.query(both, [self.k + own], p=np.inf)[0])[:, 0]
        neighbours = _within(joint, both, far) - own
        equal = far == 0
        radius = np.where(equal, 0, np.nextafter(far, 0))
        n_x, n_y = _within(x_tree, x, radius) - own, _within(y_tree, y, radius) - own
        others = len(self.reference_[0]) - own
        inside = np.where(equal, neighbours + 1, self.k)
        local = digamma(inside) + digamma(others + 1) - digamma(n_x + 1) - digamma(n_y + 1)
        return np.asarray(local), float(((neighbours > self.k) & ~equal).mean())

    def __sklearn_tags__(self) -> Tags:
        return requires_y(super().__sklearn_tags__())


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
        self.maps_ = transform.fit(_flat(sample.x)), transform.fit(_flat(sample.y))
        self.shapes_ = _flat(sample.x).shape[1:], _flat(sample.y).shape[1:]
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
        x, y = self._mapped(as_sample(x, y, least=1))
        p = (x - self.means_[0]) @ self.directions_[0]
        q = (y - self.means_[1]) @ self.directions_[1]
        r = self.correlations_
        quadratic = (r * (p**2 + q**2) - 2 * p * q) * r / (1 - r**2)
        return np.asarray(-0.5 * (np.log1p(-(r**2)) + quadratic).sum(axis=1))

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mean log ratio of pairs under the fitted covariances."""
        return from_pointwise(self.log_ratio(x, y), self.name)

    def score(self, x: Any, y: Any) -> float:
        """Return minus the cross-entropy of telling pairs from unpaired ones."""
        return -_cross_entropy(self, x, y)

    def measure(
        self, sample: Sample, *, folds: int = 5, n_jobs: int = 1, progress: Progress | None = None
    ) -> MIResult:
        """Return the closed form from all pairs: the mean log ratio under their covariances.

        `folds`, `n_jobs` and `progress` do nothing here: nothing is trained.
        """
        pointwise = self.fit(sample.x, sample.y).log_ratio(sample.x, sample.y)
        warnings = sample.warnings + self._cautions(len(sample))
        figures = {"canonical_correlations": self.correlations_.tolist()}
        return from_pointwise(pointwise, self.name, warnings, figures)

    def _mapped(self, sample: Sample) -> tuple[Array, Array]:
        flat = _flat(sample.x), _flat(sample.y)
        for side, a, shape in zip("xy", flat, self.shapes_, strict=True):
            same_shape(side, a.shape[1:], shape)
        x_map, y_map = self.maps_
        return x_map(flat[0]), y_map(flat[1])

    def _cautions(self, n: int) -> tuple[Caution, ...]:
        found = []
        bias = len(self.directions_[0]) * len(self.directions_[1]) / (2 * n)
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


def _ties(share: float) -> tuple[Caution, ...]:
    if share <= _TIED:
        return ()
    return (
        Caution(
            "ties",
            f"{share:.0%} of the pairs have several neighbours at the same distance, as rounded "
            "values do, and KSG reads too high",
            "Use more neighbours, as in KSG(k=20), or method='demi'",
        ),
    )


def _flat(a: Array) -> Array:
    return a.reshape(len(a), -1)


def _within(tree: cKDTree, points: Array, radius: Array) -> NDArray[np.int64]:
    """Count the points of a tree within `radius` (n,) of each of `points` (n, d), edge included."""
    found = tree.query_ball_point(points, radius, p=np.inf, return_length=True)
    return np.asarray(found, dtype=np.int64)


def _whitener(a: Array) -> Array:
    """Return W (d, rank) with a @ W uncorrelated and of unit variance; a (n, d) is centred."""
    values, vectors = np.linalg.eigh(a.T @ a / len(a))
    keep = values > max(values.max(initial=0), 1e-300) * 1e-12  # collinear columns add nothing
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))


def _cross_entropy(estimator: "KSG | Gaussian", x: Any, y: Any) -> float:
    """Return the balanced cross-entropy of an estimator's log ratios on pairs."""
    sample = as_sample(x, y)
    joint = estimator.log_ratio(sample.x, sample.y)
    (others,) = some_partners(sample, 1, seed=0).T.numpy()
    product = estimator.log_ratio(sample.x, sample.y[others])
    return held_out_loss(DEMI(), Scores(joint, product[:, None]))
