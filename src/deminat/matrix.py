"""Mutual information of all pairs of columns of a table, in two tiers.

The fast tier has a p-value, an estimate and an interval for every pair, in some 0.1 ms each: see
`inference/all_pairs.py`. The strongest pairs, or all, are then estimated by the default recipe, in
seconds each. Dependent rows need the recipe, which permutes groups and shifts series.

Of many tests some are below .05 by sampling noise alone. So the p-values are adjusted by Benjamini
and Hochberg: of the pairs with `q_value` at most .05, one in twenty is expected to be a false
discovery. Pairs share columns, and so their tests depend on each other. The adjustment is known to
hold well in that case, though this is not proved.

Several columns may be one unit, such as the neurons of an area. Its pairs are estimated by the
recipe, too.

Work is done in cells of a sweep, tiles of pairs and then single pairs: they run in several
processes or on a cluster, their rows are durable, and an interrupted matrix continues where it
stopped. A cell is identified by the types and values of its columns, so that stored rows of other
data are never used.

20,000 columns have 200 million pairs. Only their p-values are in memory together; the table has the
pairs with the smallest.

References:
    Benjamini and Hochberg (1995), Controlling the false discovery rate.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias, cast

import narwhals as nw
import numpy as np
import polars as pl
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .api import estimate
from .data.column_pairs import (
    ColumnPairs,
    Variables,
    as_table,
    check_names,
    listed_labels,
    pairs_of,
    with_days,
)
from .data.labels import Discrete, check_discrete
from .data.sample import NanPolicy, RowOptions
from .data.subsample import subsample
from .errors import DataError
from .estimators.registry import Preset
from .inference.pair_table import (
    LABELS,
    PairTable,
    empty_row,
    fast_table,
    missing_warnings,
    refused_table,
    table_of,
)
from .inference.tiles import (
    Loaded,
    fingerprint,
    gather,
    load_columns,
    run_tile,
    seconds_a_pair,
    tiles,
)
from .report.tables import MOST_LINES, html_table, text_table
from .results import Caution
from .runtime.progress import AskedProgress, Progress, shown
from .runtime.rowstore import Cell, Row, SqliteStore
from .runtime.sweep import Sweep, complete_sweep, run_sweep

__all__ = ["MOST_PAIRS", "PairwiseResult", "Refine", "pairwise"]

Refine: TypeAlias = int | Literal["all"]

Array = NDArray[np.float64]

MOST_PAIRS = 5_000_000  # in a table

_MANY_ROWS = 2_000  # half of so many suffice for training
_FEW_PAIRS = 5_000  # that are done here
_MINUTES = 120  # seconds from which time is told in minutes


@dataclass(frozen=True)
class PairwiseResult:
    """Mutual information of pairs of columns.

    Args:
        table: A row for each pair, the largest MI first, in a frame of the caller's kind: `x`, `y`,
            `mi` in nats with `standard_error`, `low` and `high` of its interval, `lower_bound`,
            `p_value`, `q_value`, `n`, `method`, which is `ranks` in the fast tier and otherwise the
            preset, `warnings`, and `error`, which says why a pair could not be estimated.
        warnings: What the codes in the table mean, each in the words of the first pair that has it.
    """

    table: Any
    warnings: tuple[Caution, ...] = ()

    def __len__(self) -> int:
        return len(self.table)

    def __str__(self) -> str:
        return text_table(self._first(), ("x", "y"), len(self), "pairs")

    def _repr_html_(self) -> str:
        """Return a table with a bar for each pair, for notebooks."""
        return html_table(self._first(), ("x", "y"), f"{len(self):,} pairs of columns")

    def _first(self) -> list[dict[str, Any]]:
        """Return the rows that are printed; pairs that could not be estimated have none."""
        rows = nw.from_native(self.table, eager_only=True).head(MOST_LINES)
        return [row for row in rows.iter_rows(named=True) if not row["error"]]

    def square(self, value: str = "mi") -> tuple[list[str], list[str], Array]:
        """Return names of lines and columns, and a value of each pair; NaN where there is none."""
        table = nw.from_native(self.table, eager_only=True)
        first, second = (table[side].to_list() for side in ("x", "y"))
        xs, ys = list(dict.fromkeys(first)), list(dict.fromkeys(second))
        if set(xs) & set(ys):  # a pair of columns on both sides fills two places
            xs = list(dict.fromkeys([*xs, *ys]))
            ys = xs if len(first) == len(xs) * (len(xs) - 1) // 2 else ys
        line, column = ({name: i for i, name in enumerate(names)} for names in (xs, ys))
        found = np.full((len(xs), len(ys)), np.nan)
        values = np.array(table[value].to_list(), dtype=np.float64)  # None is NaN
        for a, b in ((second, first), (first, second)):
            rows = np.array([line.get(name, -1) for name in a], dtype=np.int64)
            others = np.array([column.get(name, -1) for name in b], dtype=np.int64)
            there = (rows >= 0) & (others >= 0)
            found[rows[there], others[there]] = values[there]
        return xs, ys, found

    def significant(self, level: float = 0.05) -> Any:
        """Return the pairs whose adjusted p-value is at most `level`, the largest MI first."""
        return nw.from_native(self.table).filter(nw.col("q_value") <= level).to_native()


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
    units: Mapping[str, Sequence[str]] | None = None,
    refine: Refine = 0,
    preset: Preset = "auto",
    folds: int | None = None,
    seed: int = 0,
    nan: NanPolicy = "omit",
    groups: Any = None,
    order: Any = None,
    discrete: Discrete = None,
    max_rows: int | None = None,
    most: int = MOST_PAIRS,
    store: Path | None = None,
    n_jobs: int = 1,
    cluster: str | None = None,
    progress: AskedProgress = None,
    say: Callable[[str], None] | None = None,
) -> PairwiseResult:
    """Estimate the mutual information of all pairs of columns, or of some with others.

    Every pair has a p-value and an estimate by ranks, in some 0.1 ms. The strongest may be refined
    by the recipe of `estimate`, in seconds each. With groups or order all are, and so are pairs of
    units.

    Args:
        data: A frame of pandas or polars.
        x: Columns or units of the one side, each pair once. By default all columns that are numbers
            or labels, and all units instead of their columns; a warning names the others.
        y: Columns or units of the other side; by default those of x.
        units: Several columns as one variable: a name of your own, and the names of its columns.
        refine: How many of the strongest pairs are estimated by the recipe, too, or `"all"`.
        preset: The recipe, as of `estimate`.
        folds: As of `estimate`, for the recipe. The default is 5 below 2,000 rows, where critics
            need most of them for training, and 2 from there on.
        seed: One seed gives one answer.
        nan: `"omit"` the rows of a pair that hold a missing value, or `"raise"` an error.
        groups: As of `estimate`, or the name of a column, which is then in no pair unless named.
        order: As of `estimate`, or the name of a column, likewise.
        discrete: Which columns of numbers are labels: `True` for all, `False` for none, or their
            names. By default those that take few values, each repeated often.
        max_rows: As of `estimate`; the same rows for all pairs. By default all rows are used by
            ranks, and as many as `estimate` uses by the recipe.
        most: The largest number of pairs in the table, those with the smallest p-values. Adjusted
            p-values count all.
        store: A file of durable rows, to continue from; `None` holds them in memory.
        n_jobs: Processes to use.
        cluster: Address of a Dask scheduler to use instead.
        progress: As of `estimate`.
        say: Called with a line on the number of pairs and the time they will take.
    """
    if refine != "all" and (not isinstance(refine, int) or refine < 0):
        raise ValueError(f"refine must be a number of pairs or 'all', got {refine!r}")
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most!r}")
    check_discrete(discrete)
    table = as_table(data)
    apart = [name for name in (groups, order) if isinstance(name, str)]
    check_names(table.columns, [*apart, *listed_labels(discrete)])
    groups, order = (
        table[value].to_native() if isinstance(value, str) else value for value in (groups, order)
    )
    table = with_days(table, apart)
    used = subsample([table.to_native()], groups, order, max_rows or math.inf, seed)
    frame = Variables(nw.from_native(used.sides[0], eager_only=True), units or {})
    frame.check([*(x or ()), *(y or ())])
    pairs = pairs_of(frame.usable(apart) if x is None else x, y)
    recipe = _Recipe(
        preset,
        folds or (5 if len(frame.table) < _MANY_ROWS else 2),
        RowOptions(used.groups, used.order, nan, None, seed, discrete),
    )
    with _opened(store, len(pairs)) as rows, shown(progress, "pairs") as reported:
        sweeps = _Sweeps(rows, n_jobs, cluster, reported, say)
        if recipe.rows_depend or refine == "all":
            found = sweeps.by_recipe(frame, list(pairs), recipe, pairs)
        else:
            found = sweeps.by_ranks(frame, pairs, recipe, most)
            chosen = [*pairs.having(frame.units), *found.strongest(refine)]
            if chosen:
                found = found.replaced(sweeps.by_recipe(frame, chosen, recipe, pairs))
    cautions = *used.warnings, *found.warnings()
    return PairwiseResult(_as_kind(found.adjusted(), table.implementation), cautions)


def _opened(store: Path | None, pairs: int) -> AbstractContextManager[SqliteStore]:
    """Open a store of rows: of many pairs in a temporary file, if none is named."""
    if store is not None:
        return SqliteStore.writing(store)
    return SqliteStore.in_memory() if pairs <= MOST_PAIRS else _temporary()


@contextmanager
def _temporary() -> Iterator[SqliteStore]:
    with (
        TemporaryDirectory(prefix="deminat-") as folder,
        SqliteStore.writing(Path(folder) / "pairs.sqlite") as rows,
    ):
        yield rows


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


def _as_kind(table: pl.DataFrame, kind: nw.Implementation) -> Any:
    """Return a table as a frame of polars, pandas or another kind."""
    if kind is nw.Implementation.POLARS:
        return table
    columns = {column.name: column.to_numpy() for column in table}
    return nw.from_dict(columns, backend=cast(Any, kind)).to_native()


@dataclass(frozen=True)
class _Sweeps:
    """Both tiers, as sweeps over cells.

    Args:
        rows: Where their rows are stored.
        n_jobs: Processes to use.
        cluster: Address of a Dask scheduler to use instead.
        progress: Called with the share that is done.
        say: Called with a line on the pairs and their time; `None` for nobody.
    """

    rows: SqliteStore
    n_jobs: int
    cluster: str | None
    progress: Progress | None
    say: Callable[[str], None] | None

    def by_recipe(
        self,
        frame: Variables,
        some: Sequence[tuple[str, str]],
        recipe: _Recipe,
        pairs: ColumnPairs,
    ) -> PairTable:
        """Return some of the pairs by the recipe."""
        if self.say is not None:
            self.say(
                f"by the recipe {recipe.preset}, some seconds each: {len(some):,} of the pairs"
            )
        sweep = Sweep(_cells(frame, some, recipe), _estimated)
        rows = run_sweep(
            sweep, self.rows, jobs=self.n_jobs, cluster=self.cluster, progress=self.progress
        )
        cautions: dict[str, Caution] = {}
        for caution in (caution for row in rows for caution in row.get("cautions", ())):
            cautions.setdefault(caution["code"], Caution(**caution))
        return PairTable(table_of(rows, pairs), cautions)

    def by_ranks(
        self, frame: Variables, pairs: ColumnPairs, recipe: _Recipe, most: int
    ) -> PairTable:
        """Return all pairs of single columns by the fast tier."""
        single, rows = pairs.without(frame.units), recipe.rows
        names = single.names
        loaded = load_columns(frame.table, names, rows.discrete, rows.nan == "omit")
        usable = single.without(loaded.refused)
        cautions = {c.code: c for c in missing_warnings(loaded)}
        self._announce(loaded, len(usable), rows.seed)
        cells = tiles(loaded.columns, usable, rows.seed)
        complete_sweep(
            Sweep(cells, run_tile),
            self.rows,
            # Processes take longer to start than few pairs by ranks take.
            jobs=1 if len(usable) < _FEW_PAIRS else self.n_jobs,
            cluster=self.cluster,
            progress=self.progress,
        )
        refused = refused_table(single.having(loaded.refused), loaded, pairs)
        if not cells:
            return PairTable(refused, cautions)
        found = gather(cells, lambda cell: self.rows.rows([cell])[0], most)
        table = pl.concat([fast_table(found, usable, pairs, loaded), refused]).sort("place")
        if LABELS.code in table["warnings"]:
            cautions[LABELS.code] = LABELS
        return PairTable(table, cautions, found.beyond, found.least_beyond)

    def _announce(self, loaded: Loaded, pairs: int, seed: int) -> None:
        """Tell the number of pairs and the time expected."""
        if self.say is None or not pairs:
            return
        columns = list(loaded.columns.values())
        seconds = seconds_a_pair(columns, seed) * pairs / max(1, effective_n_jobs(self.n_jobs))
        time = "a second" if seconds < 1 else f"{seconds:,.0f} s"
        if seconds > _MINUTES:
            time = f"{seconds / 60:,.0f} min"
        rows = len(columns[0].values)
        some = "1 pair" if pairs == 1 else f"{pairs:,} pairs"
        self.say(f"{some} of {len(columns):,} columns, {rows:,} rows: about {time}")


def _cells(frame: Variables, pairs: Sequence[tuple[str, str]], recipe: _Recipe) -> list[Cell]:
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
    columns = {
        name: (frame.values(name), _fingerprint(frame, name))
        for name in dict.fromkeys(chain.from_iterable(pairs))
    }
    cells: list[Cell] = []
    for a, b in pairs:
        (x, of_x), (y, of_y) = columns[a], columns[b]
        entries = {"x": a, "y": b, "values": f"{of_x} {of_y}", **shared}
        discrete = rows.discrete
        if discrete is not None:
            if not isinstance(discrete, bool | np.bool_):
                own = {*frame.columns_of(a), *frame.columns_of(b)}
                discrete = [name for name in discrete if name in own]
            entries["discrete"] = repr(discrete)
        cells.append(_PairCell(entries, (x, y), replace(rows, discrete=discrete)))
    return cells


def _fingerprint(frame: Variables, name: str) -> str:
    """Return a text that only the same columns with the same values have."""
    if name not in frame.units:
        return fingerprint(frame.table[name])
    columns = frame.columns_of(name)
    return fingerprint(" ".join(f"{c}\0{fingerprint(frame.table[c])}" for c in columns))


def _estimated(cell: Cell) -> list[Row]:
    """Return the row of a pair by the recipe."""
    pair = cast(_PairCell, cell)
    row = empty_row((pair["x"], pair["y"])) | {"method": pair["preset"]}
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
