r"""A table of cells as a baseline: how often each cell of x meets each cell of y.

A side with few distinct rows, such as labels, has a cell for each of them. A single column with
many values is cut into cells of equal mass by its ranks; a value that is frequent has a cell of its
own, so that zeros stay apart from small numbers. With counts $c_{ij}$, margins $a_i$ and $b_j$ of
n rows, the log ratio of a cell is

$$ f_{ij} = \log \frac{n c_{ij} + \kappa a_i b_j / n}{a_i b_j (1 + \kappa / n)} , $$

where $\kappa$ rows of independent pairs are added, as many as held-out rows like best. Counts of
cells of columns may be smoothed by a Gaussian of some cells' width, after which the table is scaled
back to its margins. So the exponential of f has mean 1 in every row and every column of the table:
it is normalised by construction.

Cells may also be merged. Two neighbours along a column are one cell unless their rows clearly
differ, $2n$ times the information that the border tells is above $\log n$ for each degree of
freedom. Each border then moves to the row where the likelihood is highest. So borders come to lie
where the density jumps. Edges, ridges, atoms and rounded values,
which no smooth critic has, are no difficulty here. Two columns at most: cells of more columns would
be nearly empty.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.special import xlogy

from ...data.transforms import Array
from .base import Frames

__all__ = ["Cells", "Table"]

_MOST = 1_000  # distinct rows of a side that may each have a cell
_REPEATED = 2  # rows for each cell, at least, on average
# Cells of a column, and the width of the smoothing in cells.
_ALL = (8, 0.0), (16, 0.0), (32, 0.0), (64, 0.0), (128, 0.7), (128, 1.5), (128, 3.0), (128, 6.0)
_SOME = (16, 0.0), (64, 1.5), (64, 3.0)
_FULL = 20  # rows for each pair of values, so that exact cells suffice
_FREQUENT = 0.04  # share of the rows that makes a value frequent
_START = 256  # cells of a column before neighbours are merged
_COARSE = 16  # cells of the other column when the first is merged
_PRIOR = 0.5  # rows that are added to each cell when borders are moved
_ROUNDS = 3  # of merging, each column in turn
_SHRINK = 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0  # rows that are added, times n
_SCALINGS = 20  # of rows and columns, back to the margins


@dataclass(frozen=True)
class Cells:
    """Cells of one side.

    Args:
        values: (k, d) distinct rows, sorted; or (k, 1) distinct values of a column.
        cells: (k,) the cell of each.
        count: How many cells there are.
        most: How many there were before neighbours were merged.
        exact: Whether each distinct row has a cell of its own; others then belong to none.
    """

    values: Array
    cells: NDArray[np.int64]
    count: int
    most: int
    exact: bool

    @classmethod
    def of_values(cls, a: Array) -> Self | None:
        """Return a cell for each distinct row of a (n, d); None if there are too many."""
        values = np.unique(a, axis=0)
        if len(values) > min(_MOST, len(a) // _REPEATED):
            return None
        return cls(values, np.arange(len(values)), len(values), len(values), exact=True)

    @classmethod
    def of_ranks(cls, a: Array, count: int) -> Self | None:
        """Return cells of equal mass of a column (n, 1); None of several columns."""
        if a.shape[1] != 1:
            return None
        values, counts = np.unique(a[:, 0], return_counts=True)
        middle = (np.cumsum(counts) - counts / 2) / len(a)
        _, cells = np.unique(np.floor(count * middle), return_inverse=True)
        count = int(cells.max()) + 1
        return cls(values[:, None], cells, count, count, exact=False)

    def joined(self, counts: Array) -> Self:
        """Return the cells with those neighbours merged whose counts (k, m) differ by chance."""
        enough = math.log(counts.sum()) * max(1, (counts.sum(axis=0) > 0).sum() - 1) / 2
        rows, own = list(counts), list(_log_likelihood(counts))
        both = list(_log_likelihood(counts[:-1] + counts[1:]))
        losses = [a + b - c for a, b, c in zip(own, own[1:], both, strict=False)]
        first = list(range(len(rows)))  # of the fine cells in each
        while losses and min(losses) < enough:
            i = losses.index(min(losses))
            rows[i : i + 2] = [rows[i] + rows[i + 1]]
            own[i : i + 2] = [float(_log_likelihood(rows[i]))]
            del first[i + 1], losses[i]
            for j in (i - 1, i):
                if 0 <= j < len(losses):
                    both_rows = float(_log_likelihood(rows[j] + rows[j + 1]))
                    losses[j] = own[j] + own[j + 1] - both_rows
        place = np.searchsorted(first, np.arange(self.count), side="right") - 1
        return replace(self, cells=place[self.cells], count=len(first))

    def refined(self, a: Array, others: NDArray[np.int64]) -> Self:
        """Return the cells of a column a (n, 1) with each border where rows like it best.

        Args:
            a: The column.
            others: (n,) cells of the other side.
        """
        order = np.argsort(a[:, 0], kind="stable")
        values, others, own = a[order, 0], others[order], self(a[order])
        shares = np.zeros((self.count, int(others.max()) + 1))
        np.add.at(shares, (own, others), 1.0)
        logs = np.log(shares + _PRIOR) - np.log((shares + _PRIOR).sum(axis=1, keepdims=True))
        borders = np.searchsorted(own, np.arange(self.count + 1))
        starts = [self.values[0, 0]]
        for k in range(1, self.count):
            reach = 2 * len(a) // _START
            first = max(borders[k] - reach, (borders[k - 1] + borders[k]) // 2)
            last = min(borders[k] + reach, (borders[k] + borders[k + 1]) // 2)
            gains = logs[k - 1, others[first:last]] - logs[k, others[first:last]]
            place = first + int(np.argmax(np.concatenate([[0.0], np.cumsum(gains)])))
            starts.append(values[place])
        cells = np.searchsorted(np.array(starts), self.values[:, 0], side="right") - 1
        return replace(self, cells=cells)

    def __call__(self, a: Array) -> NDArray[np.int64]:
        """Return the cell (m,) of rows a (m, d); `count` for a row that has none."""
        if self.values.shape[1] == 1:
            place = np.searchsorted(self.values[:, 0], a[:, 0]).clip(max=len(self.values) - 1)
        else:
            place = _places(self.values, a)
        cells = self.cells[place]
        unknown = (self.values[place] != a).any(axis=1) & self.exact
        return np.where(unknown, self.count, cells)


def _log_likelihood(counts: Array) -> Array:
    """Return the log likelihood of rows of counts (..., m), each by its own shares."""
    total = counts.sum(axis=-1)
    return np.asarray(xlogy(counts, counts).sum(axis=-1) - xlogy(total, total))


def _places(values: Array, a: Array) -> NDArray[np.int64]:
    """Return the place (m,) of rows a (m, d) among sorted distinct rows (k, d), or any place."""
    _, first, inverse = np.unique(
        np.vstack([values, a]), axis=0, return_index=True, return_inverse=True
    )
    place = first[inverse.ravel()[len(values) :]]
    return np.where(place < len(values), place, 0)


@dataclass(frozen=True)
class Table:
    """The log ratio of a table.

    Args:
        x_cells: Of x.
        y_cells: Of y.
        ratios: (kx + 1, ky + 1) log ratios; the last row and column, of unknown values, are 0.
        width: Of the smoothing, in cells; 0 without.
        shrink: Independent rows that were added, times n.
    """

    x_cells: Cells
    y_cells: Cells
    ratios: Array
    width: float = 0.0
    shrink: float = 0.0
    components: ClassVar[int] = 1
    frames: ClassVar[Frames] = Frames()
    informative: ClassVar[bool] = True

    @classmethod
    def candidates(
        cls,
        x: Array,
        y: Array,
        x_held: Array,
        y_held: Array,
        labels: tuple[bool, bool] = (True, True),
        few: bool = False,
    ) -> "Iterator[Table]":
        """Yield tables of several sizes and widths, each with the best number of added rows.

        Args:
            x: Rows to count.
            y: Their other side.
            x_held: Rows that choose how many to add.
            y_held: Their other side.
            labels: Whether distinct rows of each side may have a cell each.
            few: Whether to yield less of them, in a fifth of the time.
        """
        choices = [*_choices(x, y, labels, _SOME if few else _ALL)]
        if not few and len(choices) > 1:
            choices += _merged(x, y)
        for x_cells, y_cells, width in choices:
            counts = _counts(x_cells, y_cells, x, y, width)
            tables = [cls(x_cells, y_cells, _ratios(counts, s), width, s) for s in _SHRINK]
            scores = [float(table.score(x_held, y_held).mean()) for table in tables]
            yield tables[int(np.argmax(scores))]

    @property
    def ceiling(self) -> float:
        """The largest information that its cells can show, in nats; infinite of values."""
        cells = [c.most for c in (self.x_cells, self.y_cells) if c.most < len(c.values)]
        return math.log(min(cells)) if cells else math.inf

    def refit(self, x: Array, y: Array) -> Self:
        """Return a table with the same cells for other pairs."""
        counts = _counts(self.x_cells, self.y_cells, x, y, self.width)
        return replace(self, ratios=_ratios(counts, self.shrink))

    def score(self, x: Array, y: Array) -> Array:
        """Return the log ratio (m,) of pairs."""
        return np.asarray(self.ratios[self.x_cells(x), self.y_cells(y)])

    @property
    def name(self) -> str:
        """What results call it."""
        smooth = f", smoothed over {self.width:g}" if self.width else ""
        return f"table of {self.x_cells.count} x {self.y_cells.count} cells{smooth}"

    def left(self, x: Array) -> Array:
        """Return left factors (m, kx + 1): 1 at the cell of x."""
        return np.asarray(np.eye(self.x_cells.count + 1)[self.x_cells(x)])

    def right(self, y: Array) -> Array:
        """Return right factors (m, kx + 1): the column of the table of y."""
        return np.asarray(self.ratios.T[self.y_cells(y)])


def _choices(
    x: Array, y: Array, labels: tuple[bool, bool], sizes: Sequence[tuple[int, float]]
) -> Iterator[tuple[Cells, Cells, float]]:
    """Yield cells of both sides, and the width of the smoothing.

    A column of few values has cells of both kinds: labels have no order, counts have one. Where
    each pair of values is seen often, there is nothing to smooth.
    """
    exact_x, exact_y = (
        Cells.of_values(a) if may else None for a, may in zip((x, y), labels, strict=True)
    )
    if exact_x is not None and exact_y is not None:
        yield exact_x, exact_y, 0.0
        if exact_x.count * exact_y.count * _FULL <= len(x):
            return
    for size, width in sizes:
        ranked_x, ranked_y = Cells.of_ranks(x, size), Cells.of_ranks(y, size)
        for of_x, of_y in ((ranked_x, ranked_y), (exact_x, ranked_y), (ranked_x, exact_y)):
            if of_x is not None and of_y is not None:
                yield of_x, of_y, width


def _merged(x: Array, y: Array) -> Iterator[tuple[Cells, Cells, float]]:
    """Yield cells of two columns with borders where the density changes."""
    fine = Cells.of_ranks(x, _START), Cells.of_ranks(y, _START)
    other = Cells.of_ranks(y, _COARSE)
    if fine[0] is None or fine[1] is None or other is None:
        return
    x_cells = fine[0]
    for _ in range(_ROUNDS):
        x_cells = fine[0].joined(_counts(fine[0], other, x, y, 0.0))
        other = fine[1].joined(_counts(x_cells, fine[1], x, y, 0.0).T)
    if x_cells.count > 1 and other.count > 1:
        x_cells = x_cells.refined(x, other(y))
        yield x_cells, other.refined(y, x_cells(x)), 0.0


def _counts(x_cells: Cells, y_cells: Cells, x: Array, y: Array, width: float) -> Array:
    """Return how many pairs are in each cell (kx, ky), smoothed along columns with ranks."""
    shape = x_cells.count + 1, y_cells.count + 1
    counts = np.zeros(shape)
    np.add.at(counts, (x_cells(x), y_cells(y)), 1.0)
    counts = counts[:-1, :-1]
    if width == 0:
        return counts
    margins = counts.sum(axis=1), counts.sum(axis=0)
    for axis, cells in enumerate((x_cells, y_cells)):
        # A frequent value is unlike its neighbours: it is neither smoothed nor smoothed into.
        smooth = ~(margins[axis] > _FREQUENT * counts.sum()) & (not cells.exact)
        if smooth.any():
            some = np.compress(smooth, counts, axis=axis)
            some = gaussian_filter1d(some, width, axis=axis, mode="reflect")
            counts = counts.copy()
            counts[smooth if axis == 0 else (slice(None), smooth)] = some
    return _scaled(counts, *margins)


def _scaled(counts: Array, of_x: Array, of_y: Array) -> Array:
    """Return counts with the given sums of rows and of columns."""
    for _ in range(_SCALINGS):
        counts = counts * (of_x / np.maximum(counts.sum(axis=1), 1e-300))[:, None]
        counts = counts * (of_y / np.maximum(counts.sum(axis=0), 1e-300))
    return np.asarray(counts)


def _ratios(counts: Array, shrink: float) -> Array:
    """Return the log ratios (kx + 1, ky + 1) of counts (kx, ky)."""
    n = counts.sum()
    independent = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    ratios = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))
    known = independent > 0
    mixed = (counts[known] / independent[known] + shrink) / (1 + shrink)
    ratios[:-1, :-1][known] = np.log(mixed)
    return ratios
