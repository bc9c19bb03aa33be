"""Datasets of items (x, y), as torch has them: anything with a length that gives items by number.

An item is asked for once, and only if its row is drawn; both of its parts must be numbers of the
shape that the first item has. No DataLoader is needed, and torch need not be there.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, printable
from .source import Rows, Source

__all__ = ["DatasetSide", "as_two_sides"]

_PIECE = 4096  # items


def as_two_sides(x: Any, y: Any) -> tuple[Any, Any]:
    """Return both sides: those given or, without y, the halves of a dataset x of pairs."""
    if y is not None or not _is_dataset(x):
        return x, y
    if not hasattr(x, "__len__"):
        raise DataError(
            "the dataset has no length: pass one whose items go by number, or arrays of its items"
        )
    items = _Items(x)
    return DatasetSide(items, 0), DatasetSide(items, 1)


def _is_dataset(value: Any) -> bool:
    """Tell a dataset from an array, a frame or a list, which are one side."""
    if isinstance(value, list | tuple | dict | str | bytes | Source):
        return False
    gives = hasattr(value, "__getitem__") or hasattr(value, "__iter__")
    return gives and not any(hasattr(value, a) for a in ("shape", "columns", "dtype", "read"))


class DatasetSide:
    """One part of the items of a dataset."""

    def __init__(self, items: "_Items", part: int):
        self._items, self._part = items, part

    @property
    def row_width(self) -> int:
        """Values a row."""
        return max(1, self._items.first()[self._part].size)

    def __len__(self) -> int:
        return len(self._items)

    def take(self, rows: Rows | None = None) -> NDArray[np.float64]:
        """Return this part of some items, or of all."""
        return self._items.both(np.arange(len(self)) if rows is None else rows)[self._part]

    def pieces(self) -> Iterator[NDArray[np.float64]]:
        """Yield this part of all items, some at a time."""
        for start in range(0, len(self), _PIECE):
            yield self.take(np.arange(start, min(start + _PIECE, len(self))))


class _Items:
    """The items of a dataset; those that were asked for last are remembered for the other half."""

    def __init__(self, dataset: Any):
        self._dataset = dataset
        self._last: tuple[Rows, tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None
        self._first: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def __len__(self) -> int:
        return len(self._dataset)

    def first(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the first item, which says what shape the others have."""
        if self._first is None:
            if len(self) == 0:
                raise DataError("the dataset has no items")
            self._first = self._item(0)
        return self._first

    def both(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return both parts (k, ...) of the items at `rows`."""
        if self._last is not None and np.array_equal(self._last[0], rows):
            (_, found), self._last = self._last, None
            return found
        x, y = (np.empty((len(rows), *part.shape)) for part in self.first())
        for place, row in enumerate(rows.tolist()):
            item = self.first() if row == 0 else self._item(row)
            for side, part, name in zip((x, y), item, "xy", strict=True):
                if part.shape != side.shape[1:]:
                    raise DataError(
                        f"item {row} of the dataset has {name} of shape {part.shape} where item 0 "
                        f"has {side.shape[1:]}: all must be of one shape"
                    )
                side[place] = part
        self._last = rows, (x, y)
        return x, y

    def _item(self, row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return one item as two arrays."""
        try:
            item = self._dataset[row]
        except Exception as error:  # code of the user's own, which may raise anything
            why = printable(error, 200) or type(error).__name__
            raise DataError(f"item {row} of the dataset cannot be had: {why}") from error
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise DataError(
                f"item {row} of the dataset is {_kind(item)}, and must be a pair (x, y)"
            )
        return _numbers(item[0], row, "x"), _numbers(item[1], row, "y")


def _numbers(part: Any, row: int, name: str) -> NDArray[np.float64]:
    where = f"{name} of item {row} of the dataset"
    try:
        if hasattr(part, "detach"):
            part = part.detach().cpu().double()
        array = np.asarray(part)
    except Exception as error:  # ragged lists, tensors of another kind, images that are closed
        raise DataError(f"{where} is no array: {printable(error, 120)}") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{where} holds {array.dtype}, not numbers: encode it as numbers")
    return array.astype(np.float64)


def _kind(item: Any) -> str:
    if isinstance(item, tuple | list):
        return f"{len(item)} things"
    return f"one {type(item).__name__}"
