"""Sets of files as their publishers give them, in a folder of the user's.

A set is known by its checksums, which find accidents: a download that broke off, a file of
another set, a disk that forgets.
"""

from __future__ import annotations

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
    """A set of files that someone publishes.

    Args:
        title: What the set is called.
        folder: The folder within the data folder that holds its files.
        source: Where the publisher has them.
        splits: The names of the files of each split.
        checksum: The kind of checksum, as `hashlib` calls it.
        sums: The checksum of each file as published and, if that is packed, unpacked; a packed
            file goes by its name without .gz.
        sizes: The bytes of each file, where they are known.
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

    def find(self, folder: PathLike | None, *forms: str) -> Path:
        """Return the file that has the first name of `forms` that is there."""
        place = self.place(folder)
        for path in (place / form for form in forms):
            if os.path.exists(path):
                return check_readable(path)
        raise DataError(
            f"no {' or '.join(forms)} in {show_path(place)}: nothing is downloaded silently; get "
            "it "
            f"from {self.source}, and let folder= or the environment variable DEMINAT_DATA name "
            f"the folder that holds {self.folder}"
        )

    def check(self, path: Path) -> None:
        """Refuse a file that is not, byte for byte, the published one."""
        name = path.name.removesuffix(".gz")
        with parsing(path, self.title), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self.sizes.get(name, size):
                raise self._other(path, f"it has {size} bytes, not {self.sizes[name]}")
            # A checksum against accidents must also work where md5 is barred from security.
            begin = partial(hashlib.new, self.checksum, usedforsecurity=False)
            found = hashlib.file_digest(file, begin).hexdigest()
        if found not in self.sums[name]:
            known = " or, unpacked, ".join(self.sums[name])
            raise self._other(path, f"its {self.checksum} is {found}, not {known}")

    def _other(self, path: Path, why: str) -> DataError:
        """Return the error of a file that is not the published one."""
        return DataError(
            f"{show_path(path)} is not the published file ({why}): get it again from "
            f"{self.source}, "
            "or read another set with check=False"
        )
