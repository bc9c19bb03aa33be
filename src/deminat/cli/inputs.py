"""Inputs of the commands: files and columns become sides x, y and z, groups and order of rows."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import DataError, printable
from .console import say

__all__ = [
    "check_installed",
    "label_columns",
    "labels_of_sides",
    "row_column_names",
    "row_columns",
    "scan_sides",
]

# Values of --order that are not the name of a column.
_ORDERS = {None: None, "rows": True, "none": False, "None": False}
# Values of --discrete that are not names of columns.
_DISCRETE = {None: None, "all": True, "none": False}


def check_installed(module: str, purpose: str) -> None:
    """Raise `DataError` if an optional package is missing."""
    if find_spec(module) is None:
        raise DataError(f"{purpose} needs {module}: pip install {module}")


def scan_sides(
    file: Path,
    y_file: Path | None,
    x: str | None,
    y: str | None,
    categorical: str | Sequence[str],
    given: str | None = None,
    *,
    scoring: bool = False,
) -> tuple[Any, Any, Any]:
    """Return x, y and z (`None` without `given`), from columns of one file or from two files.

    With `scoring`, categories that occur only once are allowed.
    """
    from ..data import files
    from ..data.files.columns import parse_names

    names = parse_names(categorical) if isinstance(categorical, str) else categorical
    labels = [name for name in names if name]
    if y_file is None:
        sides = files.scan(file, x, y, given=given, categorical=labels)
    elif x is None and y is None and given is None:
        sides = files.scan_pair(file, y_file, categorical=labels)
    else:
        raise _two_files_error(file, y_file, {"--x": x, "--y": y, "--given": given})
    _check_sides(sides, scoring)
    x_side, y_side, *z_side = sides
    return x_side, y_side, z_side[0] if z_side else None


def _two_files_error(file: Path, y_file: Path, columns: dict[str, str | None]) -> DataError:
    """Return the error for columns named with two files; one may be meant as a column."""
    for path in (file, y_file):
        if not os.path.exists(path):
            ways = " or ".join(f"{side} {v},{path}" for side, v in columns.items() if v is not None)
            return DataError(
                f"there is no file '{printable(path)}'; if it is a column, write "
                f"{printable(ways, 200)}"
            )
    return DataError(
        "two files are used whole, as x and y; leave out --x, --y and --given, or give one file"
    )


def _check_sides(sides: Sequence[Any], scoring: bool) -> None:
    """Print the order of files in folders, unless a column names them; refuse identifiers."""
    import numpy as np

    from ..data.files.columns import Columns, check_recurring
    from ..data.files.npy_folder import Folder

    for side in sides:
        if isinstance(side, Folder) and side.named_by is None:
            first = ", ".join(printable(path.name) for path in side.files[:3])
            more = " ..." if len(side) > 3 else ""
            say(
                f"note: {printable(side.path, 200)}/ has {len(side)} files, one per row, in this "
                f"order: {first}{more}"
            )
        if isinstance(side, Columns):
            side.take(np.arange(1))  # refuses text before heavy libraries are loaded
            if not scoring:
                check_recurring(side)


def labels_of_sides(discrete: str | None, *sides: Any) -> bool | list[str] | None:
    """Return `discrete` as the library takes it, for x, y and, if given, z.

    Names that no table has may be of sides or of columns of arrays, which the library knows.
    """
    if discrete in _DISCRETE:
        return _DISCRETE[discrete]
    from ..data.files.columns import parse_names

    found = [(name, _find(name, sides)) for name in parse_names(str(discrete))]
    return [column for name, columns in found for column in columns or [name]]


def _find(name: str, sides: Sequence[Any]) -> list[str]:
    """Return the columns of that name, or number, in messages of the library."""
    import numpy as np

    from ..data.files.columns import Columns, is_missing, resolve

    found = []
    for side, where in zip(sides, ("x", "y", "given"), strict=False):
        if not isinstance(side, Columns) or is_missing(side.table, name):
            continue
        column = resolve(side.table, name)
        if column in side.names:
            # The columns of an array are numbered among those that were chosen.
            unnamed = isinstance(side.take(np.arange(1)), np.ndarray)
            column = f"column {side.names.index(column)}" if unnamed else printable(column)
            found.append(f"{column} of {where}")
    return found


def label_columns(file: Path, discrete: str | None) -> bool | list[str] | None:
    """Return `discrete` as the library takes it, for the columns of one table."""
    if discrete in _DISCRETE:
        return _DISCRETE[discrete]
    from ..data.files.columns import parse_names, resolve
    from ..data.files.formats import check_file, open_table

    table, names = open_table(check_file(file)), parse_names(str(discrete))
    return names if table is None else [resolve(table, name) for name in names]


def row_column_names(groups: str | None, order: str | None) -> list[str]:
    """Return the columns that --groups and --order name."""
    names = [groups, None if order in _ORDERS else order]
    return [name for name in names if name is not None]


def row_columns(
    file: Path, y_file: Path | None, groups: str | None, order: str | None
) -> tuple[Any, Any]:
    """Return `groups` and `order` as the library takes them, from columns of the file."""
    from ..data import files

    if y_file is not None and row_column_names(groups, order):
        raise DataError("--groups and --order name columns of one file; put x and y into one")
    return (
        None if groups is None else files.scan_labels(file, groups),
        _ORDERS[order] if order in _ORDERS else files.scan_times(file, str(order)),
    )
