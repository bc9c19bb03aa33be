"""Durable rows: what a sweep has finished stays finished."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ..errors import DataError, printable
from .atomic import _LONGEST, exclusive

__all__ = ["Cell", "Row", "SqliteStore", "key_of"]

Cell = dict[str, Any]
Row = dict[str, Any]
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


class SqliteStore:
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
        with exclusive(path), _connected(path, path.resolve().as_uri()) as connection:
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
