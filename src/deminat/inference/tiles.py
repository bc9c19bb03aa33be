"""Tables of columns in tiles: what a sweep over all pairs runs and stores.

A cell is a tile of pairs: some columns with some others. It brings the values of its own columns,
so a task sends few of them to another process, and it is identified by their names, types and
values. Its row is one text with all numbers of the tile.
"""

import base64
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.arrays import as_rows
from ..data.labels import Discrete, discrete_columns
from ..errors import DataError
from ..runtime.rowstore import Cell, Row
from .all_pairs import Column, Found, tile
from .rank_test import LEAST_RANKED

__all__ = [
    "Loaded",
    "fingerprint",
    "found_of",
    "load_columns",
    "run_tile",
    "seconds_a_pair",
    "tiles",
]

_SIDE = 64  # columns of a side of a tile
_TRIAL = 12  # columns of which all pairs are timed
_TAG = "ranks 1"  # changes with the engine: rows of another one are not used


@dataclass(frozen=True)
class Loaded:
    """Columns of a table that can be paired.

    Args:
        columns: By name.
        refused: Why others cannot be used, by name.
        read_as_labels: Columns of numbers that are read as labels although nobody said so.
    """

    columns: dict[str, Column]
    refused: dict[str, str]
    read_as_labels: frozenset[str]


class _TileCell(Cell):
    """A cell that brings its columns and pairs; its entries identify it."""

    __slots__ = ("pairs", "xs", "ys")

    def __init__(
        self, entries: Cell, xs: Sequence[Column], ys: Sequence[Column], pairs: NDArray[np.int64]
    ):
        super().__init__(entries)
        self.xs, self.ys, self.pairs = xs, ys, pairs


def load_columns(
    frame: nw.DataFrame[Any], names: Sequence[str], discrete: Discrete, omits: bool
) -> Loaded:
    """Return columns as numbers, labels as codes.

    Args:
        frame: The table.
        names: Of the columns.
        discrete: Which columns of numbers are labels, as of `pairwise`.
        omits: Whether rows with missing values are left out, pair by pair, or refused.
    """
    columns: dict[str, Column] = {}
    refused: dict[str, str] = {}
    guessed = set()
    for name in names:
        try:
            column, was_guessed = _loaded(frame[name], name, discrete)
        except DataError as error:
            refused[name] = str(error)
            continue
        missing = int(np.isnan(column.values).sum())
        if missing and not omits:
            refused[name] = (
                f"column {name} has {missing:,} missing values (NaN or inf): omit them pair by "
                "pair with nan='omit' (--nan omit)"
            )
        elif len(column.values) - missing < LEAST_RANKED:
            refused[name] = f"column {name} has too few values: {LEAST_RANKED} are needed"
        else:
            columns[name] = column
            guessed |= {name} if was_guessed else set()
    return Loaded(columns, refused, frozenset(guessed))


def _loaded(series: nw.Series[Any], name: str, discrete: Discrete) -> tuple[Column, bool]:
    """Return a column, and whether it is a label only by its values."""
    rows, _, categories = as_rows(series.to_native(), "the table")
    if rows.ndim != 2:
        raise DataError(f"column {name} does not hold single values")
    if categories[0] is not None:
        codes = np.where(np.isnan(rows).any(axis=1), np.nan, rows.argmax(axis=1))
        return Column(name, codes, is_label=True), False
    values = np.where(np.isfinite(rows[:, 0]), rows[:, 0], np.nan)
    if discrete is None:
        (is_label,) = discrete_columns(values[~np.isnan(values)][:, None], (None,))
        column = Column(name, values, is_label)
        return column, column.is_unordered
    whole = isinstance(discrete, bool | np.bool_)
    return Column(name, values, bool(discrete) if whole else name in cast(Any, discrete)), False


def tiles(columns: dict[str, Column], pairs: Sequence[tuple[str, str]], seed: int) -> list[Cell]:
    """Return cells of pairs of named columns, each pair in one of them."""
    if not pairs:
        return []
    place = {name: i for i, name in enumerate(columns)}
    known = {name: fingerprint(c.values, str(c.is_label)) for name, c in columns.items()}
    ordered = np.array([(place[x], place[y]) for x, y in pairs], dtype=np.int64).reshape(-1, 2)
    number = ordered // _SIDE
    width = len(columns) // _SIDE + 1
    keys = number[:, 0] * width + number[:, 1]
    order = np.argsort(keys, kind="stable")
    named = list(columns.values())
    cells: list[Cell] = []
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        xs, ys = (int(i) * _SIDE for i in number[rows[0]])
        of_x, of_y = named[xs : xs + _SIDE], named[ys : ys + _SIDE]
        local = ordered[rows] - np.array([xs, ys])
        text = " ".join(f"{c.name}\0{known[c.name]}" for c in (*of_x, *of_y))
        entries: Cell = {
            "engine": _TAG,
            "tile": f"{xs} {ys}",
            "columns": fingerprint(text),
            "pairs": fingerprint(local),
            "seed": seed,
        }
        cells.append(_TileCell(entries, of_x, of_y, local))
    return cells


def run_tile(cell: Cell) -> list[Row]:
    """Return the row of a tile."""
    own = cast(_TileCell, cell)
    found = tile(own.xs, own.ys, own.pairs, own["seed"])
    numbers = np.array([found.p_value, found.mi, found.error, found.n], dtype=np.float64)
    return [{**cell, "found": base64.b64encode(numbers.tobytes()).decode()}]


def found_of(cell: Cell, row: Row) -> tuple[list[tuple[str, str]], Found]:
    """Return the names of the pairs of a tile, and what was found of them."""
    own = cast(_TileCell, cell)
    numbers = np.frombuffer(base64.b64decode(row["found"])).reshape(4, -1)
    names = [(own.xs[i].name, own.ys[j].name) for i, j in own.pairs]
    p_values, nats, errors, n = numbers
    return names, Found(p_values, nats, errors, n.astype(np.int64))


def seconds_a_pair(columns: Sequence[Column], seed: int) -> float:
    """Return how long a pair of some columns takes, measured."""
    step = max(1, len(columns) // _TRIAL)
    some = columns[::step][:_TRIAL]
    pairs = np.array([(i, j) for i in range(len(some)) for j in range(i)])
    if not len(pairs):
        return 0.0
    few = [replace(column) for column in some]
    start = time.perf_counter()
    tile(few, few, pairs, seed)
    return (time.perf_counter() - start) / len(pairs)


def fingerprint(values: Any, more: str = "") -> str:
    """Return a short text that only the same type and values have; of a bool its name."""
    if isinstance(values, bool):
        return str(values)
    if isinstance(values, str):
        text = values
    elif isinstance(values, np.ndarray) and values.dtype.kind in "fi":
        text = repr(values.dtype) + hashlib.sha256(values.tobytes()).hexdigest()
    else:
        text = _as_text(values)
    return hashlib.sha256((text + more).encode()).hexdigest()[:12]


def _as_text(column: Any) -> str:
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        values, dtype = series.to_list(), repr(series.dtype)
    else:
        values = np.asarray(column).tolist()
        dtype = repr(pl.Series(values, strict=False).dtype)
    return "\0".join([dtype, *map(repr, values)])  # repr: a null is not the text "None"
