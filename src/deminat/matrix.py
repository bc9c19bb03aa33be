"""Mutual information of all pairs of columns of a table, in two tiers.

The fast tier has a p-value, an estimate and an interval for every pair, in some 0.1 ms each: see
`inference/all_pairs.py`. The strongest pairs, or all, are then estimated by the default recipe, in
seconds each. Dependent rows need the recipe, which permutes groups and shifts series.

Of many tests some are below .05 by sampling noise alone. So the p-values are adjusted by Benjamini
and Hochberg: of the pairs with `q_value` at most .05, one in twenty is expected to be a false
discovery. Pairs share columns, and so their tests depend on each other. The adjustment is known to
hold well in that case, though this is not proved.

Work is done in cells of a sweep, tiles of pairs and then single pairs: they run in several
processes or on a cluster, their rows are durable, and an interrupted matrix continues where it
stopped. A cell is identified by the types and values of its columns, so that stored rows of other
data are never used.

References:
    Benjamini and Hochberg (1995), Controlling the false discovery rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import narwhals as nw
import numpy as np
import polars as pl
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from .api import estimate
from .data.column_pairs import check_names, listed_labels, pairs_of, usable_or_warned
from .data.labels import Discrete, check_discrete
from .data.sample import NanPolicy, RowOptions
from .errors import DataError
from .estimators.registry import Preset
from .inference.tiles import (
    Loaded,
    fingerprint,
    found_of,
    load_columns,
    run_tile,
    seconds_a_pair,
    tiles,
)
from .results import Caution
from .runtime.progress import AskedProgress, shown
from .runtime.rowstore import Cell, Row, SqliteStore
from .runtime.sweep import Sweep, run_sweep

__all__ = ["PairwiseResult", "Refine", "pairwise"]

Refine: TypeAlias = int | Literal["all"]

_MEASURES = ("mi", "standard_error", "low", "high", "p_value", "lower_bound")
_TABLE = ("x", "y", *_MEASURES, "n", "method", "warnings", "error")
_FAST = "ranks"  # the name of the fast tier in tables
_LABELS = Caution(
    "labels",
    "columns of few values are read as labels: their codes may be in any order",
    "Pass discrete=False (--discrete none) if they are measurements",
)
_MANY_ROWS = 2_000  # half of so many suffice for training
_FEW_PAIRS = 5_000  # that are done here
_MINUTES = 120  # seconds from which time is told in minutes


@dataclass(frozen=True)
class PairwiseResult:
    """Mutual information of pairs of columns.

    Args:
        table: A row for each pair: `x`, `y`, `mi` in nats with `standard_error`, `low` and `high`
            of its interval, `lower_bound`, `p_value`, `q_value`, `n`, `method`, which is `ranks` in
            the fast tier and otherwise the preset, `warnings`, and `error`, which says why a pair
            could not be estimated.
        warnings: What the codes in the table mean, each in the words of the first pair that has it.
    """

    table: pl.DataFrame
    warnings: tuple[Caution, ...] = ()

    def square(self, value: str = "mi") -> tuple[list[str], list[str], NDArray[np.float64]]:
        """Return names of lines and columns, and a value of each pair; NaN where there is none."""
        pairs = list(self.table.select("x", "y", value).iter_rows())
        xs, ys = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
        if set(xs) & set(ys):  # a pair of columns on both sides fills two places
            xs = list(dict.fromkeys([*xs, *ys]))
            ys = xs if len(pairs) == len(xs) * (len(xs) - 1) // 2 else ys
            pairs += [(y, x, found) for x, y, found in pairs if x in ys]
        values = {(x, y): found for x, y, found in pairs}
        return xs, ys, np.array([[values.get((x, y)) for y in ys] for x in xs], dtype=float)

    def significant(self, level: float = 0.05) -> pl.DataFrame:
        """Return the pairs whose adjusted p-value is at most `level`, the largest MI first."""
        return self.table.filter(pl.col("q_value") <= level).sort("mi", descending=True)


class _PairCell(Cell):
    """A cell that brings the values of its own two columns.

    A task thus sends two columns to another process, however many the table has. The entries, and
    not these values, identify the cell.
    """

    __slots__ = ("columns", "rows")

    def __init__(self, entries: Cell, columns: tuple[Any, Any], rows: RowOptions):
        super().__init__(entries)
        self.columns, self.rows = columns, rows


def pairwise(
    data: Any,
    x: Sequence[str] | None = None,
    y: Sequence[str] | None = None,
    *,
    refine: Refine = 0,
    preset: Preset = "auto",
    folds: int | None = None,
    seed: int = 0,
    nan: NanPolicy = "raise",
    groups: Any = None,
    order: Any = None,
    discrete: Discrete = None,
    store: Path | None = None,
    n_jobs: int = 1,
    cluster: str | None = None,
    progress: AskedProgress = None,
    say: Callable[[str], None] | None = None,
) -> PairwiseResult:
    """Estimate the mutual information of all pairs of columns, or of some with others.

    Every pair has a p-value and an estimate by ranks, in some 0.1 ms. The strongest may be refined
    by the recipe of `estimate`, in seconds each. With groups or order all are.

    Args:
        data: A frame of pandas or polars.
        x: Columns of the one side, each pair once. By default all columns that are numbers or
            labels; a warning names the others.
        y: Columns of the other side; by default those of x.
        refine: How many of the strongest pairs are estimated by the recipe, too, or `"all"`.
        preset: The recipe, as of `estimate`.
        folds: As of `estimate`, for the recipe. The default is 5 below 2,000 rows, where critics
            need most of them for training, and 2 from there on.
        seed: One seed gives one answer.
        nan: `"raise"` an error on missing values, or `"omit"` the rows of a pair that hold one.
        groups: As of `estimate`, or the name of a column, which is then in no pair unless named.
        order: As of `estimate`, or the name of a column, likewise.
        discrete: Which columns of numbers are labels: `True` for all, `False` for none, or their
            names. By default those that take few values, each repeated often.
        store: A file of durable rows, to continue from; `None` holds them in memory.
        n_jobs: Processes to use.
        cluster: Address of a Dask scheduler to use instead.
        progress: As of `estimate`.
        say: Called with a line on the number of pairs and the time they will take.
    """
    if refine != "all" and (not isinstance(refine, int) or refine < 0):
        raise ValueError(f"refine must be a number of pairs or 'all', got {refine!r}")
    check_discrete(discrete)
    frame = nw.from_native(data, eager_only=True)
    apart = [name for name in (groups, order) if isinstance(name, str)]
    check_names(frame, [*(x or ()), *(y or ()), *apart, *listed_labels(discrete)])
    x = usable_or_warned(frame.drop(apart)) if x is None else x
    groups, order = (
        frame[value].to_native() if isinstance(value, str) else value for value in (groups, order)
    )
    recipe = _Recipe(
        preset,
        folds or (5 if len(frame) < _MANY_ROWS else 2),
        RowOptions(groups, order, nan, None, seed, discrete),
    )
    pairs = pairs_of(x, y)
    slow = recipe.rows_depend or refine == "all"
    opened = SqliteStore.in_memory() if store is None else SqliteStore.writing(store)
    with opened as rows, shown(progress, "pairs") as reported:

        def estimated(some: Sequence[tuple[str, str]]) -> list[Row]:
            if say is not None:
                say(f"by the recipe {preset}, some seconds each: {len(some):,} of the pairs")
            return run(_cells(frame, some, recipe), _estimated)

        def run(cells: Sequence[Cell], work: Callable[[Cell], list[Row]]) -> list[Row]:
            sweep = Sweep(cells, work)
            # Processes take longer to start than few pairs by ranks take.
            jobs = 1 if work is run_tile and len(pairs) < _FEW_PAIRS else n_jobs
            return run_sweep(sweep, rows, jobs=jobs, cluster=cluster, progress=reported)

        if slow:
            found = estimated(pairs)
        else:
            found = _by_ranks(frame, pairs, recipe, run, _Announced(say, n_jobs))
            chosen = _strongest(found, refine)
            if chosen:
                found = _replaced(found, estimated([(row["x"], row["y"]) for row in chosen]))
    return PairwiseResult(_adjusted(found), _first_of_each(found))


@dataclass(frozen=True)
class _Recipe:
    """How single pairs are estimated.

    Args:
        preset: As of `estimate`.
        folds: As of `estimate`.
        rows: What to do with rows.
    """

    preset: Preset
    folds: int
    rows: RowOptions

    @property
    def rows_depend(self) -> bool:
        """Whether rows are in groups or in an order."""
        named = self.rows.groups is not None
        return named or not (self.rows.order is None or self.rows.order is False)


@dataclass(frozen=True)
class _Announced:
    """Who is told how long the fast tier takes.

    Args:
        say: Called with a line; `None` for nobody.
        n_jobs: Processes that will share the work.
    """

    say: Callable[[str], None] | None
    n_jobs: int

    def __call__(self, loaded: Loaded, pairs: int, seed: int) -> None:
        """Tell the number of pairs and the time expected."""
        if self.say is None or not loaded.columns:
            return
        columns = list(loaded.columns.values())
        seconds = seconds_a_pair(columns, seed) * pairs / max(1, effective_n_jobs(self.n_jobs))
        time = "a second" if seconds < 1 else f"{seconds:,.0f} s"
        if seconds > _MINUTES:
            time = f"{seconds / 60:,.0f} min"
        rows = len(columns[0].values)
        self.say(f"{pairs:,} pairs of {len(columns):,} columns, {rows:,} rows: about {time}")


def _by_ranks(
    frame: nw.DataFrame[Any],
    pairs: Sequence[tuple[str, str]],
    recipe: _Recipe,
    run: Callable[[Sequence[Cell], Callable[[Cell], list[Row]]], list[Row]],
    announce: _Announced,
) -> list[Row]:
    """Return the row of each pair by the fast tier, in the order of the pairs."""
    names = list(dict.fromkeys(chain.from_iterable(pairs)))
    rows = recipe.rows
    loaded = load_columns(frame, names, rows.discrete, rows.nan == "omit")
    usable = [pair for pair in pairs if not loaded.refused.keys() & set(pair)]
    announce(loaded, len(usable), rows.seed)
    cells = tiles(loaded.columns, usable, rows.seed)
    known: dict[tuple[str, str], Row] = {}
    for cell, row in zip(cells, run(cells, run_tile) if cells else (), strict=True):
        of_pairs, found = found_of(cell, row)
        low, high = found.interval()
        numbers = (found.mi, found.error, low, high, found.p_value)
        for pair, n, *values in zip(of_pairs, found.n.tolist(), *numbers, strict=True):
            known[pair] = _fast_row(pair, n, [float(v) for v in values], loaded)
    return [known.get(pair) or _refused(pair, loaded) for pair in pairs]


def _fast_row(pair: tuple[str, str], n: int, values: Sequence[float], loaded: Loaded) -> Row:
    row: Row = {**_empty(pair), "n": n, "method": _FAST}
    if np.isnan(values[0]):
        return {**row, "error": f"{n} rows have both values: too few"}
    row |= dict(zip(("mi", "standard_error", "low", "high", "p_value"), values, strict=True))
    if loaded.read_as_labels & set(pair):
        row |= {"warnings": _LABELS.code, "cautions": [asdict(_LABELS)]}
    return row


def _refused(pair: tuple[str, str], loaded: Loaded) -> Row:
    reason = next(loaded.refused[name] for name in pair if name in loaded.refused)
    return {**_empty(pair), "error": reason}


def _empty(pair: tuple[str, str]) -> Row:
    x, y = pair
    nothing = dict.fromkeys((*_MEASURES, "n"))
    return {"x": x, "y": y, **nothing, "method": "", "warnings": "", "cautions": [], "error": ""}


def _strongest(rows: Sequence[Row], refine: Refine) -> list[Row]:
    """Return the rows of the pairs with the smallest p-values; of equal ones, the largest MI."""
    known = [row for row in rows if row["p_value"] is not None]
    ordered = sorted(known, key=lambda row: (row["p_value"], -row["mi"]))
    return ordered[: len(ordered) if refine == "all" else refine]


def _replaced(rows: Sequence[Row], better: Sequence[Row]) -> list[Row]:
    """Return the rows with some replaced, unless their pair could not be estimated."""
    known = {(row["x"], row["y"]): row for row in better if not row["error"]}
    return [known.get((row["x"], row["y"]), row) for row in rows]


def _cells(
    frame: nw.DataFrame[Any], pairs: Sequence[tuple[str, str]], recipe: _Recipe
) -> list[Cell]:
    """Return a cell of each pair for the recipe."""
    rows = recipe.rows
    shared: Cell = {
        "preset": recipe.preset,
        "folds": recipe.folds,
        "seed": rows.seed,
        "nan": rows.nan,
    }
    units = (("groups", rows.groups), ("order", rows.order))
    shared |= {name: fingerprint(value) for name, value in units if value is not None}
    names = dict.fromkeys(chain.from_iterable(pairs))
    columns = {name: (frame[name].to_native(), fingerprint(frame[name])) for name in names}
    cells: list[Cell] = []
    for a, b in pairs:
        (x, of_x), (y, of_y) = columns[a], columns[b]
        entries = {"x": a, "y": b, "values": f"{of_x} {of_y}", **shared}
        discrete = rows.discrete
        if discrete is not None:
            if not isinstance(discrete, bool | np.bool_):
                discrete = [name for name in (a, b) if name in discrete]
            entries["discrete"] = repr(discrete)
        cells.append(_PairCell(entries, (x, y), replace(rows, discrete=discrete)))
    return cells


def _estimated(cell: Cell) -> list[Row]:
    """Return the row of a pair by the recipe."""
    pair = cast(_PairCell, cell)
    row = _empty((pair["x"], pair["y"])) | {"method": pair["preset"]}
    try:
        result = estimate(
            *pair.columns,
            preset=pair["preset"],
            folds=pair["folds"],
            seed=pair.rows.seed,
            nan=pair.rows.nan,
            groups=pair.rows.groups,
            order=pair.rows.order,
            discrete=pair.rows.discrete,
        )
    except DataError as error:
        return [{**cell, **row, "error": str(error)}]
    for name in ("mi", "standard_error", "p_value", "lower_bound", "n"):
        row[name] = getattr(result, name)
    row["low"], row["high"] = result.interval or (None, None)
    row["warnings"] = " ".join(dict.fromkeys(w.code for w in result.warnings))
    row["cautions"] = [asdict(w) for w in result.warnings]
    return [{**cell, **row}]


def _first_of_each(rows: list[Row]) -> tuple[Caution, ...]:
    """Return the first warning of each code; rows stored by an older version have none."""
    first: dict[str, Caution] = {}
    for caution in (caution for row in rows for caution in row.get("cautions", ())):
        first.setdefault(caution["code"], Caution(**caution))
    return tuple(first.values())


def _adjusted(rows: list[Row]) -> pl.DataFrame:
    """Return a table with adjusted p-values."""
    values = [{key: row.get(key) for key in _TABLE} for row in rows]
    table = pl.DataFrame(values, infer_schema_length=None)
    table = table.with_columns(pl.col(*_MEASURES).cast(pl.Float64))
    q_values = table["p_value"].to_numpy().copy()  # NaN of an untested pair
    tested = ~np.isnan(q_values)
    if tested.any():
        q_values[tested] = false_discovery_control(q_values[tested])
    adjusted = pl.Series("q_value", q_values).fill_nan(None)
    return table.insert_column(table.columns.index("p_value") + 1, adjusted)
