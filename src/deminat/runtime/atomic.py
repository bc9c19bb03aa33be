"""Files that are written whole or not at all, with locks and checksums."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..errors import DataError, printable

__all__ = [
    "DRAFT",
    "check_writable",
    "exclusive",
    "sha256_of",
    "show_path",
    "verified",
    "with_checksum",
    "write_atomically",
]

DRAFT = ".new"  # end of the names of unfinished files
_CHECKSUM = "sha256"
_LONGEST = 300  # characters


def show_path(path: Path) -> str:
    """Return a path as messages show it."""
    return printable(path, _LONGEST)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which ends with the process even if that is killed."""
    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = lock.acquire()
    except Timeout:
        raise DataError(
            f"another process is writing to {show_path(path)}: wait for it, or choose another place"
        ) from None
    except OSError as error:
        raise DataError(f"cannot write to {show_path(path.parent)}: {error}") from error
    with held:
        yield


def check_writable(path: Path, suffixes: Sequence[str], what: str) -> Path:
    """Return the path of `what` if it can be written; otherwise raise an error that says why."""
    shown = show_path(path)
    if path.suffix.lower() not in suffixes:
        raise DataError(f"{what} ends in {' or '.join(suffixes)}; {shown} does not")
    try:
        is_folder = path.is_dir()
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or printable(error)
        raise DataError(f"cannot write {shown}: {why}; choose another place") from error
    if is_folder:
        raise DataError(f"{shown} is a folder; name a file in it")
    return path


def write_atomically(path: Path, content: bytes | Callable[[Path], Any]) -> None:
    """Write a file under another name and rename it: the old one stays until the new is whole.

    The content is bytes, or a function that writes them to a path. The other name has the number
    of the process, since several may write the same file at once.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}{DRAFT}")
    try:
        if isinstance(content, bytes):
            draft.write_bytes(content)
        else:
            content(draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        why = error.strerror or error
        raise DataError(f"cannot write {show_path(path)}: {why}") from error


def _sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk, so that they survive a loss of power."""
    with suppress(OSError):  # Windows opens no folders, and some network drives sync none
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sha256_of(data: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def with_checksum(values: Mapping[str, Any]) -> bytes:
    """Return values as JSON that includes its own sha256."""
    inner = {key: value for key, value in values.items() if key != _CHECKSUM}
    digest = sha256_of(json.dumps(inner, sort_keys=True).encode())
    return (json.dumps({**inner, _CHECKSUM: digest}, indent=1, sort_keys=True) + "\n").encode()


def verified(data: bytes) -> dict[str, Any]:
    """Return the values that `with_checksum` was given; a changed byte is a ValueError."""
    values = json.loads(data)
    if not isinstance(values, dict) or with_checksum(values) != data:
        raise ValueError("its checksum is wrong")
    del values[_CHECKSUM]
    return values
