"""Folders beside tables: rows go together by place, and a column of names shows whether they do.

A folder is read in the natural order of its names, a table as it is written, often in the order of
letters: `cell10` before `cell2`. Where the table names the files, the two orders are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import polars as pl

from ...errors import DataError, printable
from ..source import Source
from .columns import Side, Table, quote
from .guards import show_path
from .npy_folder import Folder
from .parquet import ParquetTable
from .sources import Columns
from .text import TextTable
from .text_stream import LongTable

__all__ = ["match_folders"]

_TEXTS = pl.String, pl.Categorical, pl.Enum


def match_folders(sides: Sequence[Source | Side]) -> tuple[Source | Side, ...]:
    """Return the sides, of which folders know what column, if any, names their files in order.

    Raises:
        DataError: If a column names the files of a folder in another order.
    """
    table = next((side.table for side in sides if isinstance(side, Columns)), None)
    if table is None:
        return tuple(sides)
    return tuple(
        replace(side, named_by=_naming(side, table)) if isinstance(side, Folder) else side
        for side in sides
    )


def _naming(folder: Folder, table: Table) -> str | None:
    """Return the column that names the files in their order; refuse one in any other."""
    if table.rows != len(folder):  # refused where rows are counted
        return None
    known = _names(folder)
    faults = []
    for column in _candidates(table, {name for names in known for name in names}):
        cells = _cells(table, column)
        for names in (names for names in known if sorted(names) == sorted(cells)):
            if cells == names:
                return column
            faults.append(_misplaced(folder, table, column, cells, names))
    if faults:
        raise faults[0]
    return None


def _names(folder: Folder) -> list[list[str]]:
    """Return what a table may call the files: with .npy, or without unless that is a number.

    A column of numbers may be anything, such as ranks.
    """
    stems = [file.stem for file in folder.files]
    names = [file.name for file in folder.files]
    return [names] if all(stem.isdecimal() for stem in stems) else [names, stems]


def _candidates(table: Table, names: set[str]) -> list[str]:
    """Return the columns of text whose first value is the name of a file."""
    if isinstance(table, ParquetTable):
        texts = [name for name, dtype in table.schema.items() if dtype in _TEXTS]
    else:
        texts = list(table.names) if isinstance(table, TextTable | LongTable) else []
    if not texts:
        return []
    first = next(table.pieces(texts, texts))
    return [text for text, cells in zip(texts, first, strict=True) if _name(cells[0]) in names]


def _cells(table: Table, column: str) -> list[str]:
    (side,) = table.pick([[column]], [column])
    return [_name(cell) for cell in pl.DataFrame(side).to_series().to_list()]


def _name(cell: str | None) -> str:
    """Return the name of a file, whatever folder it is said to be in."""
    return PurePath(cell or "").name


def _misplaced(
    folder: Folder, table: Table, column: str, cells: list[str], names: list[str]
) -> DataError:
    """Return the error for a column that names the files in another order."""
    row = next(i for i, pair in enumerate(zip(cells, names, strict=True)) if len(set(pair)) > 1)
    return DataError(
        f"{table.label}: column {quote(column)} has {printable(cells[row])} in row {row + 1} "
        f"where {show_path(folder.path)}/ has {printable(names[row])}: sort the rows by that "
        "column, "
        "with numbers in it by their value (2 before 10)"
    )
