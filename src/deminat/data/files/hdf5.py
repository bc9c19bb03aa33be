"""HDF5: datasets of numbers, by their path in the file. h5py is an extra: `deminat[io]`.

A dataset is read only if it is a plain array of numbers stored in this file: a link to another
file could name any file, and values other than numbers could have any size. The memory that it
needs follows from its shape, before a value is read. Selected rows of a long dataset are read a few
chunks at a time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..arrays import BLOCK
from ..source import Rows
from .columns import quote
from .guards import check_memory, parsing, show_path

__all__ = ["open_hdf5"]

_NUMERIC_KINDS = "biuf"
_MAX_DEPTH = 32  # groups within groups


@contextmanager
def open_hdf5(path: Path) -> "Iterator[Hdf5Archive]":
    """Open an HDF5 file."""
    try:
        import h5py
    except ImportError as error:
        raise DataError("HDF5 needs h5py: pip install 'deminat[io]'") from error
    with parsing(path, "HDF5"), h5py.File(path, "r") as file:
        yield Hdf5Archive(file, path)


class Hdf5Archive:
    """The datasets of an open HDF5 file, named by their paths: spikes, session/velocity."""

    def __init__(self, file: Any, path: Path):
        self._file, self._path = file, path
        self.names = list(_datasets(file, ""))

    def check(self, name: str) -> None:
        """Refuse a dataset that is not an array of numbers in this file."""
        dataset = self._file[name]
        where = f"{show_path(self._path)}: array {quote(name)}"
        if dataset.dtype.kind not in _NUMERIC_KINDS or dataset.dtype.itemsize > 16:
            raise DataError(f"{where} holds {dataset.dtype}, not numbers: choose another")
        if not dataset.shape or 0 in dataset.shape:
            raise DataError(f"{where} has shape {dataset.shape}: an array needs rows")
        if dataset.external or dataset.is_virtual:
            raise DataError(f"{where} has its values in other files: copy them into this one")

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a dataset."""
        return tuple(self._file[name].shape)

    def load(self, name: str, rows: Rows | None = None) -> NDArray[Any]:
        """Return a dataset, or some of its rows in rising order."""
        self.check(name)
        dataset = self._file[name]
        if rows is None:
            check_memory(self._path, dataset.nbytes)
            return np.asarray(dataset[...])
        row_bytes = max(1, dataset.nbytes // len(dataset))
        check_memory(self._path, len(rows) * row_bytes)
        return _load_rows(dataset, rows, max(1, BLOCK // row_bytes))


def _load_rows(dataset: Any, rows: Rows, step: int) -> NDArray[Any]:
    """Return some rows of a dataset, of which about `step` are in memory at a time."""
    chunk = dataset.chunks[0] if dataset.chunks else 1
    step = chunk * max(1, step // chunk)  # chunks are decompressed whole: each only once
    found = np.empty((len(rows), *dataset.shape[1:]), dataset.dtype)
    blocks = rows // step
    for block in np.unique(blocks):
        first, last = np.searchsorted(blocks, [block, block + 1])
        part = dataset[block * step : min((block + 1) * step, len(dataset))]
        found[first:last] = part[rows[first:last] - block * step]
    return found


def _datasets(group: Any, parent: str, depth: int = 0) -> Iterator[str]:
    """Yield the paths of the datasets in this file; links are not followed."""
    import h5py

    if depth > _MAX_DEPTH:
        return
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        member = group[name]
        if isinstance(member, h5py.Dataset):
            yield parent + name
        elif isinstance(member, h5py.Group):
            yield from _datasets(member, f"{parent}{name}/", depth + 1)
