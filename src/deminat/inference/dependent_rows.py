r"""A p-value of two single columns whose rows depend on each other.

Rows of one group are moved together, to the place of a group of as many rows, and the statistic is
that of `rank_test`. The p-value of B permutations is 1 / (B + 1) or larger. A table of many columns
needs smaller ones. So few permutations decide first whether more are worth their time: the p-value
of 99 is kept if it is above .1, and otherwise that of 999 replaces it, and so on. A p-value below
.1 is thus never that of the 99, and the level is exact.

In a time series the first half trains a score and the second half tests it. The score of a pair of
rows is $\phi(x)^T A\, \psi(y)$, where A holds the coefficients of the copula in the first half. The
second half shifts y against x around a circle: see `independence`. There the level is not exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.dependence import gap_between
from ..data.sample import Sample
from ..data.units import unit_codes
from .independence import permutation_test
from .rank_test import cosines, rank_test, ranks
from .sequential import SequentialPart

__all__ = ["Dependence", "single_test"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_STAGES = (99, 0.1), (999, 0.01)  # permutations, and the p-value above which they are enough
_COSINES = 4  # of each side of the score of a time series
_LEVELS = 8  # of a label that have indicators there
_TAG = 0x51D3  # no other part of the library draws by this stream


@dataclass(frozen=True)
class Dependence:
    """Which rows depend on each other.

    Args:
        labels: (n,) integers, equal for rows of one group; `None` without groups.
        times: (n,) the rank of each row in time; `None` if rows have no order.
    """

    labels: Rows | None = None
    times: Rows | None = None

    def __bool__(self) -> bool:
        """Tell whether any rows depend on each other."""
        return self.labels is not None or self.times is not None

    def take(self, rows: Rows | NDArray[np.bool_]) -> "Dependence":
        """Return that of some rows; ranks in time stay those of all rows."""
        labels, times = (None if a is None else a[rows] for a in (self.labels, self.times))
        return Dependence(labels, times)

    def halves(self, n: int, seed: int) -> tuple[Rows, Rows]:
        """Return two sets of rows: of halves of the groups, or of the time."""
        if self.times is not None:
            rows = np.argsort(self.times, kind="stable")
            return rows[: n // 2], rows[n // 2 :]
        labels = np.arange(n) if self.labels is None else self.labels
        groups = np.random.default_rng([_TAG, seed]).permutation(np.unique(labels))
        first = np.isin(labels, groups[: len(groups) // 2])
        return np.flatnonzero(first), np.flatnonzero(~first)

    def units(self, x: Array, y: Array) -> Rows:
        """Return the number of the unit of each row, of columns (n,) x and y."""
        return unit_codes(self.sample(x, y))

    def sample(self, x: Array, y: Array, are_labels: tuple[bool, bool] = (False, False)) -> Sample:
        """Return two columns (n,) as a sample."""
        times, gap = None, 0
        if self.times is not None:
            order = np.argsort(self.times, kind="stable")
            times = np.argsort(order)
            gap, _ = gap_between(x[order, None], y[order, None])
        return Sample(
            x[:, None],
            y[:, None],
            labels=self.labels,
            times=times,
            gap=gap,
            x_discrete=are_labels[:1],
            y_discrete=are_labels[1:],
        )


def single_test(
    x: Array,
    y: Array,
    rows: Dependence,
    *,
    are_labels: tuple[bool, bool] = (False, False),
    permutations: int = 999,
    seed: int = 0,
) -> float:
    """Return the p-value of the independence of two columns (n,) without missing values.

    Args:
        x: Numbers, or codes of a label.
        y: The same.
        rows: Which of them depend on each other.
        are_labels: Whether x and y are labels of more than two values.
        permutations: Of groups, where a few leave a small p-value possible.
        seed: One seed gives one answer.
    """
    if not rows and not any(are_labels):
        return rank_test(x, y, np.random.default_rng([_TAG, seed]))[0]
    sample = rows.sample(x, y, are_labels)
    if sample.is_constant():
        return 1.0
    if sample.times is not None:
        return _shifted(sample, seed)
    for i, (few, worth) in enumerate(_STAGES):
        p = permutation_test(sample, [], min(few, permutations), seed + i).p_value
        if p > worth or few >= permutations:
            return p
    return permutation_test(sample, [], permutations, seed + len(_STAGES)).p_value


def _shifted(sample: Sample, seed: int) -> float:
    """Return the p-value of a time series by a score that its first half trained."""
    rng = np.random.default_rng([_TAG, seed])
    order = np.argsort(sample.times if sample.times is not None else [], kind="stable")
    middle = len(order) // 2
    x, y = (
        _features(a[:, 0], label, rng)
        for a, label in zip((sample.x, sample.y), sample.are_labels(), strict=True)
    )
    before, after = order[: max(middle - sample.gap, 1)], order[middle:]
    score = x[before].T @ y[before] / len(before)
    part = sample.take(after)
    return permutation_test(part, [SequentialPart(part, x[after] @ score, y[after])]).p_value


def _features(column: Array, is_label: bool, rng: np.random.Generator) -> Array:
    """Return cosines of the ranks of a column (n,), or centred indicators of a label."""
    if not is_label:
        return cosines(len(column))[ranks(column, rng), :_COSINES]
    values, counts = np.unique(column, return_counts=True)
    frequent = values[np.argsort(-counts, kind="stable")[:_LEVELS]]
    indicators = (column[:, None] == frequent).astype(np.float64)
    return np.asarray(indicators - indicators.mean(axis=0))
