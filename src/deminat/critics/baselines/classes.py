r"""Normal distributions of one side for each value of the other, as a baseline.

Where x takes few values c, $f(c, y) = \log p(y \mid c) - \log \sum_k \pi_k\, p(y \mid k)$. Each
class has a normal distribution of its own. Its covariance is drawn towards that within all classes,
by as many rows as there are columns, or entirely; held-out rows choose. Columns may be mapped to
normals by their ranks first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...data.transforms import Array, Robust, SmoothRanks
from .base import Frames
from .mixture import Scale
from .table import Cells

__all__ = ["ClassNormals"]

_ROWS = 5  # of a class, at least on average
_COLUMNS = 50  # of the other side, at most
_FLOOR = 1e-6  # of the variances, relative to those of all rows
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class ClassNormals:
    """The log ratio of normal distributions, one for each value of a side.

    Args:
        cells: The values of the side with few.
        scale: Maps the other side first.
        log_weights: (k,) of the classes.
        means: (k, d).
        factors: (k, d, d) lower Cholesky factors of the covariances.
        pooled: Whether all classes have one covariance.
        of_x: Whether x is the side with few values.
    """

    cells: Cells
    scale: Scale
    log_weights: Array
    means: Array
    factors: Array
    pooled: bool
    of_x: bool
    components: ClassVar[int] = 1
    frames: ClassVar[Frames] = Frames()
    informative: ClassVar[bool] = True

    @classmethod
    def candidates(
        cls, x: Array, y: Array, labels: tuple[bool, bool] = (True, True)
    ) -> "Iterator[ClassNormals]":
        """Yield the distributions of each side by the other, where that is a label."""
        for few, other, of_x in ((x, y, True), (y, x, False)):
            cells = Cells.of_values(few) if labels[0 if of_x else 1] else None
            if cells is None or len(few) < _ROWS * cells.count or other.shape[1] > _COLUMNS:
                continue
            if Cells.of_values(other) is not None:
                continue
            for scale in (Robust.fit(other).linear(), SmoothRanks.fit(other)):
                for pooled in (False, True):
                    yield cls.fit(cells, scale, few, other, pooled, of_x)

    @classmethod
    def fit(
        cls, cells: Cells, scale: Scale, few: Array, other: Array, pooled: bool, of_x: bool
    ) -> Self:
        """Return the distributions of rows `other` (n, d) by the values of rows `few`."""
        rows, codes = scale(other), cells(few)
        rows, codes = rows[codes < cells.count], codes[codes < cells.count]
        counts = np.bincount(codes, minlength=cells.count).astype(float)
        sums = np.zeros((cells.count, rows.shape[1]))
        np.add.at(sums, codes, rows)
        means = (sums + rows.mean(axis=0)) / (counts + 1)[:, None]  # one row of the mean of all
        factors = _factors(rows - means[codes], codes, counts, rows.std(axis=0), pooled)
        weights = np.log((counts + 0.5) / (counts + 0.5).sum())
        return cls(cells, scale, weights, means, factors, pooled, of_x)

    def refit(self, x: Array, y: Array) -> "ClassNormals":
        """Return the same kind of distributions for other pairs."""
        few, other = (x, y) if self.of_x else (y, x)
        return self.fit(self.cells, self.scale, few, other, self.pooled, self.of_x)

    @property
    def name(self) -> str:
        """What results call it."""
        scale = "ranks" if isinstance(self.scale, SmoothRanks) else "columns"
        width = " of one width" if self.pooled else ""
        return f"normals{width} of {self.cells.count} classes on {scale}"

    def left(self, x: Array) -> Array:
        """Return left factors (m, k + 1)."""
        return self._picked(x) if self.of_x else self._log_ratios(x)

    def right(self, y: Array) -> Array:
        """Return right factors (m, k + 1)."""
        return self._log_ratios(y) if self.of_x else self._picked(y)

    def _picked(self, few: Array) -> Array:
        return np.asarray(np.eye(self.cells.count + 1)[self.cells(few)])

    def _log_ratios(self, other: Array) -> Array:
        """Return (m, k + 1): the log ratio of rows with each class; 0 with an unknown one."""
        rows = self.scale(other)
        each = np.empty((len(rows), len(self.means)))
        for k, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            white = np.linalg.solve(factor, (rows - mean).T)
            constant = np.log(np.diag(factor)).sum() + _LOG_ROOT_TAU * len(mean)
            each[:, k] = -0.5 * (white**2).sum(axis=0) - constant
        all_classes = np.logaddexp.reduce(each + self.log_weights, axis=1)
        return np.column_stack([each - all_classes[:, None], np.zeros(len(rows))])


def _factors(
    residuals: Array, codes: NDArray[np.int64], counts: Array, spread: Array, pooled: bool
) -> Array:
    """Return Cholesky factors (k, d, d) of the covariances within classes."""
    n, d = residuals.shape
    within = residuals.T @ residuals / n + np.diag(_FLOOR * spread**2 + 1e-12)
    if pooled:
        return np.repeat(np.linalg.cholesky(within)[None], len(counts), axis=0)
    found = np.empty((len(counts), d, d))
    for k, count in enumerate(counts):
        own = residuals[codes == k]
        found[k] = np.linalg.cholesky((own.T @ own + (d + 1) * within) / (count + d + 1))
    return found
