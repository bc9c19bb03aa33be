"""Files of several arrays, each with a name: NPZ and HDF5."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from ..arrays import BLOCK
from ..source import Rows
from .columns import Side, categories, quote, unknown_name_error
from .guards import show_path
from .hdf5 import Hdf5Archive, open_hdf5
from .npy import as_native, open_npz

__all__ = ["ARCHIVES", "Dataset", "scan_array", "scan_arrays"]


class Archive(Protocol):
    """An open file of arrays."""

    names: list[str]

    def check(self, name: str) -> None:
        """Refuse an array that cannot be read."""
        ...

    def load(self, name: str) -> NDArray[Any]:
        """Return an array by its name."""
        ...


ARCHIVES: dict[str, Callable[[Path], AbstractContextManager[Archive]]] = {
    ".npz": open_npz,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
}


@dataclass(frozen=True)
class Dataset:
    """An array of an HDF5 file, which is opened whenever rows are asked for."""

    path: Path
    name: str
    shape: tuple[int, ...]
    labels: bool = False

    @property
    def row_width(self) -> int:
        """Values a row."""
        return math.prod(self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: Rows | None = None) -> Side:
        """Return some rows, or all."""
        with open_hdf5(self.path) as archive:
            array = archive.load(self.name, rows)
        return _labelled(show_path(self.path), self.name, array) if self.labels else array

    def pieces(self) -> Iterator[Side]:
        """Yield all rows, some at a time."""
        step = max(1, BLOCK // (8 * self.row_width))
        for start in range(0, len(self), step):
            yield self.take(np.arange(start, min(start + step, len(self))))


def scan_arrays(
    path: Path, x: str | None, y: str | None, given: str | None, categorical: Sequence[str]
) -> tuple[Side | Dataset, ...]:
    """Return the arrays `x` and `y` of an archive, those called so if None, and `given` if any.

    Those of HDF5 stay in the file.
    """
    chosen = ["x" if x is None else x, "y" if y is None else y, *([given] if given else [])]
    for name in chosen:
        if chosen.count(name) > 1:
            raise DataError(
                f"{show_path(path)}: array {quote(name)} is on both sides, and an array tells "
                "everything about itself: choose others"
            )
    with _opened(path) as archive:
        for name in (*chosen, *categorical):
            _check(archive, path, name)
        return tuple(_side(archive, path, name, name in categorical) for name in chosen)


def scan_array(path: Path, name: str | None = None) -> Side | Dataset:
    """Return one array of an archive; without a name, that of an archive that holds one."""
    with _opened(path) as archive:
        if name is None:
            if len(archive.names) != 1:
                raise DataError(
                    f"{show_path(path)} holds {len(archive.names)} arrays where one is needed: "
                    "give it "
                    "alone, with --x NAME --y NAME"
                )
            (name,) = archive.names
        _check(archive, path, name)
        return _side(archive, path, name, labels=False)


def _opened(path: Path) -> AbstractContextManager[Archive]:
    return ARCHIVES[path.suffix.lower()](path)


def _check(archive: Archive, path: Path, name: str) -> None:
    if name not in archive.names:
        raise unknown_name_error(
            show_path(path), "array", name, archive.names, "; choose with --x NAME --y NAME"
        )
    archive.check(name)


def _side(archive: Archive, path: Path, name: str, labels: bool) -> Side | Dataset:
    if isinstance(archive, Hdf5Archive):
        return Dataset(path, name, archive.shape(name), labels)
    array = archive.load(name)
    return _labelled(show_path(path), name, array) if labels else array


def _labelled(label: str, name: str, array: NDArray[Any]) -> pl.DataFrame:
    """Return an array (n,) or (n, d) of labels as a frame of categories."""
    if array.ndim > 2:
        raise DataError(
            f"{label}: array {quote(name)} has shape {array.shape}, and categories must be (n,) "
            "or (n, d): reshape it"
        )
    table = array.reshape(len(array), -1)
    return pl.DataFrame(
        {f"{name}_{i}": categories(pl.Series(as_native(part))) for i, part in enumerate(table.T)}
    )
