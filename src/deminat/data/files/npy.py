"""NPY and NPZ: the header is checked against the size of the file before a value is read.

An .npy is mapped into memory, never loaded; the arrays of an .npz are read into memory, and
only those that are asked for. Object arrays are pickles, and are refused by their header.
"""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...errors import DataError
from ..arrays import BLOCK, gather
from .columns import Side, categories, floats, quote
from .guards import DEFLATE_AT_MOST, check_memory, parsing, show_path

__all__ = ["ArrayTable", "NpzArchive", "as_native", "map_npy", "open_npy", "open_npz"]

# Version 3 exists for structured types only, which are refused anyway.
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Header:
    """What an .npy says about its values."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The size of the values; Python's integers do not overflow."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class ArrayTable:
    """The columns of a 2-d array (n, d), called 0, 1, ..., d - 1."""

    label: str
    names: list[str]
    values: NDArray[Any]
    note: str = " (columns of an array go by number)"

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.values)

    def pick(
        self,
        groups: Sequence[list[str]],
        categorical: Collection[str],
        rows: NDArray[np.int64] | None = None,
    ) -> list[Side]:
        """Return one side for each group of columns, as stored unless one is categorical."""
        return [
            self._frame(group, categorical, rows)
            if set(group) & set(categorical)
            else self._part(group, rows)
            for group in groups
        ]

    def pieces(self, group: list[str], categorical: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, some rows at a time."""
        step = max(1, BLOCK // (self.values.itemsize * len(self.names)))
        for start in range(0, self.rows, step):
            numbers = np.arange(start, min(start + step, self.rows))
            yield self.pick([group], categorical, numbers)[0]

    def _part(self, group: list[str], rows: NDArray[np.int64] | None) -> NDArray[Any]:
        """Return columns of the array; neighbours are a view, which stays on disk."""
        numbers = [int(name) for name in group]
        first, last = numbers[0], numbers[-1] + 1
        if rows is None and numbers == list(range(first, last)):
            return self.values[:, first:last]
        count = self.rows if rows is None else len(rows)
        check_memory(self.label, count * len(numbers) * self.values.itemsize)
        return gather(self.values, rows, numbers)

    def _frame(
        self, group: list[str], categorical: Collection[str], rows: NDArray[np.int64] | None
    ) -> pl.DataFrame:
        """Return columns as a frame of Float64 and Enum."""
        count = self.rows if rows is None else len(rows)
        check_memory(self.label, count * len(group) * 24)
        values = gather(self.values, rows, [int(name) for name in group])
        columns = {
            name: pl.Series(as_native(part)) for name, part in zip(group, values.T, strict=True)
        }
        return pl.DataFrame(
            {n: categories(c) if n in categorical else floats(c) for n, c in columns.items()}
        )


def open_npy(path: Path) -> ArrayTable:
    """Return the columns of the 2-d array at `path`."""
    values = map_npy(path)
    if values.ndim != 2:
        raise DataError(
            f"{show_path(path)} holds one array of shape {values.shape}, which has no columns to "
            "choose from: give two files, one for x and one for y"
        )
    return ArrayTable(show_path(path), [str(number) for number in range(values.shape[1])], values)


def map_npy(path: Path) -> NDArray[Any]:
    """Return the array at `path`, mapped into memory for reading."""
    with parsing(path, "NPY"), path.open("rb") as stream:
        header = _header(stream, show_path(path))
        start, size = stream.tell(), os.fstat(stream.fileno()).st_size
        _check_size(show_path(path), header, size - start)
        return np.memmap(
            stream, header.dtype, "r", start, header.shape, "F" if header.fortran else "C"
        )


def _header(stream: IO[bytes], label: str) -> Header:
    """Read the header of an .npy; leave the stream at its first value."""
    with parsing(label, "NPY"), warnings.catch_warnings():
        # Headers from Python 2 are read with a warning that helps nobody here.
        warnings.simplefilter("ignore")
        start = stream.read(len(npy.MAGIC_PREFIX) + 2)
        if not start.startswith(npy.MAGIC_PREFIX):
            raise DataError(f"{label} is no NPY file, whatever its name says: save it with numpy")
        version = start[-2], start[-1]
        if version not in _HEADERS:
            raise DataError(f"{label} is of NPY version {version}: write it with numpy.save")
        header = Header(*_HEADERS[version](stream))
    _check_kind(label, header.dtype)
    _check_shape(label, header.shape)
    return header


def _check_kind(label: str, dtype: np.dtype[Any]) -> None:
    """Refuse anything but numbers and booleans."""
    if dtype.hasobject:
        raise DataError(
            f"{label} holds Python objects, which could run code when loaded, and is not read: "
            "save it as an array of numbers"
        )
    if dtype.kind not in _KINDS or dtype.shape:
        raise DataError(f"{label} holds values of type {quote(dtype)}: save it as numbers")


def _check_shape(label: str, shape: tuple[int, ...]) -> None:
    """Refuse an array without rows or values."""
    if not 1 <= len(shape) <= 32 or min(shape) < 1:
        raise DataError(f"{label} has shape {quote(shape)}: save at least one row and column")


def _check_size(label: str, header: Header, there: int) -> None:
    """Refuse a header that promises more or less than there is."""
    if header.nbytes != there:
        raise DataError(
            f"{label} declares {header.nbytes} bytes of values and holds {max(there, 0)}: "
            "it is cut off or its header lies; write it again"
        )


class NpzArchive:
    """The arrays of an open .npz, each read when it is asked for."""

    def __init__(self, archive: zipfile.ZipFile, path: Path):
        self._archive, self._path = archive, path
        self.names = _names(archive)

    def check(self, name: str) -> None:
        """Refuse an array that is there twice, or packed as numpy never does."""
        _member(self._archive, self._path, name)

    def load(self, name: str) -> NDArray[Any]:
        """Return an array by its name."""
        return _load(self._archive, self._path, name)


@contextmanager
def open_npz(path: Path) -> Iterator[NpzArchive]:
    """Open an .npz."""
    with parsing(path, "NPZ"), zipfile.ZipFile(path) as archive:
        yield NpzArchive(archive, path)


def _names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays in an archive."""
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> zipfile.ZipInfo:
    """Return where the array `name` is in the archive, if it is there once and as numpy writes."""
    names = _names(archive)
    where = f"{show_path(path)}: array {quote(name)}"
    if names.count(name) > 1:
        raise DataError(f"{where} is there twice: write it again")
    member = archive.getinfo(f"{name}.npy")
    if member.flag_bits & 1 or member.compress_type not in _METHODS:
        raise DataError(f"{where} is encrypted or packed as numpy never does: use numpy.savez")
    return member


def _check_packing(member: zipfile.ZipInfo, path: Path, name: str) -> None:
    """Refuse sizes that no honest archive declares."""
    packed, there = member.compress_size, path.stat().st_size - member.header_offset
    if packed > there or member.file_size > DEFLATE_AT_MOST * packed:
        raise DataError(
            f"{show_path(path)}: array {quote(name)} declares {member.file_size} bytes packed into "
            f"{packed}, of which {max(there, 0)} are there: that cannot be; write it again"
        )
    check_memory(path, member.file_size)


def _load(archive: zipfile.ZipFile, path: Path, name: str) -> NDArray[Any]:
    """Return one array of an archive; its checksum is verified."""
    member = _member(archive, path, name)
    _check_packing(member, path, name)
    where = f"{show_path(path)}: array {quote(name)}"
    with archive.open(member) as stream:
        header = _header(stream, where)
        _check_size(where, header, member.file_size - stream.tell())
        values = np.empty(math.prod(header.shape), header.dtype)
        _fill(stream, values.view(np.uint8), where)
    if header.fortran:
        return values.reshape(header.shape[::-1]).T
    return values.reshape(header.shape)


def _fill(stream: IO[bytes], room: NDArray[np.uint8], where: str) -> None:
    """Read exactly as many bytes as there is room for; the end triggers the checksum."""
    filled = 0
    while chunk := stream.read(_CHUNK):
        room[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
    if filled < len(room):
        raise DataError(f"{where} is cut off after {filled} bytes of values: write it again")


def as_native(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column in a type that polars has: this machine's byte order, 64 bits at most."""
    wide = {"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}
    return np.ascontiguousarray(column, dtype=wide[column.dtype.kind])
