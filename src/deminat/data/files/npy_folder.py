"""A folder of .npy files: each file is one row, such as an image, in the natural order of names.

`cell2.npy` comes before `cell10.npy`. All files must hold numbers and have one shape. Each header
is compared with the size of its file before a value is read, and nothing is ever unpickled. Files
with other suffixes are ignored.

Row i of a table belongs to file i of a folder, and a table is often in alphabetical order. Where a
column of it names the files, the two orders are compared.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError, printable
from ..source import Rows, Source, row_blocks
from .columns import Columns, Side, Table, quote
from .guards import check_memory, check_readable, parsing, show_path
from .npy import map_npy

__all__ = ["Folder", "is_folder", "match_folders", "open_folder"]

_FILES_PER_PIECE = 1024


@dataclass(frozen=True)
class Folder:
    """Files of one shape, in order.

    Attributes:
        path: The folder.
        files: One file per row.
        shape: The shape of each array.
        named_by: The column of a table that names the files in this order, if there is one.
    """

    path: Path
    files: list[Path] = field(repr=False)
    shape: tuple[int, ...]
    named_by: str | None = None

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: Rows | None = None) -> NDArray[np.float64]:
        """Return the arrays (k, ...) of some files, or of all."""
        numbers = range(len(self)) if rows is None else rows.tolist()
        check_memory(self.path, 8 * len(numbers) * self.row_width, "use fewer rows: --max-rows")
        found = np.empty((len(numbers), *self.shape))
        for place, number in enumerate(numbers):
            found[place] = self._read(self.files[number])
        return found

    def pieces(self) -> Iterator[NDArray[np.float64]]:
        """Yield the arrays of all files, some at a time."""
        yield from map(self.take, row_blocks(len(self), _FILES_PER_PIECE))

    def _read(self, file: Path) -> NDArray[Any]:
        """Return the array of one file."""
        values = map_npy(check_readable(file))
        if values.shape != self.shape:
            raise DataError(
                f"{show_path(file)} has shape {values.shape} where "
                f"{show_path(self.files[0].name)} has {self.shape}: all files of a folder must "
                "have one shape"
            )
        if values.dtype.kind in "iu" and np.abs(values.astype(np.float64)).max() > 2**53:
            raise DataError(
                f"{show_path(file)} holds integers beyond 2**53, whose last digits would be lost: "
                "subtract an offset"
            )
        return values


def is_folder(path: Path) -> bool:
    """Return whether there is a folder at `path` that can be accessed."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def open_folder(path: Path) -> Folder:
    """Return the rows of a folder; only the first file is opened."""
    with parsing(path, "a folder"):
        files = sorted((f for f in path.iterdir() if f.suffix.lower() == ".npy"), key=_natural)
    if not files:
        raise DataError(
            f"{show_path(path)} is a directory without .npy files: save each row as one"
        )
    return Folder(path, files, map_npy(check_readable(files[0])).shape)


def _natural(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts numbers in names by their value."""
    parts = re.split(r"(\d+)", file.name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)], file.name


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
    names, stems = [file.name for file in folder.files], [file.stem for file in folder.files]
    # Stems that are numbers may be something else in a table, such as ranks.
    ways = [names] if all(stem.isdecimal() for stem in stems) else [names, stems]
    errors = []
    for column in _candidates(table, {*chain(*ways)}):
        cells = pl.DataFrame(table.pick([column], [column])).to_series().to_list()
        found = [_base_name(cell) for cell in cells]
        for way in (way for way in ways if sorted(way) == sorted(found)):
            if found == way:
                return column
            errors.append(_order_error(folder, table, column, found, way))
    if errors:
        raise errors[0]
    return None


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
