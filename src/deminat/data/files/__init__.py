"""Files to columns: CSV, Parquet, NPY, NPZ, HDF5, and folders of NPY.

A file is taken at its word only after checking: sizes it declares are compared with the file
and with the memory of the machine before anything is read, rows must have as many fields as
the first, and nothing is ever unpickled. What cannot be read is a `DataError` of one line.

`scan` and its kin leave values where they are: they return sources, of which `deminat.estimate`
takes the rows that it uses, so that a file may be far larger than memory; `read` reads them all.

| suffix              | holds                                    | `x` and `y` name             |
|---------------------|------------------------------------------|------------------------------|
| .csv .tsv .txt      | a table; the dialect is found by looking | columns, by name or number   |
| .parquet .pq        | a table; only the chosen columns are read| columns, by name or number   |
| .npy                | a 2-d array                              | columns, by number           |
| .npz                | several arrays                           | arrays, by default `x`, `y`  |
| .h5 .hdf5           | several arrays                           | arrays, by their paths       |
| a folder            | an .npy a row, cell2 before cell10       | itself: `x=folder/`          |

`idx` reads the arrays of bytes that `deminat.datasets` is after.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError, printable
from ..source import Source
from . import npy as arrays
from . import parquet, text
from . import text_stream as long
from .archives import ARCHIVES, Dataset, scan_array, scan_arrays
from .columns import (
    Side,
    Table,
    choose_columns,
    find_columns,
    is_missing,
    pairable_columns,
    parse_names,
    resolve,
)
from .folder_order import match_folders
from .guards import PathLike, check_readable, show_path
from .npy_folder import is_folder, open_folder
from .sources import Columns, Labels, Times

__all__ = [
    "PICKLES",
    "read",
    "read_all",
    "read_columns",
    "read_pair",
    "scan",
    "scan_labels",
    "scan_pair",
    "scan_times",
]

_TABLES: dict[str, Callable[[Path], Table]] = {
    ".csv": long.open_text,
    ".tsv": long.open_text,
    ".txt": long.open_text,
    ".parquet": parquet.open_parquet,
    ".pq": parquet.open_parquet,
    ".npy": arrays.open_npy,
}
_TABLE_KINDS = long.LongTable, parquet.ParquetTable, text.TextTable
_SLASHES = tuple({"/", os.sep})
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
_UNPACK = {
    ".gz": "gunzip -k",
    ".bz2": "bunzip2 -k",
    ".xz": "unxz -k",
    ".zst": "unzstd",
    ".zip": "unzip",
}
_SHEETS = (".xlsx", ".xls", ".ods")


def read(
    path: PathLike,
    x: str | None,
    y: str | None,
    *,
    given: str | None = None,
    categorical: Sequence[str] = (),
) -> tuple[Side, ...]:
    """Read the two sides of a pair from one file, and what is known already.

    Args:
        path: A file ending in .csv, .tsv, .txt, .parquet, .pq, .npy, .npz, .h5 or .hdf5.
        x: The columns of the first side, separated by commas, with the wildcards of file names
            (gene_*); a name that holds a comma goes in double quotes. A column may be given by
            its number, from 0, if none has it as its name. For .npz and HDF5, the name of an
            array ("x" if None).
        y: The same for the second side.
        given: The same for what is known already, if anything is.
        categorical: Columns (arrays of a .npz) that hold labels rather than quantities.

    Returns:
        Two sides of n rows, three with `given`: for a table a polars frame, Float64 and, where a
        column is categorical, Enum; for .npy and .npz the array as it is stored. What is missing
        is NaN, or null in a categorical column; in text, so are NA, N/A,
        NaN, NULL, None, #N/A, a dot, ? and -.

    Raises:
        DataError: If the file cannot be read, or the columns are not there or not numbers.
    """
    x_side, y_side, *known = scan(path, x, y, given=given, categorical=categorical)
    return read_all(x_side), read_all(y_side), *map(read_all, known)


def scan(
    path: PathLike,
    x: str | None,
    y: str | None,
    *,
    given: str | None = None,
    categorical: Sequence[str] = (),
) -> tuple[Source | Side, ...]:
    """Find the two sides of a pair in one file, and what is known already, without reading values.

    Args are those of `read`; besides, x, y or given may be a folder of .npy files, written with a
    slash at its end: its rows belong to those of the file.

    Returns:
        As many sources of rows; arrays of an .npz are read.
    """
    folders = {name: _folder(side) for name, side in zip("xyz", (x, y, given), strict=True)}
    if any(folders.values()):
        return _beside_folders(_checked(path), (x, y, given), folders, categorical)
    path = _checked(path)
    if path.suffix.lower() in ARCHIVES:
        return scan_arrays(path, x, y, given, categorical)
    table = _TABLES[path.suffix.lower()](path)
    groups, labels = choose_columns(table, x, y, given, categorical)
    return tuple(Columns(table, group, frozenset(labels)) for group in groups)


def read_pair(
    x_path: PathLike, y_path: PathLike, *, categorical: Sequence[str] = ()
) -> tuple[Side, Side]:
    """Read the two sides of a pair from two files, all columns of each.

    Args:
        x_path: The file of the first side. A .npy of any shape (n, ...) stays on disk and is
            mapped into memory; a .npz must hold exactly one array.
        y_path: The file of the second side; its rows belong to those of the first.
        categorical: Columns of either table that hold labels rather than quantities.

    Returns:
        Two sides, each as from `read`.

    Raises:
        DataError: If a file cannot be read, or both are the same file.
    """
    x, y = scan_pair(x_path, y_path, categorical=categorical)
    return read_all(x), read_all(y)


def scan_pair(
    x_path: PathLike, y_path: PathLike, *, categorical: Sequence[str] = ()
) -> tuple[Source | Side, Source | Side]:
    """Find the two sides of a pair in two files, or folders of .npy files, all columns of each.

    Args are those of `read_pair`.

    Returns:
        Two sources of rows, or arrays: of an .npy mapped from the file, of an .npz read.
    """
    paths = [_present(path) for path in (x_path, y_path)]
    if paths[0].samefile(paths[1]):
        raise DataError(
            f"{show_path(paths[0])} is given for both x and y: give two different files"
        )
    x, y = (_open(path) for path in paths)
    tables = [side for side in (x, y) if isinstance(side, _TABLE_KINDS)]
    for name in categorical:
        if all(is_missing(table, name) for table in tables):
            raise DataError(f"no column '{printable(name)}' in either file: see --categorical")
    x_side, y_side = match_folders([_whole(x, categorical), _whole(y, categorical)])
    return x_side, y_side


def read_columns(
    path: PathLike,
    x: str | None,
    y: str | None,
    *,
    categorical: str = "",
    apart: Sequence[str] = (),
) -> tuple[pl.DataFrame, list[str], list[str] | None, list[str]]:
    """Read columns of a table, of which each may be paired with each.

    Args:
        path: A table, as of `read`, no archive.
        x: Columns, separated by commas, with the wildcards of file names; all that can be read as
            numbers or labels if None.
        y: Columns to pair those with; `None` for each other.
        categorical: Columns that hold labels rather than quantities, separated by commas.
        apart: Columns that are no side unless named.

    Returns:
        A frame, the names of x, those of y, and those that nobody named and cannot be read.
    """
    path = _checked(path)
    if path.suffix.lower() in ARCHIVES:
        raise DataError(
            f"{show_path(path)} holds arrays, and this wants a table: see CSV or Parquet"
        )
    return pairable_columns(
        _TABLES[path.suffix.lower()](path), x, y, parse_names(categorical), apart
    )


def scan_labels(path: PathLike, name: str) -> Source | NDArray[Any]:
    """Find a column of names or numbers (n,), or an array of an archive: equal rows, equal values.

    Labels of a table are text, whatever they look like.
    """
    side = _column(path, name, labels=True)
    return Labels(side) if isinstance(side, Columns | Dataset) else np.asarray(side)


def scan_times(path: PathLike, name: str) -> Source | NDArray[Any]:
    """Find a column (n,) of numbers, or of text that may be dates and times."""
    side = _column(path, name, labels=False)
    if not isinstance(side, Columns):
        return Labels(side) if isinstance(side, Dataset) else np.asarray(side)
    return Times(side, Labels(replace(side, categorical=frozenset(side.names))))


def read_all(side: Source | Side) -> Side:
    """Return all rows of what was found."""
    return side.take() if isinstance(side, Source) else side


def _column(path: PathLike, name: str, labels: bool) -> Source | Side:
    """Return one column of a table, or an array of an archive."""
    path = _checked(path)
    if path.suffix.lower() in ARCHIVES:
        return scan_array(path, name)
    table = _TABLES[path.suffix.lower()](path)
    column = resolve(table, name)
    return Columns(table, [column], frozenset([column] if labels else []))


def _folder(name: str | None) -> Path | None:
    """Return the folder that a side names, if it does so with a slash at its end."""
    return Path(name) if name and name.endswith(_SLASHES) and is_folder(Path(name)) else None


def _beside_folders(
    path: Path,
    sides: Sequence[str | None],
    folders: dict[str, Path | None],
    categorical: Sequence[str],
) -> tuple[Source | Side, ...]:
    """Return sides of which some are folders and the others columns or arrays of one file."""
    named_twice = [f for f in folders.values() if f]
    if len({f.resolve() for f in named_twice}) < len(named_twice):
        raise DataError(f"{show_path(named_twice[0])} is on both sides: choose another folder")
    found: list[Source | Side] = []
    for (name, folder), side in zip(folders.items(), sides, strict=True):
        if folder is not None:
            found.append(open_folder(folder))
        elif side is not None:
            found.append(_part(path, side, categorical))
        elif name != "z":
            raise DataError(f"say what {name} is with --{name} NAME: columns of {show_path(path)}")
    return match_folders(found)


def _part(path: Path, side: str, categorical: Sequence[str]) -> Source | Side:
    """Return some columns of a table, or an array of an archive."""
    if path.suffix.lower() in ARCHIVES:
        return scan_array(path, side)
    table = _TABLES[path.suffix.lower()](path)
    labels = frozenset(resolve(table, name) for name in categorical)
    return Columns(table, find_columns(table, side), labels)


def _open(path: Path) -> Table | Source | Side:
    """Return the table at `path`, or what it holds if that is no table."""
    if is_folder(path):
        return open_folder(path)
    suffix = path.suffix.lower()
    if suffix in ARCHIVES:
        return scan_array(path)
    return arrays.map_npy(path) if suffix == ".npy" else _TABLES[suffix](path)


def _whole(side: Table | Source | Side, categorical: Sequence[str]) -> Source | Side:
    """Return all columns of a table; anything else as it is."""
    if not isinstance(side, _TABLE_KINDS):
        return side  # type: ignore[return-value]
    declared = (resolve(side, name) for name in categorical if not is_missing(side, name))
    return Columns(side, list(side.names), frozenset(declared))


def _present(path: PathLike) -> Path:
    """Return `path` if it is a folder, or a file of a kind that can be read."""
    return Path(path) if is_folder(Path(path)) else _checked(path)


def _checked(path: PathLike) -> Path:
    """Return `path` if it is a file of a kind that can be read."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise DataError(
            f"{show_path(path)} could run code when opened and is not read: save it as .npz or "
            ".parquet"
        )
    if suffix not in (*_TABLES, *ARCHIVES):
        raise DataError(f"{show_path(path)} {_other_kind(path)} {', '.join((*_TABLES, *ARCHIVES))}")
    return check_readable(path)


def _other_kind(path: Path) -> str:
    """Return what is wrong with a file that cannot be read, up to the kinds that can."""
    suffix = path.suffix.lower()
    if suffix in _UNPACK:
        command = f"{_UNPACK[suffix]} {shlex.quote(show_path(path))}"
        return f"is packed: unpack it first ({command}), into one of"
    if suffix in _SHEETS:
        return "is a spreadsheet: save it as CSV from the spreadsheet program; what can be read is"
    return "is of no kind that can be read: save it as one of"
