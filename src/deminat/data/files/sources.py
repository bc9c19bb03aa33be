"""Columns that stay in their file until rows of them are read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from ..source import Rows, Source
from .columns import Side, Table, quote

__all__ = ["Columns", "Series", "check_recurring"]

_MAY_DIFFER = 50  # values that may all be different in a column of categories
_CHECKED = 1_000_000  # distinct values after which a column is called an identifier


@dataclass(frozen=True)
class Columns:
    """Some columns of a table."""

    table: Table = field(repr=False)
    names: list[str]
    categorical: frozenset[str] = frozenset()

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return len(self.names)

    def __len__(self) -> int:
        return self.table.rows

    def take(self, rows: Rows | None = None) -> Side:
        """Return the columns of some rows, or of all."""
        return self.table.pick(self.names, self.categorical, rows)

    def pieces(self) -> Iterator[Side]:
        """Yield the columns of all rows, some rows at a time."""
        yield from self.table.pieces(self.names, self.categorical)


@dataclass(frozen=True)
class Series:
    """One column as an array (n,).

    Attributes:
        side: The column.
        fallback: The same column as text, used where `side` cannot be read as numbers.
    """

    side: Source
    fallback: Source

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return self.side.row_width

    def __len__(self) -> int:
        return len(self.side)

    def take(self, rows: Rows | None = None) -> NDArray[Any]:
        """Return the values in some rows, or in all."""
        try:
            return _flat(self.side.take(rows))
        except DataError:
            return _flat(self.fallback.take(rows))

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield the values in all rows, some rows at a time."""
        try:
            self.side.take(np.arange(1))
        except DataError:
            yield from map(_flat, self.fallback.pieces())
        else:
            yield from map(_flat, self.side.pieces())


def check_recurring(side: Columns) -> None:
    """Refuse a categorical column in which no value occurs twice.

    Most columns repeat a value in their first rows, and then no more is read.
    """
    names = [name for name in side.names if name in side.categorical]
    seen: dict[str, set[str]] = {name: set() for name in names}
    for piece in side.table.pieces(names, names) if names else ():
        for name, cells in zip(names, pl.DataFrame(piece), strict=True):
            if name in seen and _recurs(cells.drop_nulls(), seen[name]):
                del seen[name]
        if not seen or max(map(len, seen.values())) > _CHECKED:
            break
    for name, values in seen.items():
        if len(values) > _MAY_DIFFER:
            raise DataError(
                f"{side.table.label}: every value of column {quote(name)} occurs once "
                f"({len(values)} values checked): is it an identifier? Those say nothing about "
                "other rows: leave it out"
            )


def _recurs(cells: pl.Series, seen: set[str]) -> bool:
    """Return whether a value occurs twice or is in `seen`; if not, add all values to it."""
    if cells.n_unique() < len(cells):
        return True
    values = set(cells.to_list())
    recurs = not seen.isdisjoint(values)
    seen |= values
    return recurs


def _flat(side: Side) -> NDArray[Any]:
    """Return the values (n,) of one column."""
    if isinstance(side, np.ndarray):
        return side[:, 0] if side.ndim == 2 and side.shape[1] == 1 else side
    return side.to_series().to_numpy(allow_copy=True)
