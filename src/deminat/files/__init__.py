"""Files to columns: CSV, Parquet, NPY and NPZ.

A file is taken at its word only after checking: sizes it declares are compared with the file
and with the memory of the machine before anything is read, rows must have as many fields as
the first, and nothing is ever unpickled. What cannot be read is a `DataError` of one line.

| suffix              | holds                                    | `x` and `y` name             |
|---------------------|------------------------------------------|------------------------------|
| .csv .tsv .txt      | a table; the dialect is found by looking | columns, by name or number   |
| .parquet .pq        | a table; only the chosen columns are read| columns, by name or number   |
| .npy                | a 2-d array                              | columns, by number           |
| .npz                | several arrays                           | arrays, by default `x`, `y`  |

`idx` reads the arrays of bytes that `deminat.datasets` is after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deminat.errors import DataError, printable
from deminat.files import arrays, parquet, text
from deminat.files.archives import ARCHIVES, one_array, only_array, read_arrays
from deminat.files.checks import PathLike, readable, shown
from deminat.files.columns import Side, Table, missing, named, pick, resolve

__all__ = ["PICKLES", "read", "read_columns", "read_labels", "read_pair", "read_times"]

_TABLES: dict[str, Callable[[Path], Table]] = {
    ".csv": text.open_text,
    ".tsv": text.open_text,
    ".txt": text.open_text,
    ".parquet": parquet.open_parquet,
    ".pq": parquet.open_parquet,
    ".npy": arrays.open_npy,
}
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


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
        is NaN, or null in a categorical column; in text, so are NA, N/A, NaN, null, None, ? and -.

    Raises:
        DataError: If the file cannot be read, or the columns are not there or not numbers.
    """
    path = _checked(path)
    if path.suffix.lower() in ARCHIVES:
        return read_arrays(path, x, y, given, categorical)
    return pick(_TABLES[path.suffix.lower()](path), x, y, given, categorical)


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
    paths = _checked(x_path), _checked(y_path)
    if paths[0].samefile(paths[1]):
        raise DataError(f"{shown(paths[0])} is given for both x and y: give two different files")
    x, y = (_open(path) for path in paths)
    tables = [side for side in (x, y) if not isinstance(side, np.ndarray)]
    for name in categorical:
        if all(missing(table, name) for table in tables):
            raise DataError(f"no column '{printable(name)}' in either file: see --categorical")
    return _whole(x, categorical), _whole(y, categorical)


def read_columns(
    path: PathLike, x: str | None, y: str | None, *, categorical: Sequence[str] = ()
) -> tuple[pl.DataFrame, list[str], list[str] | None]:
    """Read columns of a table, of which each may be paired with each.

    Args:
        path: A table, as of `read`, no archive.
        x: Columns, separated by commas, with the wildcards of file names; all if None.
        y: Columns to pair those with; `None` for each other.
        categorical: Columns that hold labels rather than quantities.

    Returns:
        A frame, the names of x, and those of y.
    """
    path = _checked(path)
    if path.suffix.lower() in ARCHIVES:
        raise DataError(f"{shown(path)} holds arrays, and this wants a table: see CSV or Parquet")
    table = _TABLES[path.suffix.lower()](path)
    xs = list(table.names) if x is None else named(table, x)
    ys = None if y is None else named(table, y)
    wanted = list(dict.fromkeys([*xs, *(ys or [])]))
    (frame,) = table.pick([wanted], {resolve(table, name) for name in categorical})
    return pl.DataFrame(frame, schema=wanted) if isinstance(frame, np.ndarray) else frame, xs, ys


def read_labels(path: PathLike, name: str) -> NDArray[Any]:
    """Read a column of names or numbers (n,), or an array of a .npz: equal rows, equal values."""
    column = _column(path, name, labels=True)
    if isinstance(column, np.ndarray):
        return column
    return column.to_series().to_numpy(allow_copy=True)


def read_times(path: PathLike, name: str) -> NDArray[Any]:
    """Read a column (n,) of numbers, or of text that may be dates and times."""
    try:
        column = _column(path, name, labels=False)
    except DataError:
        return read_labels(path, name)
    return column if isinstance(column, np.ndarray) else column.to_series().to_numpy()


def _column(path: PathLike, name: str, labels: bool) -> Side:
    """Return one column of a table, or an array of a .npz."""
    path = _checked(path)
    if path.suffix.lower() in ARCHIVES:
        return one_array(path, name)
    table = _TABLES[path.suffix.lower()](path)
    column = resolve(table, name)
    return table.pick([[column]], {column} if labels else set())[0]


def _open(path: Path) -> Table | NDArray[Any]:
    """Return the table at `path`, or its array if it holds no table."""
    suffix = path.suffix.lower()
    if suffix in ARCHIVES:
        return only_array(path)
    return arrays.map_npy(path) if suffix == ".npy" else _TABLES[suffix](path)


def _whole(side: Table | NDArray[Any], categorical: Sequence[str]) -> Side:
    """Return all columns of a table; an array as it is."""
    if isinstance(side, np.ndarray):
        return side
    declared = {resolve(side, name) for name in categorical if not missing(side, name)}
    return side.pick([list(side.names)], declared)[0]


def _checked(path: PathLike) -> Path:
    """Return `path` if it is a file of a kind that can be read."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise DataError(
            f"{shown(path)} could run code when opened and is not read: save it as .npz or .parquet"
        )
    if suffix not in (*_TABLES, *ARCHIVES):
        kinds = ", ".join((*_TABLES, *ARCHIVES))
        raise DataError(f"{shown(path)} is of no kind that can be read: save it as one of {kinds}")
    return readable(path)
