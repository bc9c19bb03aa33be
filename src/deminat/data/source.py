"""Rows that stay where they are, such as in a file, until they are needed."""

import math
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from .arrays import gather

__all__ = ["Rows", "Source", "row_blocks", "take_rows", "width"]

Rows = NDArray[np.int64]


@runtime_checkable
class Source(Protocol):
    """Rows of one side, read on request.

    `row_width` is a name that no frame has: asking a lazy frame for its `width` would compute it.
    """

    @property
    def row_width(self) -> int:
        """Number of values per row."""

    def __len__(self) -> int: ...

    def take(self, rows: Rows | None = None) -> Any:
        """Return the array or frame of some rows, in rising order, or of all."""

    def pieces(self) -> Iterator[Any]:
        """Yield the arrays or frames of all rows, some at a time, in order."""


def row_blocks(n: int, size: int) -> Iterator[Rows]:
    """Yield the numbers of n rows in order, at most `size` at a time."""
    for first in range(0, n, size):
        yield np.arange(first, min(first + size, n))


def width(value: Any) -> int:
    """Return the number of values per row."""
    if isinstance(value, Source):
        return value.row_width
    shape = getattr(value, "shape", ())
    return math.prod(shape[1:]) if isinstance(shape, tuple) else 1


def take_rows(value: Any, rows: Rows | None) -> Any:
    """Return some rows, in rising order, of any container; without `rows`, all of it."""
    if isinstance(value, Source):
        return value.take(rows)
    if value is None or rows is None:
        return value
    frame = nw.from_native(value, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(frame, nw.DataFrame | nw.Series):
        return frame[rows].to_native()
    if isinstance(value, list | tuple):
        return [value[row] for row in rows]
    plain = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    return gather(value, rows) if plain else value[rows]
