"""The registry of file formats, by suffix.

A format opens a file as a table, whose columns go by name or number, or as an archive of arrays,
which go by name. To add one, write a function that opens a path and add its line to `FORMATS`,
here or from outside the package:

    FORMATS[".toy"] = Format(table=open_toy)

Everything else is derived from the registry, the suffixes in error messages included.
"""

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from numpy.typing import NDArray

from ...errors import DataError, printable
from ..arrays import BLOCK
from ..source import Rows, row_blocks
from .columns import Side, Table, categories, quote, unknown_name_error
from .guards import PathLike, check_readable, show_path
from .hdf5 import open_hdf5
from .npy import StackedTable, as_native, map_npy, open_npy, open_npz
from .parquet import open_parquet
from .text_stream import open_text

__all__ = [
    "FORMATS",
    "PICKLES",
    "Format",
    "check_file",
    "open_table",
    "scan_array",
    "scan_arrays",
    "stack_arrays",
]


class Archive(Protocol):
    """An open file of named arrays."""

    names: list[str]

    def check(self, name: str) -> None:
        """Raise `DataError` if an array cannot be read."""

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of an array whose rows can be read separately, otherwise None."""

    def load(self, name: str, rows: Rows | None = None) -> NDArray[Any]:
        """Return an array (n, ...), or some of its rows in rising order."""


@dataclass(frozen=True)
class Format:
    """How to open the files of one suffix: give `table` or `archive`.

    Args:
        table: Opens a path as a `Table`.
        archive: Opens a path as an `Archive`, for use in a `with` statement.
        array: Opens a path as one array (n, ...), where a whole file is x or y; by default, that
            is all columns of the table.
    """

    table: Callable[[Path], Table] | None = None
    archive: Callable[[Path], AbstractContextManager[Archive]] | None = None
    array: Callable[[Path], NDArray[Any]] | None = None


FORMATS: dict[str, Format] = {
    ".csv": Format(table=open_text),
    ".tsv": Format(table=open_text),
    ".txt": Format(table=open_text),
    ".parquet": Format(table=open_parquet),
    ".pq": Format(table=open_parquet),
    ".npy": Format(table=open_npy, array=map_npy),
    ".npz": Format(archive=open_npz),
    ".h5": Format(archive=open_hdf5),
    ".hdf5": Format(archive=open_hdf5),
}
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")

# How to convert other formats: {file} and {csv} are paths, {shell} is {file} quoted for a shell.
_CONVERSIONS = {
    ".mat": "in Python, numpy.savez({npz!r}, **scipy.io.loadmat({file!r}))",
    ".h5ad": "in Python, anndata.read_h5ad({file!r}).to_df().to_csv({csv!r}, index=False)",
    ".sav": "in Python, pandas.read_spss({file!r}).to_csv({csv!r}, index=False)",
    ".dta": "in Python, pandas.read_stata({file!r}).to_csv({csv!r}, index=False)",
    ".rds": "in R, write.csv(readRDS({file!r}), {csv!r}, row.names = FALSE)",
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save it as CSV from the spreadsheet program"),
    ".gz": "gunzip -k {shell}",
    ".bz2": "bunzip2 -k {shell}",
    ".xz": "unxz -k {shell}",
    ".zst": "unzstd {shell}",
    ".zip": "unzip {shell}",
}


def check_file(path: PathLike) -> Path:
    """Return the path of a file that can be opened and is of a known format."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise DataError(
            f"{show_path(path)} is not read because it could run code when opened: save it as "
            ".npz or .parquet"
        )
    if suffix not in FORMATS:
        raise DataError(f"{show_path(path)}: {_unreadable(path, suffix)}")
    return check_readable(path)


def open_table(path: Path) -> Table | None:
    """Return the table at `path`, or None if the file is an archive."""
    opener = FORMATS[path.suffix.lower()].table
    return None if opener is None else opener(path)


@dataclass(frozen=True)
class Dataset:
    """An array of an archive that is opened whenever rows are read."""

    path: Path
    name: str
    shape: tuple[int, ...]
    labels: bool = False

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return math.prod(self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: Rows | None = None) -> Side:
        """Return some rows, or all."""
        with _open_archive(self.path) as archive:
            array = archive.load(self.name, rows)
        return _as_categories(self.path, self.name, array) if self.labels else array

    def pieces(self) -> Iterator[Side]:
        """Yield all rows, some at a time."""
        yield from map(self.take, row_blocks(len(self), max(1, BLOCK // (8 * self.row_width))))


def scan_arrays(
    path: Path, x: str | None, y: str | None, given: str | None, categorical: Sequence[str]
) -> tuple[Side | Dataset, ...]:
    """Return the arrays `x`, `y` and, if chosen, `given`; by default those called "x" and "y".

    Arrays whose rows can be read separately stay in the file.
    """
    chosen = ["x" if x is None else x, "y" if y is None else y, *([given] if given else [])]
    for name in chosen:
        if chosen.count(name) > 1:
            raise DataError(
                f"{show_path(path)}: array {quote(name)} is on both sides: choose two arrays"
            )
    with _open_archive(path) as archive:
        for name in (*chosen, *categorical):
            _check(archive, path, name)
        return tuple(_side(archive, path, name, name in categorical) for name in chosen)


def scan_array(path: Path, name: str | None = None) -> Side | Dataset:
    """Return one array of an archive; without a name, the only one."""
    with _open_archive(path) as archive:
        if name is None:
            if len(archive.names) != 1:
                raise DataError(
                    f"{show_path(path)} holds {len(archive.names)} arrays where one is needed: "
                    "give this file alone, with --x NAME --y NAME"
                )
            (name,) = archive.names
        _check(archive, path, name)
        return _side(archive, path, name, labels=False)


def stack_arrays(path: Path) -> StackedTable:
    """Return the arrays (n,) and (n, d) of an archive as one table.

    Where they differ in rows, those that have most columns together are meant. Other arrays are no
    columns; the table's note names them.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with _open_archive(path) as archive:
        for name in archive.names:
            _check(archive, path, name)
            array = archive.load(name)
            if array.dtype.kind in "fiub":
                arrays[name] = array
    widths: Counter[int] = Counter()
    for array in arrays.values():
        if array.ndim in (1, 2):
            widths[len(array)] += array[:1].size
    if not widths:
        raise DataError(f"{show_path(path)} has no array (n,) or (n, d) of numbers")
    ((rows, _),) = widths.most_common(1)
    columns: dict[str, NDArray[Any]] = {}
    others = []
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or len(array) != rows:
            others.append(f"{printable(name)} {array.shape}")
        elif array.ndim == 1 or array.shape[1] == 1:
            columns[name] = array.reshape(rows)
        else:
            columns |= {f"{name}_{i}": part for i, part in enumerate(array.T)}
    note = f" (no columns of {rows:,} rows: {', '.join(others)})" if others else ""
    return StackedTable(show_path(path), columns, note)


def _unreadable(path: Path, suffix: str) -> str:
    """Return why a file cannot be read, and how to convert it."""
    cannot = f"cannot read {printable(suffix)} files" if suffix else "the file has no suffix"
    if suffix not in _CONVERSIONS:
        return f"{cannot}. Convert first, to one of {', '.join(FORMATS)}"
    file, csv, npz = (show_path(p) for p in (path, *map(path.with_suffix, (".csv", ".npz"))))
    convert = _CONVERSIONS[suffix].format(file=file, csv=csv, npz=npz, shell=shlex.quote(file))
    return f"{cannot}. Convert first: {convert}"


def _open_archive(path: Path) -> AbstractContextManager[Archive]:
    """Return the archive at `path`, to be used in a `with` statement."""
    opener = FORMATS[path.suffix.lower()].archive
    if opener is None:
        raise DataError(f"{show_path(path)} is a table, not an archive of arrays")
    return opener(path)


def _check(archive: Archive, path: Path, name: str) -> None:
    """Raise `DataError` if an array does not exist or cannot be read."""
    if name not in archive.names:
        raise unknown_name_error(
            show_path(path), "array", name, archive.names, "; choose with --x NAME --y NAME"
        )
    archive.check(name)


def _side(archive: Archive, path: Path, name: str, labels: bool) -> Side | Dataset:
    """Return an array, as a source if its rows can be read separately."""
    shape = archive.shape(name)
    if shape is not None:
        return Dataset(path, name, shape, labels)
    array = archive.load(name)
    return _as_categories(path, name, array) if labels else array


def _as_categories(path: Path, name: str, array: NDArray[Any]) -> pl.DataFrame:
    """Return an array (n,) or (n, d) of labels as a frame of categories."""
    if array.ndim > 2:
        raise DataError(
            f"{show_path(path)}: array {quote(name)} has shape {array.shape}, and categories must "
            "be (n,) or (n, d): reshape it"
        )
    columns = array.reshape(len(array), -1).T
    return pl.DataFrame(
        {f"{name}_{i}": categories(pl.Series(as_native(c))) for i, c in enumerate(columns)}
    )
