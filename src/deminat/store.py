"""Durable rows: what a sweep has finished stays finished, whatever happens to the machine.

A sweep is made of cells, and a cell gives rows. Those of a cell are committed together with its
name, in one transaction that is on disk before it returns (SQLite in WAL mode, full
synchronisation), so that after a kill a cell is there whole or not at all. One process writes: a
second one that opens the same file to write is refused at once.

Whole files are written beside their place, forced to disk and renamed; JSON may tell its own
sha256.
"""

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from .errors import DataError, printable

__all__ = [
    "CHECKPOINT",
    "DRAFT",
    "FOLDS",
    "Cell",
    "Row",
    "Store",
    "alone",
    "digest_of",
    "key_of",
    "replaced",
    "sealed",
    "unsealed",
    "writable",
]

Cell = dict[str, Any]
Row = dict[str, Any]

CHECKPOINT = "checkpoint"  # the folder within that of a run where finished folds are
FOLDS = "folds"  # what it is called when the run is finished
DRAFT = ".new"  # how names of files end that are not whole yet
_SEAL = "sha256"
_LONGEST = 300  # characters of a path in a message
_VERSION = 1
_SCHEMA = f"""
BEGIN;
CREATE TABLE cells (cell TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE rows (
    cell TEXT NOT NULL REFERENCES cells, place INTEGER NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (cell, place)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
COMMIT;
"""


def key_of(cell: Cell) -> str:
    """Return the text that a cell is known by: the same for equal cells, in any order of keys."""
    return json.dumps(cell, sort_keys=True)


class Store:
    """Rows of cells in one file, which is made with its folders if it is not there.

    Use `with Store.writing(path) as store` to add rows, `with Store.reading(path) as store` to
    look at them, also while another process writes.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path):
        self._connection = connection
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            raise DataError(
                f"{printable(path, _LONGEST)} holds something else, or rows of another version of "
                "deminat: choose another place, or move it away"
            )

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Self]:
        """Open a file to add rows; it is refused while another process does the same."""
        with alone(path), _connected(path, path.resolve().as_uri()) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            if not connection.execute("SELECT name FROM sqlite_master").fetchone():
                connection.executescript(_SCHEMA)
            yield cls(connection, path)

    @classmethod
    @contextmanager
    def reading(cls, path: Path) -> Iterator[Self]:
        """Open a file that is there to look at its rows."""
        if not path.exists():
            raise DataError(f"there are no rows at {printable(path, _LONGEST)}; run a sweep first")
        with _connected(path, f"{path.resolve().as_uri()}?mode=ro") as connection:
            yield cls(connection, path)

    def add(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Commit the rows of a cell; a cell that is there already is left as it is."""
        self.add_all([(cell, rows)])

    def add_all(self, cells: Sequence[tuple[Cell, Sequence[Row]]]) -> None:
        """Commit cells with their rows, all or none; those that are there are left as they are."""
        with self._connection:  # a transaction
            for cell, rows in cells:
                key = key_of(cell)
                added = self._connection.execute("INSERT OR IGNORE INTO cells VALUES (?)", (key,))
                entries = [(key, place, json.dumps(row)) for place, row in enumerate(rows)]
                if added.rowcount:
                    self._connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", entries)

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that are not there yet."""
        there = {key for (key,) in self._connection.execute("SELECT cell FROM cells")}
        return [cell for cell in cells if key_of(cell) not in there]

    def rows(self, cells: Sequence[Cell] | None = None) -> list[Row]:
        """Return all rows or, in their order, those of some cells."""
        if cells is None:
            found = self._connection.execute("SELECT row FROM rows ORDER BY cell, place")
            return [json.loads(row) for (row,) in found]
        return [row for cell in cells for row in self._rows_of(key_of(cell))]

    def _rows_of(self, key: str) -> list[Row]:
        query = "SELECT row FROM rows WHERE cell = ? ORDER BY place"
        return [json.loads(row) for (row,) in self._connection.execute(query, (key,))]


@contextmanager
def _connected(path: Path, uri: str) -> Iterator[sqlite3.Connection]:
    """Give a connection, and call what SQLite says of the file by the file's name."""
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30)
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise DataError(f"cannot use {printable(path, _LONGEST)}: {error}") from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
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


def writable(path: Path, suffixes: Sequence[str], what: str) -> Path:
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


def replaced(path: Path, write: Callable[[Path], Any]) -> None:
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


def digest_of(data: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def sealed(told: Mapping[str, Any]) -> bytes:
    """Return what JSON can hold as JSON that tells its own sha256."""
    inner = {key: value for key, value in told.items() if key != _SEAL}
    digest = digest_of(json.dumps(inner, sort_keys=True).encode())
    return (json.dumps({**inner, _SEAL: digest}, indent=1, sort_keys=True) + "\n").encode()


def unsealed(data: bytes) -> dict[str, Any]:
    """Return what `sealed` was given; anything else, or a byte that changed, is a ValueError."""
    told = json.loads(data)
    if not isinstance(told, dict) or sealed(told) != data:
        raise ValueError("its checksum is wrong")
    del told[_SEAL]
    return told
