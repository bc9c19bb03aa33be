"""Files that are written whole or not at all."""

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
    "verified",
    "with_checksum",
    "write_atomically",
]

DRAFT = ".new"  # how names of files end that are not whole yet
_SEAL = "sha256"
_LONGEST = 300  # characters of a path in a message


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the right to write a file, by a lock that dies with the process, however it dies."""
    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise DataError(
            f"another process is writing to {printable(path, _LONGEST)}: wait for it, or choose "
            "another place"
        ) from None
    except OSError as error:
        raise DataError(f"cannot write to {printable(path.parent, _LONGEST)}: {error}") from error
    try:
        yield
    finally:
        lock.release()


def check_writable(path: Path, suffixes: Sequence[str], what: str) -> Path:
    """Return where something goes, or refuse at once a place where it cannot be written."""
    if path.suffix.lower() not in suffixes:
        ends = " or ".join(suffixes)
        raise DataError(f"{what} ends in {ends}; {printable(path, _LONGEST)} does not")
    shown = printable(path, _LONGEST)
    try:
        folder = path.is_dir()
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or printable(error)
        raise DataError(f"cannot write {shown}: {why}; choose another place") from error
    if folder:
        raise DataError(f"{shown} is a folder; name a file in it")
    return path


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under another name and rename it: the old one stays until the new is whole.

    The other name is that of the process, since several may write at once what is the same.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}{DRAFT}")
    try:
        write(draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        _settled(path.parent)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        why = error.strerror or error
        raise DataError(f"cannot write {printable(path, _LONGEST)}: {why}") from error


def _settled(folder: Path) -> None:
    """Let a name in a folder outlive a loss of power, as its file does, where systems can."""
    with suppress(OSError):  # Windows opens no folders, and some networks force none to disk
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sha256_of(data: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def with_checksum(told: Mapping[str, Any]) -> bytes:
    """Return what JSON can hold as JSON that tells its own sha256."""
    inner = {key: value for key, value in told.items() if key != _SEAL}
    digest = sha256_of(json.dumps(inner, sort_keys=True).encode())
    return (json.dumps({**inner, _SEAL: digest}, indent=1, sort_keys=True) + "\n").encode()


def verified(data: bytes) -> dict[str, Any]:
    """Return what `with_checksum` was given; a byte that changed is a ValueError."""
    told = json.loads(data)
    if not isinstance(told, dict) or with_checksum(told) != data:
        raise ValueError("its checksum is wrong")
    del told[_SEAL]
    return told
