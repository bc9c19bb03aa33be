"""A folder of .npy files: each file is one row, such as an image, in the natural order of names.

`cell2.npy` comes before `cell10.npy`. All files must hold numbers and have one shape. Each header
is compared with the size of its file before a value is read, and nothing is ever unpickled. Files
with other suffixes are ignored.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..source import Rows, row_blocks
from .guards import check_memory, check_readable, parsing, show_path
from .npy import map_npy

__all__ = ["Folder", "is_folder", "open_folder"]

_FILES_PER_PIECE = 1024


@dataclass(frozen=True)
class Folder:
    """Files of one shape, in order.

    Attributes:
        path: The folder.
        files: One file per row.
        shape: The shape of each array.
        named_by: The column of a table that names the files in this order, if there is one.
    """

    path: Path
    files: list[Path] = field(repr=False)
    shape: tuple[int, ...]
    named_by: str | None = None

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: Rows | None = None) -> NDArray[np.float64]:
        """Return the arrays (k, ...) of some files, or of all."""
        numbers = range(len(self)) if rows is None else rows.tolist()
        check_memory(self.path, 8 * len(numbers) * self.row_width, "use fewer rows: --max-rows")
        found = np.empty((len(numbers), *self.shape))
        for place, number in enumerate(numbers):
            found[place] = self._read(self.files[number])
        return found

    def pieces(self) -> Iterator[NDArray[np.float64]]:
        """Yield the arrays of all files, some at a time."""
        yield from map(self.take, row_blocks(len(self), _FILES_PER_PIECE))

    def _read(self, file: Path) -> NDArray[Any]:
        """Return the array of one file."""
        values = map_npy(check_readable(file))
        if values.shape != self.shape:
            raise DataError(
                f"{show_path(file)} has shape {values.shape} where "
                f"{show_path(self.files[0].name)} has {self.shape}: all files of a folder must "
                "have one shape"
            )
        if values.dtype.kind in "iu" and np.abs(values.astype(np.float64)).max() > 2**53:
            raise DataError(
                f"{show_path(file)} holds integers beyond 2**53, whose last digits would be lost: "
                "subtract an offset"
            )
        return values


def is_folder(path: Path) -> bool:
    """Return whether there is a folder at `path` that can be accessed."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def open_folder(path: Path) -> Folder:
    """Return the rows of a folder; only the first file is opened."""
    with parsing(path, "a folder"):
        files = sorted((f for f in path.iterdir() if f.suffix.lower() == ".npy"), key=_natural)
    if not files:
        raise DataError(
            f"{show_path(path)} is a directory without .npy files: save each row as one"
        )
    return Folder(path, files, map_npy(check_readable(files[0])).shape)


def _natural(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts numbers in names by their value."""
    parts = re.split(r"(\d+)", file.name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)], file.name
