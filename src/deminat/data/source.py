"""Rows that stay where they are, such as in a file, until they are needed.

Datasets of pairs (x, y) as in torch are objects with a length that return items by number. Each
item is loaded once, and only if its row is used. Both parts must be numbers of the same shape as in
the first item. Neither a DataLoader nor torch is needed.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, printable
from .arrays import gather

__all__ = ["DatasetSide", "Rows", "Source", "as_two_sides", "row_blocks", "take_rows", "width"]

Rows = NDArray[np.int64]
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]

_ITEMS_PER_PIECE = 4096


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


def as_two_sides(x: Any, y: Any) -> tuple[Any, Any]:
    """Return x and y or, without y, the two parts of a dataset x of pairs."""
    if y is not None or not _is_dataset(x):
        return x, y
    if not hasattr(x, "__len__"):
        raise DataError(
            "the dataset has no length: pass one whose items go by number, or arrays of its items"
        )
    items = _Items(x)
    return DatasetSide(items, 0), DatasetSide(items, 1)


class DatasetSide:
    """One part of the items of a dataset."""

    def __init__(self, items: "_Items", part: int):
        self._items, self._part = items, part

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return max(1, self._items.first[self._part].size)

    def __len__(self) -> int:
        return len(self._items)

    def take(self, rows: Rows | None = None) -> NDArray[np.float64]:
        """Return this part of some items, or of all."""
        return self._items.load(np.arange(len(self)) if rows is None else rows)[self._part]

    def pieces(self) -> Iterator[NDArray[np.float64]]:
        """Yield this part of all items, some at a time."""
        yield from map(self.take, row_blocks(len(self), _ITEMS_PER_PIECE))


class _Items:
    """The items of a dataset; the last ones loaded are stored until the other part is read."""

    def __init__(self, dataset: Any):
        self._dataset = dataset
        self._last: tuple[Rows, Pair] | None = None

    def __len__(self) -> int:
        return len(self._dataset)

    @cached_property
    def first(self) -> Pair:
        """The first item, whose shapes the others must have."""
        if len(self) == 0:
            raise DataError("the dataset has no items")
        return self._item(0)

    def load(self, rows: Rows) -> Pair:
        """Return both parts (k, ...) of the items at `rows`."""
        if self._last is not None and np.array_equal(self._last[0], rows):
            (_, found), self._last = self._last, None
            return found
        x, y = (np.empty((len(rows), *part.shape)) for part in self.first)
        for place, row in enumerate(rows.tolist()):
            item = self.first if row == 0 else self._item(row)
            for side, part, name in zip((x, y), item, "xy", strict=True):
                if part.shape != side.shape[1:]:
                    raise DataError(
                        f"item {row} of the dataset has {name} of shape {part.shape} where item 0 "
                        f"has {side.shape[1:]}: all items must have one shape"
                    )
                side[place] = part
        self._last = rows, (x, y)
        return x, y

    def _item(self, row: int) -> Pair:
        """Return one item as two arrays."""
        try:
            item = self._dataset[row]
        except Exception as error:  # the user's code may raise anything
            why = printable(error, 200) or type(error).__name__
            raise DataError(f"item {row} of the dataset cannot be loaded: {why}") from error
        several = isinstance(item, tuple | list)
        if several and len(item) == 2:
            return _numbers(item[0], row, "x"), _numbers(item[1], row, "y")
        kind = f"a sequence of length {len(item)}" if several else f"a single {type(item).__name__}"
        raise DataError(f"item {row} of the dataset is {kind}: it must be a pair (x, y)")


def _is_dataset(value: Any) -> bool:
    """Return whether a value is a dataset, not an array, a frame or a list."""
    if isinstance(value, list | tuple | dict | str | bytes | Source):
        return False
    gives = hasattr(value, "__getitem__") or hasattr(value, "__iter__")
    return gives and not any(hasattr(value, a) for a in ("shape", "columns", "dtype", "read"))


def _numbers(part: Any, row: int, name: str) -> NDArray[np.float64]:
    """Return one part of an item as an array of float64."""
    where = f"{name} of item {row} of the dataset"
    try:
        if hasattr(part, "detach"):
            part = part.detach().cpu().double()
        array = np.asarray(part)
    except Exception as error:  # ragged lists, complex tensors, closed images
        raise DataError(f"{where} is not an array: {printable(error, 120)}") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{where} holds {array.dtype}, not numbers: encode it as numbers")
    return array.astype(np.float64)
