"""Files of several arrays, each with a name: NPZ and HDF5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from numpy.typing import NDArray

from deminat.errors import DataError
from deminat.files.arrays import native, open_npz
from deminat.files.checks import shown
from deminat.files.columns import Side, categories, quoted, unknown
from deminat.files.hdf5 import open_hdf5

__all__ = ["ARCHIVES", "one_array", "only_array", "read_arrays"]


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


def read_arrays(
    path: Path, x: str | None, y: str | None, given: str | None, categorical: Sequence[str]
) -> tuple[Side, ...]:
    """Return the arrays `x` and `y` of an archive, those called so if None, and `given` if any."""
    chosen = ["x" if x is None else x, "y" if y is None else y, *([given] if given else [])]
    for name in chosen:
        if chosen.count(name) > 1:
            raise DataError(
                f"{shown(path)}: array {quoted(name)} is on both sides, and an array tells "
                "everything about itself: choose others"
            )
    with _opened(path) as archive:
        for name in (*chosen, *categorical):
            _check(archive, path, name)
        return tuple(_side(archive, path, name, name in categorical) for name in chosen)


def one_array(path: Path, name: str) -> NDArray[Any]:
    """Return an array of an archive by its name."""
    with _opened(path) as archive:
        _check(archive, path, name)
        return archive.load(name)


def only_array(path: Path) -> NDArray[Any]:
    """Return the array of an archive that holds one."""
    with _opened(path) as archive:
        if len(archive.names) != 1:
            raise DataError(
                f"{shown(path)} holds {len(archive.names)} arrays where one is needed: give it "
                "alone, with --x NAME --y NAME"
            )
        return archive.load(archive.names[0])


def _opened(path: Path) -> AbstractContextManager[Archive]:
    return ARCHIVES[path.suffix.lower()](path)


def _check(archive: Archive, path: Path, name: str) -> None:
    if name not in archive.names:
        raise unknown(shown(path), "array", name, archive.names, "; choose with --x NAME --y NAME")
    archive.check(name)


def _side(archive: Archive, path: Path, name: str, labels: bool) -> Side:
    array = archive.load(name)
    return _labelled(shown(path), name, array) if labels else array


def _labelled(label: str, name: str, array: NDArray[Any]) -> pl.DataFrame:
    """Return an array (n,) or (n, d) of labels as a frame of categories."""
    if array.ndim > 2:
        raise DataError(
            f"{label}: array {quoted(name)} has shape {array.shape}, and categories must be (n,) "
            "or (n, d): reshape it"
        )
    table = array.reshape(len(array), -1)
    return pl.DataFrame(
        {f"{name}_{i}": categories(pl.Series(native(part))) for i, part in enumerate(table.T)}
    )
