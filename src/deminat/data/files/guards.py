"""What is asked of any file before it is trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from polars.exceptions import PanicException

from ...errors import DataError, printable

__all__ = ["DEFLATE_AT_MOST", "PathLike", "check_memory", "check_readable", "parsing", "show_path"]

PathLike: TypeAlias = str | os.PathLike[str]

# A byte of zip or gzip becomes at most so many: deflate codes at most 258 bytes in two bits.
DEFLATE_AT_MOST = 1032
_LESS = "choose fewer columns, or save x and y as two .npy files"


def show_path(path: PathLike) -> str:
    """Return `path` fit for a message."""
    return printable(path, 200)


def check_readable(path: Path) -> Path:
    """Return `path` if it is a file that can be opened."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except FileNotFoundError:
        raise DataError(f"{show_path(path)} does not exist: check the path") from None
    except (OSError, ValueError) as fault:
        raise DataError(f"{show_path(path)} cannot be opened ({printable(fault, 200)})") from fault
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise DataError(f"{show_path(path)} is {what}: give the path of a file")
    return path


@contextmanager
def parsing(path: PathLike, kind: str) -> Iterator[None]:
    """Turn whatever a parser makes of bytes it does not understand into a `DataError`.

    Parsers of malformed input raise nearly anything: a list of types would be a guess.
    """
    try:
        yield
    except DataError:
        raise
    except (Exception, PanicException) as fault:
        why = printable(fault) or type(fault).__name__
        raise DataError(
            f"{show_path(path)} cannot be read as {kind} ({why}): it may be damaged; write it again"
        ) from fault


def available_memory() -> int | None:
    """Return the bytes of memory that can be had now, or None if the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return int(found[0]) * 1024
    except (OSError, IndexError, ValueError):
        return _all_memory()


def _all_memory() -> int | None:
    """Return the bytes of memory of the machine, or None."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(path: PathLike, needed: int, advice: str = _LESS) -> None:
    """Refuse what needs more bytes of memory than there are, and say what to do."""
    there = available_memory()
    if there is not None and needed > there:
        raise DataError(
            f"{show_path(path)} needs about {needed / 1e9:.3g} GB of memory and {there / 1e9:.3g} "
            "GB "
            f"can be had: {advice}"
        )
