"""Rows of sweeps: what a sweep has finished stays finished.

A cell is what to run, a plain dictionary of names and numbers; its rows are what came of it. They
are stored together, all of them or none, in one SQLite database: in a file, in memory, or in memory
with a CSV file that is replaced by a longer one after each cell.
"""

import csv
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from operator import methodcaller
from pathlib import Path
from typing import Any, Self

from ..errors import DataError
from .atomic import exclusive, show_path, write_atomically

__all__ = ["Cell", "Row", "SqliteStore", "key_of", "read_csv"]

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
_BOOLEANS = {"true": True, "false": False}


def key_of(cell: Cell) -> str:
    """Return the key of a cell as text: the same for equal cells, in any order of keys."""
    return json.dumps(cell, sort_keys=True)


class SqliteStore:
    """Rows of cells in a database.

    Open one by `with SqliteStore.writing(path) as store`, or by `reading`, `in_memory` or `in_csv`.
    """

    def __init__(self, connection: sqlite3.Connection, name: str):
        self._connection = connection
        self._csv: Path | None = None
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            raise DataError(
                f"{name} holds something else, or rows of another version of deminat: choose "
                "another place, or move it away"
            )
        (last,) = connection.execute("SELECT coalesce(max(place), -1) FROM rows").fetchone()
        self._places = count(last + 1)

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Self]:
        """Open a file to add rows, and make it if needed; only one process at a time may."""
        with exclusive(path), _connected(path.resolve().as_uri(), show_path(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            if not connection.execute("SELECT name FROM sqlite_master").fetchone():
                connection.executescript(_SCHEMA)
            yield cls(connection, show_path(path))

    @classmethod
    @contextmanager
    def reading(cls, path: Path) -> Iterator[Self]:
        """Open an existing file to read its rows, also while another process writes."""
        if not path.exists():
            raise DataError(f"there are no rows at {show_path(path)}; run a sweep first")
        with _connected(f"{path.resolve().as_uri()}?mode=ro", show_path(path)) as connection:
            yield cls(connection, show_path(path))

    @classmethod
    @contextmanager
    def in_memory(cls) -> Iterator[Self]:
        """Open an empty store that ends with the block."""
        with _connected(":memory:", "memory") as connection:
            connection.executescript(_SCHEMA)
            yield cls(connection, "memory")

    @classmethod
    @contextmanager
    def in_csv(cls, path: Path, cells: Sequence[Cell]) -> Iterator[Self]:
        """Open a store whose rows are in a CSV file; a kill at any moment leaves a valid file.

        Args:
            path: The file. Its rows come first, in their order, then those that are added.
            cells: Which cells its rows may belong to: a row has the values of its cell. Rows of
                other cells stay in the file.
        """
        with exclusive(path), cls.in_memory() as store:
            if path.exists():
                names = list(cells[0]) if cells else []
                known = {tuple(cell[name] for name in names): cell for cell in cells}
                rows = [{k: v for k, v in r.items() if v is not None} for r in read_csv(path)]
                store.add_rows(rows, lambda row: known.get(tuple(map(row.get, names)), row))
            store._csv = path
            yield store

    def add(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Commit the rows of a cell; a cell that is stored already is left as it is."""
        self._commit({key_of(cell): [(next(self._places), row) for row in rows]})
        if self._csv:
            found = self._connection.execute("SELECT row FROM rows ORDER BY place")
            table = [json.loads(row) for (row,) in found]
            write_atomically(self._csv, lambda draft: _write_csv(draft, table))

    def add_rows(self, rows: Iterable[Row], cell_of: Callable[[Row], Cell]) -> None:
        """Commit rows that were made before, all or none; stored cells are left as they are.

        Args:
            rows: Rows of any cells; those of a cell all of them.
            cell_of: Returns the cell that a row belongs to.
        """
        cells: dict[str, list[tuple[int, Row]]] = {}
        for row in rows:
            cells.setdefault(key_of(cell_of(row)), []).append((next(self._places), row))
        self._commit(cells)

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that are not stored yet."""
        stored = {key for (key,) in self._connection.execute("SELECT cell FROM cells")}
        return [cell for cell in cells if key_of(cell) not in stored]

    def rows(self, cells: Sequence[Cell] | None = None) -> list[Row]:
        """Return all rows or, in the order of the cells, those of some."""
        if cells is None:
            found = self._connection.execute("SELECT row FROM rows ORDER BY cell, place")
            return [json.loads(row) for (row,) in found]
        query = "SELECT row FROM rows WHERE cell = ? ORDER BY place"
        each = (self._connection.execute(query, (key_of(cell),)) for cell in cells)
        return [json.loads(row) for found in each for (row,) in found]

    def _commit(self, cells: Mapping[str, Sequence[tuple[int, Row]]]) -> None:
        """Store places and rows by the keys of their cells, in one transaction."""
        with self._connection:
            for key, rows in cells.items():
                added = self._connection.execute("INSERT OR IGNORE INTO cells VALUES (?)", (key,))
                if added.rowcount:
                    as_python = methodcaller("item")  # numbers of numpy
                    entries = [(key, at, json.dumps(row, default=as_python)) for at, row in rows]
                    self._connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", entries)


def read_csv(path: Path) -> list[Row]:
    """Return the rows of a CSV file: numbers, booleans and text; `None` where nothing is."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: _parsed(v) for k, v in row.items()} for row in csv.DictReader(file)]


def _parsed(text: str | None) -> int | float | bool | str | None:
    for number in (int, float):
        with suppress(ValueError):
            return number(text or "")
    return _BOOLEANS.get(text, text) if text else None


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def _connected(uri: str, name: str) -> Iterator[sqlite3.Connection]:
    """Give a connection; errors of SQLite name the file."""
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=30)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise DataError(f"cannot use {name}: {error}") from error
