"""NPY and NPZ: the header is compared with the size of the file before a value is read.

An .npy is mapped into memory, never loaded. Of an .npz, only the chosen arrays are read into
memory. Arrays of objects are pickles, which could run code: their header gives them away, and they
are refused.
"""

import math
import os
import warnings
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import polars as pl
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...errors import DataError
from ..arrays import BLOCK, gather
from ..source import Rows, row_blocks
from .columns import Side, categories, floats, quote
from .guards import DEFLATE_AT_MOST, check_memory, parsing, show_path

__all__ = ["StackedTable", "as_native", "map_npy", "open_npy", "open_npz"]

# Version 3 exists for structured types only, which are refused.
_HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_NATIVE = {"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}  # by kind of dtype
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1 << 20  # bytes
_BYTES_PER_VALUE = 24  # as stored, as Float64, and in the frame that is returned


def open_npy(path: Path) -> "ArrayTable":
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
        size = os.fstat(stream.fileno()).st_size
        shape, order, dtype = _read_header(stream, show_path(path), size)
        return np.memmap(stream, dtype, "r", stream.tell(), shape, order)


@contextmanager
def open_npz(path: Path) -> "Iterator[NpzArchive]":
    """Open an .npz."""
    with parsing(path, "NPZ"), zipfile.ZipFile(path) as archive:
        yield NpzArchive(archive, path)


def as_native(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column in a type that polars has: native byte order, at most 64 bits."""
    return np.ascontiguousarray(column, dtype=_NATIVE[column.dtype.kind])


@dataclass(frozen=True)
class ArrayTable:
    """The columns of a 2-d array (n, d), called 0, 1, ..., d - 1."""

    label: str
    names: list[str]
    values: NDArray[Any]
    note: str = " (columns of an array go by number)"
    text_columns: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.values)

    def word_columns(self, names: list[str]) -> tuple[str, ...]:
        """Return none: an array holds numbers."""
        return ()

    def pick(self, names: list[str], labels: Collection[str], rows: Rows | None = None) -> Side:
        """Return columns as stored or, if one is categorical, as a frame of Float64 and Enum."""
        numbers = [int(name) for name in names]
        first, last = numbers[0], numbers[-1] + 1
        as_frame = not set(names).isdisjoint(labels)
        if rows is None and not as_frame and numbers == list(range(first, last)):
            return self.values[:, first:last]  # a view, which stays on disk
        count = self.rows if rows is None else len(rows)
        value_bytes = _BYTES_PER_VALUE if as_frame else self.values.itemsize
        check_memory(self.label, count * len(numbers) * value_bytes)
        values = gather(self.values, rows, numbers)
        if not as_frame:
            return values
        columns = zip(names, (pl.Series(as_native(part)) for part in values.T), strict=True)
        return pl.DataFrame({n: categories(c) if n in labels else floats(c) for n, c in columns})

    def pieces(self, names: list[str], labels: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, some rows at a time."""
        step = max(1, BLOCK // (self.values.itemsize * len(self.names)))
        for rows in row_blocks(self.rows, step):
            yield self.pick(names, labels, rows)


@dataclass(frozen=True)
class StackedTable:
    """Arrays (n,) and (n, d) beside each other: `a`, or `a_0` to `a_{d - 1}`."""

    label: str
    columns: dict[str, NDArray[Any]]
    note: str = ""
    text_columns: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))

    def word_columns(self, names: list[str]) -> tuple[str, ...]:
        """Return none: arrays hold numbers."""
        return ()

    def pick(self, names: list[str], labels: Collection[str], rows: Rows | None = None) -> Side:
        """Return columns as a frame of Float64 and Enum."""
        count = self.rows if rows is None else len(rows)
        check_memory(self.label, count * len(names) * _BYTES_PER_VALUE)
        picked = {}
        for name in names:
            values = self.columns[name] if rows is None else self.columns[name][rows]
            column = pl.Series(as_native(values))
            picked[name] = categories(column) if name in labels else floats(column)
        return pl.DataFrame(picked)

    def pieces(self, names: list[str], labels: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, some rows at a time."""
        for rows in row_blocks(self.rows, max(1, BLOCK // (8 * len(names)))):
            yield self.pick(names, labels, rows)


class NpzArchive:
    """The arrays of an open .npz, each read when it is loaded."""

    def __init__(self, archive: zipfile.ZipFile, path: Path):
        self._archive, self._path = archive, path
        members = archive.namelist()
        self.names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]

    def check(self, name: str) -> None:
        """Refuse an array that occurs twice, or is compressed as numpy never does."""
        member, where = self._archive.getinfo(f"{name}.npy"), self._where(name)
        if self.names.count(name) > 1:
            raise DataError(f"{where} occurs twice: write it again")
        if member.flag_bits & 1 or member.compress_type not in _COMPRESSIONS:
            raise DataError(f"{where} is encrypted or packed as numpy never does: use numpy.savez")

    def shape(self, name: str) -> None:
        """Return None: compressed rows cannot be read separately."""

    def load(self, name: str, rows: Rows | None = None) -> NDArray[Any]:
        """Return an array, or some of its rows; its checksum is verified."""
        self.check(name)
        member, where = self._archive.getinfo(f"{name}.npy"), self._where(name)
        packed, present = member.compress_size, self._path.stat().st_size - member.header_offset
        if packed > present or member.file_size > DEFLATE_AT_MOST * packed:
            raise DataError(
                f"{where} declares {member.file_size} bytes packed into {packed}, of which "
                f"{max(present, 0)} are present. That is impossible: write it again"
            )
        check_memory(self._path, member.file_size)
        with self._archive.open(member) as stream:
            shape, order, dtype = _read_header(stream, where, member.file_size)
            flat = np.empty(math.prod(shape), dtype)
            _fill(stream, flat.view(np.uint8), where)
        values = flat.reshape(shape, order=order)
        return values if rows is None else values[rows]

    def _where(self, name: str) -> str:
        return f"{show_path(self._path)}: array {quote(name)}"


def _read_header(
    stream: IO[bytes], label: str, size: int
) -> tuple[tuple[int, ...], Literal["F", "C"], np.dtype[Any]]:
    """Read the header of an .npy of `size` bytes: shape, order, type; stop at the first value."""
    with parsing(label, "NPY"), warnings.catch_warnings():
        # Headers written by Python 2 cause a warning of numpy that does not matter here.
        warnings.simplefilter("ignore")
        start = stream.read(len(npy.MAGIC_PREFIX) + 2)
        if not start.startswith(npy.MAGIC_PREFIX):
            raise DataError(f"{label} is not an NPY file despite its suffix: save it with numpy")
        version = start[-2], start[-1]
        if version not in _HEADER_READERS:
            raise DataError(f"{label} is of NPY version {version}: write it with numpy.save")
        shape, fortran, dtype = _HEADER_READERS[version](stream)
    if dtype.hasobject:
        raise DataError(
            f"{label} is not read because it holds Python objects, which could run code when "
            "loaded: save it as an array of numbers"
        )
    if dtype.kind not in _NATIVE or dtype.shape:
        raise DataError(f"{label} holds values of type {quote(dtype)}: save it as numbers")
    if not 1 <= len(shape) <= 32 or min(shape) < 1:
        raise DataError(f"{label} has shape {quote(shape)}: save at least one row and column")
    declared, present = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if declared != present:
        raise DataError(
            f"{label} declares {declared} bytes of values and holds {max(present, 0)}: "
            "it is truncated or its header is wrong; write it again"
        )
    return shape, "F" if fortran else "C", dtype


def _fill(stream: IO[bytes], buffer: NDArray[np.uint8], where: str) -> None:
    """Fill a buffer from a stream; reading to its end verifies the checksum."""
    filled = 0
    while chunk := stream.read(_CHUNK):
        buffer[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
    if filled < len(buffer):
        raise DataError(f"{where} is truncated after {filled} bytes of values: write it again")
