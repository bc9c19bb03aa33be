"""Reading IDX, the format of MNIST: an array of bytes, packed with gzip or not.

    00 00 | type | k | lengths of k axes, four bytes each, big-endian | values

Type 8 is an unsigned byte, the only one read here. The length of a packed file is known only by
unpacking it. So it is unpacked piece by piece, up to one byte more than the header declares, and
an array is made only if exactly the declared bytes are found.
"""

import gzip
import io
import math
import os
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..data.files.guards import (
    DEFLATE_AT_MOST,
    PathLike,
    check_memory,
    check_readable,
    parsing,
    show_path,
)
from ..errors import DataError, printable

__all__ = ["read_idx"]

_GZIP = b"\x1f\x8b"
_BYTES = b"\0\0\x08"
_MOST_AXES = 32
_CHUNK = 1 << 20


def read_idx(path: PathLike) -> NDArray[np.uint8]:
    """Return the writable array in an idx file; its first bytes show whether it is packed."""
    path = check_readable(Path(path))
    with parsing(path, "idx"), path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        shape = _shape(stream, show_path(path))
        most = os.fstat(file.fileno()).st_size * (DEFLATE_AT_MOST if packed else 1)
        return np.frombuffer(_values(stream, path, shape, most), np.uint8).reshape(shape)


def _shape(stream: io.BufferedIOBase, label: str) -> tuple[int, ...]:
    """Read the header; leave the stream at the first value."""
    start = stream.read(len(_BYTES) + 1)
    if len(start) <= len(_BYTES) or not start.startswith(_BYTES):
        raise DataError(f"{label} is no idx file of unsigned bytes: check what it is")
    axes = start[-1]
    lengths = stream.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise DataError(f"{label} is cut off within its header: get it again")
    shape = struct.unpack(f">{axes}I", lengths)
    if not 1 <= axes <= _MOST_AXES or min(shape) < 1:
        raise DataError(
            f"{label} declares shape {printable(shape)}, and an array needs 1 to {_MOST_AXES} axes"
            ", none of them empty: check what it is"
        )
    return shape


def _values(stream: io.BufferedIOBase, path: Path, shape: tuple[int, ...], most: int) -> bytearray:
    """Return the values of an array of `shape`, of a file that can hold `most` bytes."""
    size = math.prod(shape)
    if size > most:
        raise _wrong_header(path, size, f"cannot hold more than {most}")
    check_memory(path, size, "take a machine with more memory")
    values = bytearray()
    # One byte more is requested: gzip compares checksums at the end of the stream.
    while chunk := stream.read(min(_CHUNK, size + 1 - len(values))):
        values += chunk
    if len(values) != size:
        found = "more" if len(values) > size else str(len(values))
        raise _wrong_header(path, size, f"holds {found}")
    return values


def _wrong_header(path: Path, size: int, found: str) -> DataError:
    """Return the error of a header that does not match its file."""
    return DataError(
        f"{show_path(path)} declares {printable(size)} bytes of values and {found}: it is damaged "
        "or its header is wrong; get it again"
    )
