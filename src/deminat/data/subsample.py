r"""Which rows are used, where there are more than an estimate needs.

An estimate from $k$ rows drawn at random from $n$ is an estimate of the same quantity: nothing is
biased by leaving rows out without looking at them, and at a few hundred thousand the error that is
left is that of the critic, not that of chance. So of more rows than `MAX_ROWS`, or of so many
values that they alone would take a gigabyte (`MAX_VALUES`), as many are drawn as that allows, by
the seed and the number of rows alone: one seed draws the same rows of a table in whatever file it
is. What is not drawn is never held in memory.

Rows of groups are drawn one by one, and take the names of their groups along: that keeps what
`groups` promises, and of as many rows it keeps the most groups, which is what chance is counted by.
Rows in time are only of use with their neighbours: of those one stretch is taken, which begins
anywhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..results import Caution
from .arrays import as_times
from .source import Rows, Source, take_rows, width

__all__ = ["MAX_ROWS", "MAX_VALUES", "Subsample", "subsample"]

MAX_ROWS = 200_000
MAX_VALUES = 2**27  # a gigabyte of float64
_LEAST = 2_000  # rows, however wide they are
_SIDES = "x", "y", "given"
_TAG = 0xD2A3  # nobody has drawn by this stream before


@dataclass(frozen=True)
class Subsample:
    """The rows that are used, in memory.

    Args:
        sides: Of each side, as `as_rows` takes it.
        groups: Of these rows.
        order: Of these rows.
        rows: Their numbers in what was given, rising; `None` if they are all.
        told: What to tell of it.
    """

    sides: tuple[Any, ...]
    groups: Any
    order: Any
    rows: Rows | None = None
    told: tuple[Caution, ...] = ()

    def numbers(self, kept: Rows) -> Rows:
        """Return the numbers, in what was given, of those at the places `kept` among the drawn."""
        return kept if self.rows is None else self.rows[kept]


def subsample(
    sides: Sequence[Any], groups: Any, order: Any, max_rows: float | None, seed: int
) -> Subsample:
    """Draw rows if there are more than `max_rows`.

    Args:
        sides: Arrays, tensors, frames, lists or sources, row by row together.
        groups: (n,), a source, or None.
        order: (n,), a source, True, or None.
        max_rows: At most so many; by default what `MAX_ROWS` and `MAX_VALUES` allow.
        seed: Of the draw.
    """
    most = _limit(sides, max_rows)
    n = _count(sides, most)
    in_time = order is not None and not (isinstance(order, bool | np.bool_) and not order)
    rows = None
    if n is not None and n > most:
        _check_beside(n, groups=groups, order=order)
        rng = np.random.default_rng([_TAG, seed])
        rows = _stretch(order, n, most, rng) if in_time else _some(n, most, rng)
    *used, groups = (take_rows(side, rows) for side in (*sides, groups))
    order = order if isinstance(order, bool | np.bool_) else take_rows(order, rows)
    told = () if rows is None or n is None else (_subsampled(len(rows), n, in_time),)
    return Subsample(tuple(used), groups, order, rows, told)


def _limit(sides: Sequence[Any], max_rows: float | None) -> int:
    """Return how many rows may be used."""
    if max_rows is None:
        values = sum(map(width, sides))
        return min(MAX_ROWS, max(_LEAST, MAX_VALUES // max(1, values)))
    if not max_rows >= 1:
        raise ValueError(f"max_rows must be at least 1, got {max_rows!r}")
    return int(min(max_rows, 2**62))


def _count(sides: Sequence[Any], most: int) -> int | None:
    """Return the number of rows, if all sides agree in one; refuse unlike ones that are long.

    So are sides in files refused, which may be long in other ways, before they are read.
    """
    counts = [_length(side) for side in sides]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    unread = any(isinstance(side, Source) for side in sides)
    if len(set(known)) > 1 and (unread or max(known) > most):
        words = (f"{name} has {n}" for name, n in zip(_SIDES, known, strict=False))
        raise DataError(f"{', '.join(words)} rows; row i of each must go together")
    return known[0] if len(set(known)) == 1 else None


def _check_beside(n: int, **beside: Any) -> None:
    """Refuse groups or times that are not one for each of n rows."""
    for name, values in beside.items():
        given = values is not None and not isinstance(values, bool | np.bool_)
        if given and _length(values) != n:
            raise DataError(f"{name} must be one value for each of the {n} rows")


def _length(value: Any) -> int | None:
    """Return how many rows something has; of what holds none, `as_rows` says what is wrong."""
    if not hasattr(value, "__getitem__") and not isinstance(value, Source):
        return None
    try:
        return None if isinstance(value, str | bytes | dict) else len(value)
    except TypeError:
        return None


def _some(n: int, k: int, rng: np.random.Generator) -> Rows:
    """Return k of n rows, rising, each set of k as likely as any other."""
    return np.sort(rng.choice(n, size=k, replace=False, shuffle=False)).astype(np.int64)


def _stretch(order: Any, n: int, k: int, rng: np.random.Generator) -> Rows:
    """Return k rows that follow each other in time."""
    if isinstance(order, bool | np.bool_):
        start = int(rng.integers(0, n - k + 1))
        return np.arange(start, start + k)
    at = int(rng.integers(0, n))
    places, found = 0, None
    for times in _times(order):
        if places <= at < places + len(times):
            found = times[at - places]
        places += len(times)
    if found is None or places != n:
        raise DataError(f"order has {places} values; pass one value for each of the {n} rows")
    return _around(order, found, k)


def _around(order: Any, start: Any, k: int) -> Rows:
    """Return the k rows from the time `start` on; at the end of time, some before it as well."""
    after, before, first = _Least(k), _Least(k), 0
    for times in _times(order):
        rows, late = np.arange(first, first + len(times)), times >= start
        after.add(times[late], rows[late])
        before.add(-times[~late], rows[~late])
        first += len(times)
    rows = after.rows()
    return np.sort(np.concatenate([rows, before.rows()[: k - len(rows)]]))


class _Least:
    """The rows of the k least values of many, never holding many more than k; ties by row."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._values: list[NDArray[np.float64]] = []
        self._rows: list[Rows] = []
        self._held = 0

    def add(self, values: NDArray[np.float64], rows: Rows) -> None:
        """Look at further values."""
        self._values.append(values)
        self._rows.append(rows)
        self._held += len(rows)
        if self._held > 2 * self._k:
            self.rows()

    def rows(self) -> Rows:
        """Return the rows, by value."""
        values = np.concatenate(self._values or [np.empty(0)])
        rows = np.concatenate(self._rows or [np.empty(0, np.int64)])
        least = np.lexsort((rows, values))[: self._k]
        self._values, self._rows, self._held = [values[least]], [rows[least]], len(least)
        return self._rows[0]


def _times(order: Any) -> Iterator[NDArray[np.float64]]:
    """Yield times in pieces, as numbers that rise with time."""
    for piece in order.pieces() if isinstance(order, Source) else (order,):
        times = as_times(piece)
        yield (times.astype(np.int64) if times.dtype.kind in "mM" else times).astype(np.float64)


def _subsampled(k: int, n: int, in_time: bool) -> Caution:
    how = "one stretch of time that begins at random" if in_time else "drawn at random"
    return Caution(
        "subsampled",
        f"{k:,} of {n:,} rows were used, {how}",
        "More of them would sharpen the answer a little and take longer: max_rows= (--max-rows)",
    )
