"""Checks of any file before it is trusted."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from polars.exceptions import PanicException

from ...errors import DataError, printable

__all__ = ["DEFLATE_AT_MOST", "PathLike", "check_memory", "check_readable", "parsing", "show_path"]

PathLike: TypeAlias = str | os.PathLike[str]

# Largest expansion of a byte by zip or gzip: deflate codes at most 258 bytes in two bits.
DEFLATE_AT_MOST = 1032
_SAVE_MEMORY = "choose fewer columns, or save x and y as two .npy files"


def show_path(path: PathLike) -> str:
    """Return `path` for messages."""
    return printable(path, 200)


def check_readable(path: Path) -> Path:
    """Return `path` if it is a file that can be opened."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except FileNotFoundError:
        raise DataError(f"{show_path(path)} does not exist: check the path") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{show_path(path)} cannot be opened ({printable(error, 200)})") from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise DataError(f"{show_path(path)} is {kind}: give the path of a file")
    return path


@contextmanager
def parsing(path: PathLike, kind: str) -> Iterator[None]:
    """Turn any error of a parser into a `DataError`.

    Parsers of malformed input raise nearly anything, so no list of types would be complete.
    """
    try:
        yield
    except DataError:
        raise
    except (Exception, PanicException) as error:
        why = printable(error) or type(error).__name__
        raise DataError(
            f"{show_path(path)} cannot be read as {kind} ({why}): it may be damaged; write it again"
        ) from error


def available_memory() -> int | None:
    """Return the bytes of memory available now, or None if the system does not say."""
    with suppress(OSError, IndexError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        found = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
        return int(found[0]) * 1024
    return _all_memory()


def check_memory(path: PathLike, needed: int, advice: str = _SAVE_MEMORY) -> None:
    """Refuse a file that needs more bytes of memory than are available."""
    available = available_memory()
    if available is not None and needed > available:
        raise DataError(
            f"{show_path(path)} needs about {needed / 1e9:.3g} GB of memory and "
            f"{available / 1e9:.3g} GB are available: {advice}"
        )


def _all_memory() -> int | None:
    """Return the bytes of memory of the machine, or None if the system does not say."""
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
