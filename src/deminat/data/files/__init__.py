"""Files to columns: tables, arrays, archives of arrays, and folders of arrays.

Nothing in a file is trusted before it is checked. Sizes that it declares are compared with the file
and with the available memory before a value is read, all rows must have as many fields as the
first, and nothing is ever unpickled. A file that cannot be read is a `DataError` of one line.

The `scan` functions read no values. They return sources, of which `deminat.estimate` reads the rows
that it uses, so that a file may be much larger than memory. `read` reads all rows.

| file                           | `x` and `y` name                              |
|--------------------------------|-----------------------------------------------|
| a table, such as CSV, Parquet  | columns, by name or number                    |
| a 2-d array (NPY)              | columns, by number                            |
| an archive, such as NPZ, HDF5  | arrays, by name or path; by default `x`, `y`  |
| a folder of NPY files          | the folder itself, one row per file: `x=dir/` |

`formats` is the registry of formats by suffix.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError, printable
from ..source import Source
from . import columns
from .columns import Columns, Series, Side, find_columns, find_labels, is_missing, resolve
from .formats import FORMATS, PICKLES, check_file, open_table, scan_array, scan_arrays, stack_arrays
from .guards import PathLike, show_path
from .npy_folder import is_folder, match_folders, open_folder

__all__ = [
    "FORMATS",
    "PICKLES",
    "read",
    "read_all",
    "read_columns",
    "scan",
    "scan_labels",
    "scan_pair",
    "scan_times",
]

_SLASHES = tuple({"/", os.sep})


def read(path: PathLike, x: str | None, y: str | None, **options: Any) -> tuple[Side, ...]:
    """Read all rows of x, y and, if chosen, `given` from one file; arguments as of `scan`.

    Returns:
        Two sides of n rows, three with `given`. A side of a table is a polars frame, of type
        Float64 or, for categories, Enum. A side of an .npy or an archive is the array as stored.
        A missing value is NaN, in categories null; in text, NA, N/A, NaN, NULL, None, #N/A, a dot,
        ? and - mean missing.
    """
    return tuple(map(read_all, scan(path, x, y, **options)))


def scan(
    path: PathLike,
    x: str | None,
    y: str | None,
    *,
    given: str | None = None,
    categorical: Sequence[str] = (),
) -> tuple[Source | Side, ...]:
    """Find x, y and, if chosen, `given` in one file; values are not read.

    Args:
        path: A file with a suffix in `FORMATS`.
        x: The columns of x, separated by commas, with the wildcards of file names (gene_*). Put a
            name that contains a comma in double quotes. A column may be given by its number,
            counted from 0, if no column has that name. For an archive, the name of an array ("x"
            if None). A folder of .npy files, written with a slash at its end, stands for itself;
            its rows belong to those of the file.
        y: The same for y.
        given: The same for the variable to condition on.
        categorical: Columns (arrays of an archive) that hold categories. Columns of words are
            categories also if they are not listed.

    Returns:
        As many sources of rows; arrays of an .npz are read.

    Raises:
        DataError: If the file cannot be read, or the columns do not exist or are not numbers.
    """
    sides = {"x": x, "y": y, "given": given}
    slashed = {name: Path(side) for name, side in sides.items() if side and side.endswith(_SLASHES)}
    folders = {name: folder for name, folder in slashed.items() if is_folder(folder)}
    path = check_file(path)
    if folders:
        return _scan_with_folders(path, sides, folders, categorical)
    table = open_table(path)
    if table is None:
        return scan_arrays(path, x, y, given, categorical)
    groups, labels = columns.choose_columns(table, x, y, given, categorical)
    return tuple(Columns(table, group, labels) for group in groups)


def scan_pair(
    x_path: PathLike, y_path: PathLike, *, categorical: Sequence[str] = ()
) -> tuple[Source | Side, ...]:
    """Find x and y in two files or folders of .npy files, all columns of each.

    Args:
        x_path: The file of x. An .npy may have any shape (n, ...) and is mapped into memory; an
            archive must hold exactly one array.
        y_path: The file of y; its rows belong to those of x.
        categorical: Columns of either table that hold categories, as of `scan`.

    Returns:
        Two sources of rows or arrays; the array of an .npz is read.

    Raises:
        DataError: If a file cannot be read, or both are the same file.
    """
    paths = [Path(p) if is_folder(Path(p)) else check_file(p) for p in (x_path, y_path)]
    if paths[0].samefile(paths[1]):
        raise DataError(
            f"{show_path(paths[0])} is given for both x and y: give two different files"
        )
    sides = [_open_whole(path) for path in paths]
    tables = [side.table for side in sides if isinstance(side, Columns)]
    for name in categorical:
        if all(is_missing(table, name) for table in tables):
            raise DataError(f"no column '{printable(name)}' in either file: see --categorical")
    return match_folders([_declare(side, categorical) for side in sides])


def read_columns(
    path: PathLike, x: str | None, y: str | None, *, categorical: str, apart: Sequence[str]
) -> tuple[pl.DataFrame, list[str], list[str] | None, list[str]]:
    """Read columns of a table, or of the arrays of an archive, of which any two may be paired.

    Arguments and result are those of `columns.pairable_columns`, except for `path` and for
    `categorical`, which is a list separated by commas.
    """
    path = check_file(path)
    table = open_table(path)
    table = stack_arrays(path) if table is None else table
    return columns.pairable_columns(table, x, y, columns.parse_names(categorical), apart)


def scan_labels(path: PathLike, name: str) -> Source | NDArray[Any]:
    """Find a column (n,), or an array of an archive, as group labels.

    Labels of a table are text, even if they look like numbers.
    """
    side = _scan_column(path, name)
    return Series(_as_text(side), _as_text(side)) if isinstance(side, Source) else np.asarray(side)


def scan_times(path: PathLike, name: str) -> Source | NDArray[Any]:
    """Find a column (n,), or an array of an archive: numbers, or text that may be dates."""
    side = _scan_column(path, name)
    return Series(side, _as_text(side)) if isinstance(side, Source) else np.asarray(side)


def read_all(side: Source | Side) -> Side:
    """Return all rows of a source; an array or frame as it is."""
    return side.take() if isinstance(side, Source) else side


def _scan_column(path: PathLike, name: str) -> Source | Side:
    """Return one column of a table, or an array of an archive."""
    path = check_file(path)
    table = open_table(path)
    return scan_array(path, name) if table is None else Columns(table, [resolve(table, name)])


def _as_text(side: Source) -> Source:
    """Return columns of a table as text; another source as it is."""
    if not isinstance(side, Columns):
        return side
    return replace(side, categorical=frozenset(side.names))


def _scan_with_folders(
    path: Path, sides: dict[str, str | None], folders: dict[str, Path], categorical: Sequence[str]
) -> tuple[Source | Side, ...]:
    """Return sides of which some are folders, the others columns or arrays of one file."""
    first = next(iter(folders.values()))
    if len({folder.resolve() for folder in folders.values()}) < len(folders):
        raise DataError(f"{show_path(first)} is on both sides: choose another folder")
    found: list[Source | Side] = []
    for name, side in sides.items():
        if name in folders:
            found.append(open_folder(folders[name]))
        elif side is not None:
            found.append(_scan_side(path, side, categorical))
        elif name != "given":
            raise DataError(f"choose {name} with --{name} NAME: columns of {show_path(path)}")
    return match_folders(found)


def _scan_side(path: Path, side: str, categorical: Sequence[str]) -> Source | Side:
    """Return some columns of a table, or an array of an archive."""
    table = open_table(path)
    if table is None:
        return scan_array(path, side)
    names = find_columns(table, side)
    return Columns(table, names, find_labels(table, names, categorical))


def _open_whole(path: Path) -> Source | Side:
    """Return all columns of a table, the array of a file, or the rows of a folder."""
    if is_folder(path):
        return open_folder(path)
    open_array = FORMATS[path.suffix.lower()].array
    if open_array is not None:
        return open_array(path)
    table = open_table(path)
    return scan_array(path) if table is None else Columns(table, list(table.names))


def _declare(side: Source | Side, categorical: Sequence[str]) -> Source | Side:
    """Return columns of a table with those named that are categorical."""
    if not isinstance(side, Columns):
        return side
    table = side.table
    declared = [name for name in categorical if not is_missing(table, name)]
    return replace(side, categorical=find_labels(table, side.names, declared))
