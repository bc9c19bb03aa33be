"""Archives: files of several arrays, each with a name, such as NPZ and HDF5."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from ..arrays import BLOCK
from ..source import Rows, row_blocks
from .columns import Side, categories, quote, unknown_name_error
from .formats import Archive, open_archive
from .guards import show_path
from .npy import as_native

__all__ = ["scan_array", "scan_arrays"]


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
        with open_archive(self.path) as archive:
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
    with open_archive(path) as archive:
        for name in (*chosen, *categorical):
            _check(archive, path, name)
        return tuple(_side(archive, path, name, name in categorical) for name in chosen)


def scan_array(path: Path, name: str | None = None) -> Side | Dataset:
    """Return one array of an archive; without a name, the only one."""
    with open_archive(path) as archive:
        if name is None:
            if len(archive.names) != 1:
                raise DataError(
                    f"{show_path(path)} holds {len(archive.names)} arrays where one is needed: "
                    "give this file alone, with --x NAME --y NAME"
                )
            (name,) = archive.names
        _check(archive, path, name)
        return _side(archive, path, name, labels=False)


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
