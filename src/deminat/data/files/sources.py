"""Sides that stay in their files until rows of them are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from ..source import Rows
from .archives import Dataset
from .columns import Side, Table, quote

__all__ = ["Columns", "Labels", "Times", "check_recurring"]

_FEW = 50  # values that may all be different
_MANY = 1_000_000  # values that are looked at: all different, they are an identifier's


@dataclass(frozen=True)
class Columns:
    """Some columns of a table."""

    table: Table = field(repr=False)
    names: list[str]
    categorical: frozenset[str] = frozenset()

    @property
    def row_width(self) -> int:
        """Values a row."""
        return len(self.names)

    def __len__(self) -> int:
        return self.table.rows

    def take(self, rows: Rows | None = None) -> Side:
        """Return the columns of some rows, or of all."""
        return self.table.pick([self.names], self.categorical, rows)[0]

    def pieces(self) -> Iterator[Side]:
        """Yield the columns of all rows, some rows at a time."""
        yield from self.table.pieces(self.names, self.categorical)


@dataclass(frozen=True)
class Labels:
    """One column, as names."""

    side: Columns | Dataset

    @property
    def row_width(self) -> int:
        """Values a row."""
        return self.side.row_width

    def __len__(self) -> int:
        return len(self.side)

    def take(self, rows: Rows | None = None) -> NDArray[Any]:
        """Return the names in some rows, or in all."""
        return _values(self.side.take(rows))

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield the names in all rows, some rows at a time."""
        for side in self.side.pieces():
            yield _values(side)


@dataclass(frozen=True)
class Times:
    """One column, as numbers or, where it holds none, as text that may be dates and times."""

    numbers: Columns | Dataset
    texts: Labels

    @property
    def row_width(self) -> int:
        """Values a row."""
        return 1

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Rows | None = None) -> NDArray[Any]:
        """Return the times of some rows, or of all."""
        try:
            return _values(self.numbers.take(rows))
        except DataError:
            return self.texts.take(rows)

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield the times of all rows, some rows at a time."""
        side = self.numbers
        try:
            side.take(np.arange(1))
        except DataError:
            side = self.texts.side
        for piece in side.pieces():
            yield _values(piece)


def check_recurring(side: Columns) -> None:
    """Refuse a column that is declared to be a category and in which no value occurs twice.

    Most are known after their first rows, and no more is read.
    """
    names = [name for name in side.names if name in side.categorical]
    seen: dict[str, set[str]] = {name: set() for name in names}
    for piece in side.table.pieces(names, names) if names else ():
        for name, cells in zip(names, pl.DataFrame(piece), strict=True):
            if name in seen and _recurs(cells.drop_nulls(), seen[name]):
                del seen[name]
        if not seen or max(map(len, seen.values())) > _MANY:
            break
    for name, values in seen.items():
        if len(values) > _FEW:
            raise DataError(
                f"{side.table.label}: every value of column {quote(name)} occurs once "
                f"({len(values)} were looked at): is it an identifier? It tells nothing about "
                "other rows: leave it out"
            )


def _recurs(cells: pl.Series, seen: set[str]) -> bool:
    """Return whether a value is there twice, or was seen before; else it is seen now."""
    if cells.n_unique() < len(cells):
        return True
    values = set(cells.to_list())
    again = not seen.isdisjoint(values)
    seen |= values
    return again


def _values(side: Side) -> NDArray[Any]:
    """Return the values of one column (n,)."""
    if isinstance(side, np.ndarray):
        return side[:, 0] if side.ndim == 2 and side.shape[1] == 1 else side
    return side.to_series().to_numpy(allow_copy=True)
