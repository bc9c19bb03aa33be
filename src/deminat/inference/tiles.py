"""Tables of columns in tiles: what a sweep over all pairs runs and stores.

A cell is a tile of pairs: some columns with some others. It brings the values of its own columns,
so a task sends few of them to another process, and it is identified by their names, types and
values. Its row has the numbers of all its pairs, as texts. Of a table with more pairs than memory
holds, the rows are read one after the other, and only the strongest pairs stay.
"""

import base64
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, cast

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.arrays import as_rows
from ..data.column_pairs import ColumnPairs
from ..data.labels import Discrete, discrete_columns
from ..errors import DataError
from ..runtime.rowstore import Cell, Row
from .all_pairs import Column, Found, tile
from .rank_test import LEAST_RANKED

__all__ = [
    "Loaded",
    "PairColumns",
    "fingerprint",
    "gather",
    "load_columns",
    "run_tile",
    "seconds_a_pair",
    "tiles",
]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_SIDE = 64  # columns of a side of a tile
_TRIAL = 12  # columns of which all pairs are timed
_TAG = "ranks 4"  # changes with the engine: rows of another one are not used
# What a row has of each pair, and in which form: single precision has more digits than estimates.
_DTYPES = {"p_value": "<f8", "mi": "<f4", "error": "<f4", "smooth": "<f4", "n": "<u4"}
_AT_ONCE = 1 << 22  # p-values


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


class TileCell(Cell):
    """A cell that brings its columns, and which of their pairs are meant; its entries identify it.

    `packed` has a bit for each pair: a table of 20,000 columns has fifty thousand tiles.
    """

    __slots__ = ("packed", "xs", "ys")

    def __init__(
        self, entries: Cell, xs: Sequence[Column], ys: Sequence[Column], packed: NDArray[np.uint8]
    ):
        super().__init__(entries)
        self.xs, self.ys, self.packed = xs, ys, packed

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return int(np.unpackbits(self.packed).sum())

    def pairs(self) -> Places:
        """Return the places (m, 2) of each pair in both lists of columns."""
        bits = np.unpackbits(self.packed, count=len(self.xs) * len(self.ys))
        return np.argwhere(bits.reshape(len(self.xs), -1))


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
            refused[name] = (
                f"column {name} has {len(column.values) - missing} values, and {LEAST_RANKED} rows "
                "are needed: collect more, or leave the column out"
            )
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


def tiles(columns: Mapping[str, Column], pairs: ColumnPairs, seed: int) -> list[Cell]:
    """Return cells of pairs of columns by name, each pair in one of them."""
    known = {name: fingerprint(c.values, str(c.is_label)) for name, c in columns.items()}
    cells: list[Cell] = []
    for rows, others in product(_blocks(len(pairs.x)), _blocks(len(pairs.y))):
        mask = pairs.mask(rows, others)
        if not mask.any():
            continue
        xs, ys = [pairs.x[i] for i in rows], [pairs.y[j] for j in others]
        text = " ".join(f"{name}\0{known[name]}" for name in (*xs, *ys))
        packed = np.packbits(mask)
        entries: Cell = {
            "engine": _TAG,
            "tile": f"{rows[0]} {others[0]}",
            "columns": fingerprint(text),
            "pairs": hashlib.sha256(packed.tobytes()).hexdigest()[:12],
            "seed": seed,
        }
        cells.append(TileCell(entries, [columns[n] for n in xs], [columns[n] for n in ys], packed))
    return cells


def _blocks(count: int) -> list[Places]:
    places = np.arange(count)
    return [places[start : start + _SIDE] for start in range(0, count, _SIDE)]


def run_tile(cell: Cell) -> list[Row]:
    """Return the row of a tile."""
    own = cast(TileCell, cell)
    found = tile(own.xs, own.ys, own.pairs(), own["seed"])
    texts = {
        name: base64.b64encode(getattr(found, name).astype(dtype).tobytes()).decode()
        for name, dtype in _DTYPES.items()
    }
    return [{**cell, **texts}]


@dataclass(frozen=True)
class PairColumns:
    """Many pairs, in columns.

    Args:
        x: (m,) places of their columns in a list of names.
        y: (m,) places in another list.
        found: What was found of them.
        beyond: How many other pairs were tested, with larger p-values.
        least_beyond: The smallest adjusted p-value of those.
    """

    x: Places
    y: Places
    found: Found
    beyond: int = 0
    least_beyond: float = 1.0


def gather(cells: Sequence[Cell], row_of: Callable[[Cell], Row], most: int) -> PairColumns:
    """Return the pairs of tiles: all, or those with the smallest p-values.

    Args:
        cells: At least one tile.
        row_of: Returns the row of a tile. Rows are read one after the other, and twice if there
            are more pairs than `most`: the memory is then that of their p-values.
        most: Pairs to return.
    """
    own = [cast(TileCell, cell) for cell in cells]
    count = sum(cell.count for cell in own)
    if count <= most:
        return _joined([_part(cell, row_of(cell)) for cell in own])
    p_values, start = np.empty(count), 0
    for cell in own:
        p_values[start : start + cell.count] = _numbers(row_of(cell), "p_value")
        start += cell.count
    p_values.sort()  # NaN last
    limit = np.nan_to_num(p_values[most - 1], nan=np.inf)
    equal = most - int((p_values[:most] < limit).sum())
    parts = []
    for cell in own:
        part = _part(cell, row_of(cell))
        chosen = part.found.p_value < limit
        at_limit = np.flatnonzero(part.found.p_value == limit)[:equal]
        equal -= len(at_limit)
        chosen[at_limit] = True
        parts.append(_chosen(part, chosen))
    tested = count - int(np.isnan(p_values).sum())
    least = _least_adjusted(p_values, most, tested)
    return replace(_joined(parts), beyond=max(0, tested - most), least_beyond=least)


def _least_adjusted(ordered: Array, first: int, tested: int) -> float:
    """Return the smallest p-value times the tests over its rank, from a place on."""
    least = 1.0
    for start in range(first, tested, _AT_ONCE):
        ranks = np.arange(start + 1, min(start + _AT_ONCE, tested) + 1)
        least = min(least, float((ordered[start : start + len(ranks)] / ranks).min()) * tested)
    return least


def _part(cell: "TileCell", row: Row) -> PairColumns:
    x_start, y_start = map(int, cell["tile"].split())
    places = cell.pairs() + np.array([x_start, y_start])
    p_value, mi, error, smooth, n = (_numbers(row, name) for name in _DTYPES)
    found = Found(p_value, mi, error, smooth, n.astype(np.int64))
    return PairColumns(places[:, 0], places[:, 1], found)


def _numbers(row: Row, name: str) -> Array:
    numbers = np.frombuffer(base64.b64decode(row[name]), _DTYPES[name])
    return numbers.astype(np.float64)


def _chosen(part: PairColumns, chosen: NDArray[np.bool_]) -> PairColumns:
    found = Found(*(getattr(part.found, f.name)[chosen] for f in fields(Found)))
    return PairColumns(part.x[chosen], part.y[chosen], found)


def _joined(parts: Sequence[PairColumns]) -> PairColumns:
    x, y = (np.concatenate([getattr(part, side) for part in parts]) for side in ("x", "y"))
    found = (np.concatenate([getattr(p.found, f.name) for p in parts]) for f in fields(Found))
    return PairColumns(x, y, Found(*found))


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
