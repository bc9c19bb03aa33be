"""Mutual information of all pairs of columns of a table.

Each pair is estimated on its own, with a p-value of independence by permutation. Of many tests
some are below .05 by sampling noise alone. So the p-values are adjusted by Benjamini and Hochberg:
of the pairs with `q_value` at most .05, one in twenty is expected to be a false discovery. Pairs
share columns, and so their tests depend on each other. The adjustment is known to hold well in
that case, though this is not proved.

The pairs are cells of a sweep: they run in several processes or on a cluster, their rows are
durable, and an interrupted matrix continues where it stopped. A cell is identified by the types and
values of its columns, so that stored rows of other data are never used.

References:
    Benjamini and Hochberg (1995), Controlling the false discovery rate.
"""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from .api import estimate
from .data.arrays import as_rows
from .data.files.columns import format_names
from .data.labels import Discrete
from .data.sample import NanPolicy, RowOptions
from .errors import DataError
from .estimators.registry import Preset
from .results import Caution
from .runtime.rowstore import Cell, Row, SqliteStore
from .runtime.sweep import Sweep, run_sweep

__all__ = ["PairwiseResult", "pairwise"]

_MEASURES = ("mi", "standard_error", "low", "high", "p_value", "lower_bound")
_TABLE = ("x", "y", *_MEASURES, "n", "warnings", "error")
_MANY_ROWS = 2_000  # half of so many suffice for training


@dataclass(frozen=True)
class PairwiseResult:
    """Mutual information of pairs of columns.

    Args:
        table: A row for each pair: `x`, `y`, `mi` in nats with `standard_error`, `low` and `high`
            of its interval, `lower_bound`, `p_value`, `q_value`, `n`, `warnings`, and `error`,
            which says why a pair could not be estimated.
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
    preset: Preset = "quick",
    folds: int | None = None,
    seed: int = 0,
    nan: NanPolicy = "raise",
    groups: Any = None,
    order: Any = None,
    discrete: Discrete = None,
    store: Path | None = None,
    n_jobs: int = 1,
    cluster: str | None = None,
    progress: Any = None,
) -> PairwiseResult:
    """Estimate the mutual information of all pairs of columns, or of some with others.

    Args:
        data: A frame of pandas or polars.
        x: Columns of the one side, each pair once. By default all columns that are numbers or
            labels; a warning names the others.
        y: Columns of the other side; by default those of x.
        preset: As of `estimate`.
        folds: As of `estimate`. The default is 5 below 2,000 rows, where critics need most of them
            for training, and 2 from there on.
        seed: One seed gives one answer.
        nan: `"raise"` an error on missing values, or `"omit"` the rows of a pair that hold one.
        groups: As of `estimate`, or the name of a column, which is then in no pair unless named.
        order: As of `estimate`, or the name of a column, likewise.
        discrete: Which columns of numbers are labels: `True` for all, `False` for none, or their
            names. By default those that take few values, each repeated often.
        store: A file of durable rows, to continue from; `None` holds them in memory.
        n_jobs: Processes to use.
        cluster: Address of a Dask scheduler to use instead.
        progress: Called with the share of the pairs that is done.
    """
    frame = nw.from_native(data, eager_only=True)
    apart = [name for name in (groups, order) if isinstance(name, str)]
    options = RowOptions(None, None, nan, None, seed, discrete)
    _check_names(frame, [*(x or ()), *(y or ()), *apart, *_listed(discrete)])
    x = _usable(frame.drop(apart)) if x is None else x
    if folds is None:
        folds = 5 if len(frame) < _MANY_ROWS else 2
    groups, order = (
        frame[value].to_native() if isinstance(value, str) else value for value in (groups, order)
    )
    shared: Cell = {"preset": preset, "folds": folds, "seed": seed, "nan": nan}
    labels = (("groups", groups), ("order", order))
    shared |= {name: _fingerprint(value) for name, value in labels if value is not None}
    options = replace(options, groups=groups, order=order)
    sweep = Sweep(_cells(frame, _pairs(x, y), shared, options), _estimated)
    with SqliteStore.in_memory() if store is None else SqliteStore.writing(store) as rows:
        found = run_sweep(sweep, rows, jobs=n_jobs, cluster=cluster, progress=progress)
    return PairwiseResult(_adjusted(found), _first_of_each(found))


def _check_names(frame: nw.DataFrame[Any], names: Sequence[str]) -> None:
    known = set(frame.columns)
    for name in names:
        if name not in known:
            raise DataError(f"no column {name!r}; there are {', '.join(frame.columns[:20])}")


def _listed(discrete: Discrete) -> Sequence[str]:
    """Return the columns that are named as labels."""
    return () if discrete is None or isinstance(discrete, bool | np.bool_) else discrete


def _usable(frame: nw.DataFrame[Any]) -> list[str]:
    """Return the columns that are numbers or categories; warn of the others."""
    usable = [name for name in frame.columns if _is_usable(frame[name])]
    others = [name for name in frame.columns if name not in set(usable)]
    if others:
        warnings.warn(
            f"left out: {format_names(others)} (neither numbers nor labels)",
            stacklevel=3,
        )
    return usable


def _is_usable(column: nw.Series[Any]) -> bool:
    """Tell whether `estimate` accepts a column; only of objects and text all must be read."""
    all_matter = column.dtype in (nw.Object, nw.String)
    try:
        as_rows((column if all_matter else column.head(1)).to_native(), "")
    except DataError:
        return False
    return True


def _pairs(x: Sequence[str], y: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the pairs of different columns, each once: two on both sides, the later x first."""
    place = {name: i for i, name in enumerate(dict.fromkeys(x))}
    if y is None:
        pairs = list(combinations(place, 2))
    else:
        both = place.keys() & set(y)
        pairs = [
            (b, a) if a in both and b in both else (a, b)
            for a, b in product(place, dict.fromkeys(y))
            if a not in both or b not in both or place[a] < place[b]
        ]
    if not pairs:
        raise DataError("there is no pair of different columns: name at least two")
    return pairs


def _cells(
    frame: nw.DataFrame[Any], pairs: list[tuple[str, str]], shared: Cell, rows: RowOptions
) -> list[Cell]:
    """Return a cell of each pair, with the entries `shared` by all."""
    names = dict.fromkeys(chain.from_iterable(pairs))
    columns = {name: (frame[name].to_native(), _fingerprint(frame[name])) for name in names}
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


def _fingerprint(column: Any) -> str:
    """Return a short text that only the same type and values have; of a bool its name."""
    if isinstance(column, bool):
        return str(column)
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        values, dtype = series.to_list(), repr(series.dtype)
    else:
        values = np.asarray(column).tolist()
        dtype = repr(pl.Series(values, strict=False).dtype)
    text = "\0".join([dtype, *map(repr, values)])  # repr: a null is not the text "None"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _estimated(cell: Cell) -> list[Row]:
    """Return the row of a pair."""
    pair = cast(_PairCell, cell)
    row: Row = dict.fromkeys((*_MEASURES, "n")) | {"warnings": "", "cautions": [], "error": ""}
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
    values = [{key: row[key] for key in _TABLE} for row in rows]
    table = pl.DataFrame(values, infer_schema_length=None)
    table = table.with_columns(pl.col(*_MEASURES).cast(pl.Float64))
    q_values = table["p_value"].to_numpy().copy()  # NaN of an untested pair
    tested = ~np.isnan(q_values)
    if tested.any():
        q_values[tested] = false_discovery_control(q_values[tested])
    adjusted = pl.Series("q_value", q_values).fill_nan(None)
    return table.insert_column(table.columns.index("p_value") + 1, adjusted)
