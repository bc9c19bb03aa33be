r"""KSG: mutual information from nearest neighbours, without training.

Kraskov, Stögbauer and Grassberger (2004) compare, around each pair, the distance of its k-th
neighbour in the joint space (largest coordinate difference) with how many neighbours are within
that distance on each side:

$$ i(x, y) = \psi(k) + \psi(n) - \psi(n_x + 1) - \psi(n_y + 1). $$

Where k others are at the very same place (discrete values) equal points are counted instead, the
pair itself among them: the plug-in ratio of a table. Elsewhere ties, as rounded values have them,
are broken by moving each value by 1e-10 standard deviations, except for constant columns: their
information with everything is 0.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.special import digamma

from ..data.sample import Sample, as_sample
from ..data.transforms import Standardize
from ..records import Diagnostics
from .base import Array, Estimate, Sides, UntrainedEstimator
from .scores import result_from_pointwise

__all__ = ["KSG"]

Neighbours = tuple[Array, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

_COLUMNS_OF_A_TREE = 10  # beyond, it is slower than all distances
_ROWS_OF_A_TABLE = 256  # of distances held at once


@dataclass(eq=False, repr=False)
class KSG(UntrainedEstimator):
    """Nearest neighbours: accurate for few columns, biased low for many.

    Args:
        k: Which neighbour sets the distance; larger is smoother.

    `fit` stores the pairs; `log_ratio` searches for neighbours among them.
    """

    k: int = 3

    @property
    def name(self) -> str:
        """`ksg`, with its k."""
        return f"ksg(k={self.k})"

    def fit(self, x: Any, y: Any) -> Self:
        """Store pairs x (n, ...), y (n, ...) as the reference."""
        if self.k < 1:
            raise ValueError(f"k must be at least 1, got {self.k!r}")
        self.reference_ = self.fit_maps(Standardize, as_sample(x, y, least=self.k + 2))
        return self

    def joint(self, sample: Sample) -> Array:
        """Return the local information (n,) of the pairs of a sample, in nats."""
        return self._local(*self.mapped(sample), own=False)

    def estimate_sample(self, sample: Sample) -> Estimate:
        """Return the mutual information of all pairs, each left out of its own neighbours."""
        labels = np.arange(len(sample)) if sample.copies is None else sample.copies
        _, first, back = np.unique(labels, return_index=True, return_inverse=True)
        fitted = self.fitted_to(sample.take(first))  # a copy would be its own nearest neighbour
        pointwise = fitted._local(*fitted.reference_, own=True)[back]
        figures = Diagnostics(scaling=type(fitted.maps_[0]).__name__)
        result = result_from_pointwise(pointwise, self.name, sample.warnings, figures)
        return Estimate(result, (fitted,))

    def _local(self, x: Array, y: Array, own: bool) -> Array:
        """Return (n,) terms; with `own` the pairs are the reference and exclude themselves."""
        rng = np.random.default_rng(0)
        reference = _break_ties(self.reference_[0], rng), _break_ties(self.reference_[1], rng)
        near, _ = self._terms(reference if own else (x, y), reference, own)
        copies = np.unique(np.hstack(self.reference_), axis=0, return_counts=True)[1]
        if copies.max() < self.k + own:
            return near
        table, equal = self._terms((x, y), self.reference_, own)
        return np.where(equal, table, near)

    def _terms(self, rows: Sides, reference: Sides, own: bool) -> tuple[Array, NDArray[np.bool_]]:
        """Return (n,) terms, and which are of points with k others at the same place."""
        columns = rows[0].shape[1] + rows[1].shape[1]
        neighbours = _by_trees if columns <= _COLUMNS_OF_A_TREE else _by_tables
        far, n_x, n_y, same = neighbours(rows, reference, self.k + own)
        equal = far == 0
        inside = np.where(equal, same - own + 1, self.k)
        others = len(reference[0]) - own
        ratio = digamma(inside) + digamma(others + 1)
        return np.asarray(ratio - digamma(n_x - own + 1) - digamma(n_y - own + 1)), equal


def _break_ties(a: Array, rng: np.random.Generator) -> Array:
    """Return standardised columns moved so little that only ties are broken."""
    return np.asarray(a + 1e-10 * rng.standard_normal(a.shape) * (a != a[:1]).any(axis=0))


def _by_trees(rows: Sides, reference: Sides, k: int) -> Neighbours:
    """Return the distance (n,) of the k-th neighbour, and how many are nearer in x, in y, equal."""
    joint, both = cKDTree(np.hstack(reference)), np.hstack(rows)
    far = np.asarray(joint.query(both, [k], p=np.inf)[0])[:, 0]
    radius = np.nextafter(far, 0)  # 0 where that is 0: equal points are counted
    n_x, n_y = (_within(cKDTree(b), a, radius) for a, b in zip(rows, reference, strict=True))
    same = np.zeros(len(both), np.int64)
    equal = far == 0
    same[equal] = _within(joint, both[equal], far[equal])
    return far, n_x, n_y, same


def _by_tables(rows: Sides, reference: Sides, k: int) -> Neighbours:
    """Return the same from all distances: in many columns a tree looks at every point as well."""
    parts = []
    for start in range(0, len(rows[0]), _ROWS_OF_A_TABLE):
        part = slice(start, start + _ROWS_OF_A_TABLE)
        of_x, of_y = (cdist(a[part], b, "chebyshev") for a, b in zip(rows, reference, strict=True))
        both = np.maximum(of_x, of_y)
        far = np.partition(both, k - 1, axis=1)[:, k - 1]
        radius = np.nextafter(far, 0)[:, None]
        counts = ((a <= radius).sum(axis=1) for a in (of_x, of_y, both))
        parts.append((far, *counts))
    far, n_x, n_y, same = (np.concatenate(column) for column in zip(*parts, strict=True))
    return far, n_x, n_y, same


def _within(tree: cKDTree, points: Array, radius: Array) -> NDArray[np.int64]:
    """Count the points of a tree within `radius` (n,) of each of `points` (n, d), edge included."""
    found = tree.query_ball_point(points, radius, p=np.inf, return_length=True)
    return np.asarray(found, dtype=np.int64)
