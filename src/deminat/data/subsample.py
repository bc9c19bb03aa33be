r"""Random subsamples of rows, where there are more than an estimate needs.

An estimate from $k$ rows drawn at random from $n$ is an estimate of the same quantity. With a few
hundred thousand rows, its error is that of the critic rather than sampling noise. So at most
`MAX_ROWS` rows are used, and fewer if they alone would take a gigabyte (`MAX_VALUES`). The draw
depends on the seed and the number of rows only: one seed draws the same rows of a table from any
file format. Other rows are never held in memory.

Rows of groups are drawn one by one together with the names of their groups. So `groups` stays
valid, and for a given number of rows the number of groups, which determines the sampling noise, is
largest. Rows of a time series are only useful with their neighbours: they are one stretch of time
that begins at random.
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
_MIN_ROWS = 2_000  # however wide they are
_SIDES = "x", "y", "given"
_TAG = 0xD2A3  # of this random stream


@dataclass(frozen=True)
class Subsample:
    """The rows that are used, in memory.

    Args:
        sides: The rows of each side, in any form that `as_rows` accepts.
        groups: The groups of these rows.
        order: The times of these rows, or as given.
        rows: (k,) the numbers of these rows in the input, rising; `None` if all are used.
        warnings: A warning if rows were left out.
    """

    sides: tuple[Any, ...]
    groups: Any
    order: Any
    rows: Rows | None = None
    warnings: tuple[Caution, ...] = ()

    def numbers(self, places: Rows) -> Rows:
        """Return the numbers in the input of the rows at `places` in this subsample."""
        return places if self.rows is None else self.rows[places]


def subsample(
    sides: Sequence[Any], groups: Any, order: Any, max_rows: float | None, seed: int
) -> Subsample:
    """Draw rows if there are more than `max_rows`.

    Args:
        sides: Arrays, tensors, frames, lists or sources with the same rows.
        groups: (n,), a source, or None.
        order: (n,), a source, True, False, or None.
        max_rows: The largest number of rows; by default what `MAX_ROWS` and `MAX_VALUES` allow.
        seed: The seed of the draw.
    """
    most = _limit(sides, max_rows)
    n = _count(sides, most)
    plain_order = order is None or isinstance(order, bool | np.bool_)
    in_time = bool(order) if plain_order else True
    rows = None
    if n is not None and n > most:
        for name, values in (("groups", groups), ("order", None if plain_order else order)):
            if values is not None and _length(values) != n:
                raise DataError(f"{name} must be one value for each of the {n} rows")
        rng = np.random.default_rng([_TAG, seed])
        if in_time:
            rows = _stretch(order, n, most, rng)
        else:  # all subsets are equally likely
            rows = np.sort(rng.choice(n, size=most, replace=False, shuffle=False)).astype(np.int64)
    *used, groups = (take_rows(side, rows) for side in (*sides, groups))
    order = order if plain_order else take_rows(order, rows)
    warnings = () if rows is None or n is None else (_subsampled(len(rows), n, in_time),)
    return Subsample(tuple(used), groups, order, rows, warnings)


def _limit(sides: Sequence[Any], max_rows: float | None) -> int:
    """Return the largest number of rows to use."""
    if max_rows is None:
        row_values = max(1, sum(map(width, sides)))
        return min(MAX_ROWS, max(_MIN_ROWS, MAX_VALUES // row_values))
    if not max_rows >= 1:
        raise ValueError(f"max_rows must be at least 1, got {max_rows!r}")
    return int(min(max_rows, 2**62))


def _count(sides: Sequence[Any], most: int) -> int | None:
    """Return the number of rows, or None if the sides differ or one has no length.

    Sides that differ are refused here if they are long or in files, before they are read.
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


def _length(value: Any) -> int | None:
    """Return the number of rows of a value, or None; `as_rows` then says what is wrong."""
    if not hasattr(value, "__getitem__") and not isinstance(value, Source):
        return None
    try:
        return None if isinstance(value, str | bytes | dict) else len(value)
    except TypeError:
        return None


def _stretch(order: Any, n: int, k: int, rng: np.random.Generator) -> Rows:
    """Return k rows that are consecutive in time."""
    if isinstance(order, bool | np.bool_):
        start = int(rng.integers(0, n - k + 1))
        return np.arange(start, start + k)
    row = int(rng.integers(0, n))
    count, start_time = 0, None
    for times in _times(order):
        if count <= row < count + len(times):
            start_time = times[row - count]
        count += len(times)
    if start_time is None or count != n:
        raise DataError(f"order has {count} values; pass one value for each of the {n} rows")
    return _around(order, start_time, k)


def _around(order: Any, start: Any, k: int) -> Rows:
    """Return the k rows from the time `start` on; if they are fewer, also the last before it."""
    after, before, first = _Smallest(k), _Smallest(k), 0
    for times in _times(order):
        rows, late = np.arange(first, first + len(times)), times >= start
        after.add(times[late], rows[late])
        before.add(-times[~late], rows[~late])
        first += len(times)
    rows = after.rows()
    return np.sort(np.concatenate([rows, before.rows()[: k - len(rows)]]))


class _Smallest:
    """The rows of the k smallest values of a stream, in memory of order k; ties go by row."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._values: list[NDArray[np.float64]] = []
        self._rows: list[Rows] = []

    def add(self, values: NDArray[np.float64], rows: Rows) -> None:
        """Add values of the stream."""
        self._values.append(values)
        self._rows.append(rows)
        if sum(map(len, self._rows)) > 2 * self._k:
            self.rows()

    def rows(self) -> Rows:
        """Return the rows, sorted by value."""
        values = np.concatenate(self._values or [np.empty(0)])
        rows = np.concatenate(self._rows or [np.empty(0, np.int64)])
        smallest = np.lexsort((rows, values))[: self._k]
        self._values, self._rows = [values[smallest]], [rows[smallest]]
        return self._rows[0]


def _times(order: Any) -> Iterator[NDArray[np.float64]]:
    """Yield times in pieces, as numbers that increase with time."""
    for piece in order.pieces() if isinstance(order, Source) else (order,):
        times = as_times(piece)
        yield (times.astype(np.int64) if times.dtype.kind in "mM" else times).astype(np.float64)


def _subsampled(k: int, n: int, in_time: bool) -> Caution:
    """Return the warning that k of n rows were used."""
    how = "one stretch of time that begins at random" if in_time else "drawn at random"
    return Caution(
        "subsampled",
        f"{k:,} of {n:,} rows were used, {how}",
        "More rows would sharpen the estimate a little and take longer: max_rows= (--max-rows)",
    )
