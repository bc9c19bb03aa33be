"""All pairs of columns: how much each tells about each other, and which of it is no accident.

Each pair is an estimate of its own, with a p-value of independence by permutation. Where many are
tested some are below .05 by chance, so the p-values are adjusted by Benjamini and Hochberg: of
the pairs with `q_value` at most .05, one in twenty is expected to be a false alarm. Pairs share
columns, under which the adjustment is known to hold well though not proved.

The pairs are cells of a sweep: they run in several processes or on a cluster, rows are durable, and
a matrix that was interrupted goes on where it was. A cell is known by its columns' values, so that
rows of other data are never taken for these.

References:
    Benjamini and Hochberg (1995), Controlling the false discovery rate.
"""

import hashlib
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from .api import estimate
from .data.arrays import as_rows
from .data.files.columns import format_names
from .data.sample import NanPolicy
from .errors import DataError
from .estimators.recipes import Preset
from .results import Caution
from .runtime.rowstore import Cell, Row, SqliteStore, key_of
from .runtime.sweep import Sweep, run_sweep

__all__ = ["PairwiseResult", "pairwise"]

Columns = dict[str, Any]

_MEASURED = ("mi", "standard_error", "low", "high", "p_value", "lower_bound")
_MANY = 2_000  # rows, half of which suffice to train on


@dataclass(frozen=True)
class PairwiseResult:
    """Mutual information of pairs of columns.

    Args:
        table: A row for each pair: `x`, `y`, `mi` in nats with `standard_error`, `low` and `high`
            of its interval, `lower_bound`, `p_value`, `q_value`, `n`, `warnings`, and what was
            wrong in `error`, where a pair could not be estimated.
        warnings: What the codes of the table stand for, each as the first pair tells that has it.
    """

    table: pl.DataFrame
    warnings: tuple[Caution, ...] = ()

    def square(self, value: str = "mi") -> tuple[list[str], list[str], NDArray[np.float64]]:
        """Return names of lines and columns, and a value of each pair; NaN where there is none."""
        pairs = list(self.table.select("x", "y", value).iter_rows())
        xs, ys = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
        if set(xs) & set(ys):  # some are on both sides: what is known of them goes in both places
            xs = list(dict.fromkeys([*xs, *ys]))
            ys = xs if len(pairs) == len(xs) * (len(xs) - 1) // 2 else ys
            pairs += [(y, x, found) for x, y, found in pairs if x in ys]
        lines, columns = ({name: i for i, name in enumerate(side)} for side in (xs, ys))
        square = np.full((len(xs), len(ys)), np.nan)
        for x, y, found in pairs:
            square[lines[x], columns[y]] = np.nan if found is None else found
        return xs, ys, square

    def significant(self, level: float = 0.05) -> pl.DataFrame:
        """Return the pairs whose adjusted p-value is at most `level`, the largest MI first."""
        return self.table.filter(pl.col("q_value") <= level).sort("mi", descending=True)


def pairwise(
    data: Any,
    x: Sequence[str] | None = None,
    y: Sequence[str] | None = None,
    *,
    preset: Preset = "quick",
    folds: int | None = None,
    seed: int = 0,
    nan: NanPolicy = "raise",
    groups: Any = None,
    order: Any = None,
    store: Path | None = None,
    n_jobs: int = 1,
    cluster: str | None = None,
    progress: Any = None,
) -> PairwiseResult:
    """Estimate the mutual information of all pairs of columns, or of some with others.

    Args:
        data: A frame of pandas or polars.
        x: Columns of the one side, each pair once; by default all but those that are neither
            numbers nor of a categorical type, which a warning names.
        y: Columns of the other side; by default those of x.
        preset: As of `estimate`.
        folds: As of `estimate`; by default 5 of a table below 2,000 rows, where critics need most
            of them, and 2 from there on.
        seed: One seed gives one answer.
        nan: `"raise"` an error on missing values, or `"omit"` the rows of a pair that hold one.
        groups: As of `estimate`, or the name of a column, which then is in no pair unless named.
        order: As of `estimate`, or the name of a column, likewise.
        store: A file of durable rows to go on after; `None` keeps them in memory.
        n_jobs: Processes to use.
        cluster: Address of a Dask scheduler to use instead.
        progress: Called with the share of the pairs that is done.
    """
    frame = nw.from_native(data, eager_only=True)
    apart = [name for name in (groups, order) if isinstance(name, str)]
    _check_names(frame, [*(x or ()), *(y or ()), *apart])
    pairs = _pairs(_usable(frame.drop(apart)) if x is None else x, y)
    columns: Columns = {name: frame[name] for name in dict.fromkeys(sum(pairs, ()))}
    marks = {name: _mark(column) for name, column in columns.items()}
    if folds is None:
        folds = 5 if len(frame) < _MANY else 2
    known = _known(frame, groups=groups, order=order)
    how: Cell = {"preset": preset, "folds": folds, "seed": seed, "nan": nan}
    how |= {name: _mark(value) for name, value in known.items()}
    cells = [{"x": a, "y": b, "values": f"{marks[a]} {marks[b]}", **how} for a, b in pairs]
    sweep = Sweep(cells, partial(_estimated, columns, known))
    with nullcontext(_Memory()) if store is None else SqliteStore.writing(store) as rows:
        found = run_sweep(sweep, rows, jobs=n_jobs, cluster=cluster, progress=progress)
    return PairwiseResult(_adjusted(found), _first_of_each(found))


def _known(frame: nw.DataFrame[Any], **given: Any) -> Columns:
    """Return what is known of the rows, columns by their values."""
    return {
        name: frame[value].to_native() if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }


def _usable(frame: nw.DataFrame[Any]) -> list[str]:
    """Return the columns that are numbers or categories; warn of the others."""
    usable = {name: _is_usable(frame[name]) for name in frame.columns}
    left_out = [name for name, is_usable in usable.items() if not is_usable]
    if left_out:
        warnings.warn(
            f"left out: {format_names(left_out)} (not numbers; give categories a categorical type)",
            stacklevel=3,
        )
    return [name for name, is_usable in usable.items() if is_usable]


def _is_usable(column: nw.Series[Any]) -> bool:
    """Tell whether `estimate` would take a column; of mere objects every one is looked at."""
    try:
        as_rows((column if column.dtype == nw.Object else column.head(1)).to_native(), "")
    except DataError:
        return False
    return True


def _check_names(frame: nw.DataFrame[Any], names: Sequence[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise DataError(f"no column {name!r}; there are {', '.join(frame.columns[:20])}")


def _pairs(x: Sequence[str], y: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return who is estimated with whom."""
    xs = list(dict.fromkeys(x))
    pairs = list(combinations(xs, 2)) if y is None else list(product(xs, dict.fromkeys(y)))
    found = {frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}
    if not found:
        raise DataError("there is no pair of different columns: name at least two")
    return list(found.values())


def _mark(column: Any) -> str:
    """Return a short text that is the same for the same values only; of a bool itself."""
    if isinstance(column, bool):
        return str(column)
    values = column.to_list() if hasattr(column, "to_list") else np.asarray(column).tolist()
    text = "\0".join(map(str, values))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _estimated(columns: Columns, known: Columns, cell: Cell) -> list[Row]:
    """Return the row of a pair, of rows of which something may be known."""
    x, y = (columns[cell[side]].to_native() for side in ("x", "y"))
    how = {key: cell[key] for key in ("preset", "folds", "seed", "nan")}
    try:
        result = estimate(x, y, **{**how, **known})
    except DataError as error:
        nothing = dict.fromkeys((*_MEASURED, "n"))
        return [{**cell, **nothing, "warnings": "", "cautions": [], "error": str(error)}]
    low, high = result.interval or (None, None)
    return [
        {
            **cell,
            "mi": result.mi,
            "standard_error": result.standard_error,
            "low": low,
            "high": high,
            "p_value": result.p_value,
            "lower_bound": result.lower_bound,
            "n": result.n,
            "warnings": " ".join(dict.fromkeys(w.code for w in result.warnings)),
            "cautions": [asdict(w) for w in result.warnings],
            "error": "",
        }
    ]


def _first_of_each(rows: list[Row]) -> tuple[Caution, ...]:
    """Return the first warning of each kind; rows that an older version stored tell none."""
    first: dict[str, Caution] = {}
    for told in (told for row in rows for told in row.get("cautions", ())):
        first.setdefault(told["code"], Caution(**told))
    return tuple(first.values())


def _adjusted(rows: list[Row]) -> pl.DataFrame:
    """Return a table with adjusted p-values."""
    kept = ("x", "y", *_MEASURED, "n", "warnings", "error")
    table = pl.DataFrame(
        [{key: row[key] for key in kept} for row in rows], infer_schema_length=None
    )
    table = table.with_columns(pl.col(*_MEASURED).cast(pl.Float64))
    tested = table["p_value"].is_not_null().to_numpy()
    q_values = np.full(len(table), np.nan)
    if tested.any():
        q_values[tested] = false_discovery_control(table["p_value"].drop_nulls().to_numpy())
    adjusted = pl.Series("q_value", q_values).fill_nan(None)
    return table.insert_column(table.columns.index("p_value") + 1, adjusted)


class _Memory:
    """Rows that are kept for as long as a matrix takes."""

    def __init__(self) -> None:
        self._rows: dict[str, Sequence[Row]] = {}

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cell for cell in cells if key_of(cell) not in self._rows]

    def add(self, cell: Cell, rows: Sequence[Row]) -> None:
        self._rows[key_of(cell)] = rows

    def rows(self, cells: Sequence[Cell]) -> list[Row]:
        return [row for cell in cells for row in self._rows[key_of(cell)]]
