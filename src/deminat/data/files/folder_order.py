"""The order of the files in a folder, compared with a table that names them.

Row i of a table belongs to file i of a folder. A folder is read in the natural order of its names
(`cell2` before `cell10`), a table as it is written, often in alphabetical order. Where a column of
the table names the files, the two orders are compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import polars as pl

from ...errors import DataError, printable
from ..source import Source
from .columns import Side, Table, quote
from .guards import show_path
from .npy_folder import Folder
from .sources import Columns

__all__ = ["match_folders"]


def match_folders(sides: Sequence[Source | Side]) -> tuple[Source | Side, ...]:
    """Return the sides; each folder records the column, if any, that names its files in order.

    Raises:
        DataError: If a column names the files of a folder in another order.
    """
    table = next((side.table for side in sides if isinstance(side, Columns)), None)
    if table is None:
        return tuple(sides)
    return tuple(
        replace(side, named_by=_naming_column(side, table)) if isinstance(side, Folder) else side
        for side in sides
    )


def _naming_column(folder: Folder, table: Table) -> str | None:
    """Return the column that names the files in their order; refuse any other order."""
    if table.rows != len(folder):  # refused elsewhere, where rows are counted
        return None
    ways = _file_names(folder)
    errors = []
    for column in _candidates(table, {name for names in ways for name in names}):
        cells = pl.DataFrame(table.pick([column], [column])).to_series().to_list()
        found = [_base_name(cell) for cell in cells]
        for names in (names for names in ways if sorted(names) == sorted(found)):
            if found == names:
                return column
            errors.append(_order_error(folder, table, column, found, names))
    if errors:
        raise errors[0]
    return None


def _file_names(folder: Folder) -> list[list[str]]:
    """Return the ways to name the files: with .npy, and without unless that leaves numbers.

    A column of numbers may be something else, such as ranks.
    """
    stems = [file.stem for file in folder.files]
    names = [file.name for file in folder.files]
    return [names] if all(stem.isdecimal() for stem in stems) else [names, stems]


def _candidates(table: Table, names: set[str]) -> list[str]:
    """Return the columns of text whose first value is the name of a file."""
    texts = list(table.text_columns)
    first = next(table.pieces(texts, texts)) if texts else ()
    return [text for text, cells in zip(texts, first, strict=True) if _base_name(cells[0]) in names]


def _base_name(cell: str | None) -> str:
    """Return the name of a file without its folder."""
    return PurePath(cell or "").name


def _order_error(
    folder: Folder, table: Table, column: str, found: list[str], names: list[str]
) -> DataError:
    """Return the error for a column that names the files in another order."""
    row = next(i for i, pair in enumerate(zip(found, names, strict=True)) if len(set(pair)) > 1)
    return DataError(
        f"{table.label}: column {quote(column)} has {printable(found[row])} in row {row + 1} "
        f"where {show_path(folder.path)}/ has {printable(names[row])}: sort the rows by that "
        "column, with numbers in it by value (2 before 10)"
    )
