"""Published sets of files, in the user's data folder.

Checksums identify the files of a set. They detect accidents: an incomplete download, a file of
another set, a damaged disk.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..data.files.guards import PathLike, check_readable, parsing, show_path
from ..errors import DataError

__all__ = ["Published"]


@dataclass(frozen=True)
class Published:
    """A published set of files.

    Args:
        title: The name of the set.
        folder: The folder within the data folder that holds its files.
        source: Where to get them.
        splits: The names of the files of each split.
        checksum: The name of the checksum in `hashlib`.
        sums: The checksums of each file: as published and, if that is packed, unpacked. The key is
            the name without .gz.
        sizes: The bytes of each file, where known.
    """

    title: str
    folder: str
    source: str
    splits: Mapping[str, tuple[str, ...]]
    checksum: str
    sums: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def names(self, split: str) -> tuple[str, ...]:
        """Return the names of the files of `split`."""
        if split not in self.splits:
            raise ValueError(f"split must be 'train' or 'test', got {split!r}")
        return self.splits[split]

    def place(self, folder: PathLike | None) -> Path:
        """Return the folder of this set in the data folder, which is `folder` if given."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "deminat")
        data = folder or os.environ.get("DEMINAT_DATA") or cache
        return Path(os.path.expanduser(data), self.folder)

    def find(self, folder: PathLike | None, *files: tuple[str, ...], check: bool) -> list[Path]:
        """Return a path for each file, the first existing one of its possible names.

        Args:
            folder: The data folder.
            files: The possible names of each file.
            check: Whether the files must be the published ones.
        """
        place = self.place(folder)
        paths = [self._first_existing(place, names) for names in files]
        for path in paths if check else ():
            self.check(path)
        return paths

    def _first_existing(self, place: Path, names: tuple[str, ...]) -> Path:
        for path in (place / name for name in names):
            if os.path.exists(path):
                return check_readable(path)
        raise DataError(
            f"no {' or '.join(names)} in {show_path(place)}: nothing is downloaded; get it from "
            f"{self.source}, and set folder= or the environment variable DEMINAT_DATA to the "
            f"folder that holds {self.folder}"
        )

    def check(self, path: Path) -> None:
        """Refuse a file that is not, byte for byte, the published one."""
        name = path.name.removesuffix(".gz")
        with parsing(path, self.title), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self.sizes.get(name, size):
                raise self._other(path, f"it has {size} bytes, not {self.sizes[name]}")
            # Not for security: md5 must work also where it is disabled for that purpose.
            begin = partial(hashlib.new, self.checksum, usedforsecurity=False)
            found = hashlib.file_digest(file, begin).hexdigest()
        if found not in self.sums[name]:
            known = " or, unpacked, ".join(self.sums[name])
            raise self._other(path, f"its {self.checksum} is {found}, not {known}")

    def _other(self, path: Path, why: str) -> DataError:
        """Return the error of a file that is not the published one."""
        return DataError(
            f"{show_path(path)} is not the published file ({why}): get it again from "
            f"{self.source}, or read another set with check=False"
        )
