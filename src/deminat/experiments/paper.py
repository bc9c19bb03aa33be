"""What `deminat paper` runs, and what it writes of the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import polars as pl

from ..errors import DataError
from ..store import Cell, Row, Store, key_of, replaced
from ..sweeps import Sweep, matching, run_sweep
from .consistency import ConsistencyStudy, ratios, run_consistency
from .figures import COLOURS, draw_consistency, draw_gaussian, draw_infomax, draw_longrun
from .gaussian import GaussianStudy, run_gaussian
from .infomax import InfoMaxStudy, run_infomax
from .longrun import LongRunStudy, run_longrun
from .tables import Table, entry, latex, markdown, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Experiment", "Study", "run_paper"]


class Study(Protocol):
    """A frozen dataclass that says what to run, with the fields `reps` and `scale` among others."""

    def cells(self) -> list[Cell]:
        """Return what to run."""
        ...


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments.

    Args:
        study: What to run.
        run: Turns a cell into rows.
        tables: Tables of rows.
        draw: Figure of rows.
        apart: Keys whose values must agree for rows to be shown together.
        derived: Rows with what is computed from several.
    """

    study: Study
    run: Callable[[Cell], list[Row]]
    tables: Callable[[Sequence[Row]], list[Table]]
    draw: Callable[[Sequence[Row]], "Figure"]
    apart: tuple[str, ...] = ()
    derived: Callable[[list[Row]], list[Row]] = list

    def sweep(self, only: Sequence[str] = (), **changed: object) -> Sweep:
        """Return what to run: cells that match `only`, of a study with some fields changed."""
        given: dict[str, Any] = {k: v for k, v in changed.items() if v is not None}
        if not 0 < given.get("scale", 1.0) <= 1:
            raise DataError(f"scale must be above 0 and at most 1, got {given['scale']:g}")
        study = cast(Study, replace(cast(Any, self.study), **given))
        cells = {key_of(cell): cell for cell in study.cells()}  # at small scales some are equal
        return Sweep(matching(list(cells.values()), only), self.run)

    def shown(self, rows: Sequence[Row], cells: Sequence[Cell]) -> list[Row]:
        """Return the rows that may stand beside those of the cells."""
        settings = {tuple(cell[key] for key in self.apart) for cell in cells}
        return [row for row in rows if tuple(row[key] for key in self.apart) in settings]


def run_paper(
    name: str,
    experiment: Experiment,
    sweep: Sweep,
    folder: Path,
    **how: Any,
) -> list[Row]:
    """Run what is missing; write all rows, with tables and figures of those like the sweep's.

    Args:
        name: What files are called.
        experiment: What is run.
        sweep: Its cells.
        folder: Where to. If there are rows in a CSV file alone, as in a clone, it goes on there.
        **how: As of `run_sweep`.

    Returns:
        The rows of the tables and figures.
    """
    path = folder / name
    with Store.writing(path.with_name(f"{name}.sqlite")) as store:
        if not store.rows():
            _take_up(store, path.with_name(f"{name}.csv"), list(sweep.cells[0]))
        try:
            run_sweep(sweep, store, **how)
        finally:  # what there is, also when some cells failed
            rows = sorted(experiment.derived(store.rows()), key=_place)
            shown = experiment.shown(rows, sweep.cells)
            _write(experiment, rows, shown, path)
    return shown


def _take_up(store: Store, path: Path, keys: list[str]) -> None:
    """Put the rows of a CSV file that `_write` wrote into an empty store."""
    if not path.exists():
        return
    frame = pl.read_csv(path, infer_schema_length=None)
    if "step" in frame.columns:  # one line a point
        curve = [pl.col("step"), pl.col("estimate")]
        others = [column for column in frame.columns if column not in ("step", "estimate")]
        joined = frame.group_by(others, maintain_order=True).agg(curve)
        frame = joined.select(frame.columns)
    for values, rows in frame.group_by(keys, maintain_order=True):
        store.add(dict(zip(keys, values, strict=True)), rows.to_dicts())


def _write(experiment: Experiment, rows: list[Row], shown: list[Row], path: Path) -> None:
    if not rows:
        return
    frame = pl.DataFrame(rows, infer_schema_length=None)
    curves = [column for column, kind in frame.schema.items() if isinstance(kind, pl.List)]
    frame = frame.explode(curves) if curves else frame
    tables = experiment.tables(shown)
    figure = experiment.draw(shown)
    writers: dict[str, Callable[[Path], Any]] = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "md": lambda to: to.write_text(markdown(tables), encoding="utf-8"),
        "tex": lambda to: to.write_text(latex(tables), encoding="utf-8"),
        "png": lambda to: figure.savefig(to, format="png", dpi=150),
        "svg": lambda to: figure.savefig(to, format="svg"),
    }
    for suffix, write in writers.items():
        replaced(path.with_name(f"{path.name}.{suffix}"), write)


def _place(row: Row) -> tuple[Any, ...]:
    """Return what rows are sorted by: normal before cubic, much data before little."""
    setting = row.get("kind") == "cubic", row.get("d", 0), -row.get("n", 0)
    place = list(COLOURS).index(row["method"]), row.get("truth", 0), row.get("t", 0)
    return *setting, *place, row.get("draw", 0), row.get("epoch", 0)


def _gaussian_tables(rows: Sequence[Row]) -> list[Table]:
    tables = []
    for kind, d, n in dict.fromkeys((r["kind"], r["d"], r["n"]) for r in rows):
        own = [r for r in rows if (r["kind"], r["d"], r["n"]) == (kind, d, n)]
        title = f"truth - estimate in nats: {kind}, {d} + {d} columns, {n:,} training pairs"
        tables.append(spread(own, title, "truth", lambda r: f"{r['truth']:g}", "error"))
    return tables


def _longrun_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the mean of the last tenth of each curve."""
    ends = [{**r, "end": _mean(r["estimate"][-max(1, len(r["estimate"]) // 10) :])} for r in rows]
    steps = max(r["steps"] for r in rows)
    title = f"estimate in nats, mean of the last tenth of {steps:,} steps, by true nats"
    return [spread(ends, title, "truth", lambda r: f"{r['truth']:g}", "end")]


def _consistency_tables(rows: Sequence[Row]) -> list[Table]:
    rows = [r for r in rows if r["ratio"] is not None]
    return [
        spread(
            [r for r in rows if r["test"] == test],
            f"{test}: ratio by rows kept",
            "t",
            lambda r: str(r["t"]),
            "ratio",
        )
        for test in dict.fromkeys(r["test"] for r in rows)
    ]


def _infomax_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the accuracy of probes after the last epoch, beside the paper's."""
    ends = [r for r in rows if r["epoch"] == r["epochs"]]
    random = {
        r["draw"]: {**r, "method": "random encoder"} for r in rows if r["epoch"] == 0 and r["fc"]
    }
    ends += random.values()  # one for each seed, whatever was trained from it
    first = rows[0]
    title = (
        f"top-1 accuracy in %, {first['dataset']}, {first['epochs']} epochs, "
        f"critic of {first['units']} units"
    )
    lines = []
    for method in dict.fromkeys(r["method"] for r in ends):
        own = [r for r in ends if r["method"] == method]
        found = [entry([100 * v for v in _values(own, key)]) for key in ("conv", "fc", "output")]
        paper = _PAPER.get((first["dataset"], method), ("", ""))
        nats = "" if method == "random encoder" else entry(_values(own, "estimate"))
        lines.append((method, (*found, *paper, nats, str(len({r["draw"] for r in own})))))
    heads = "conv", "fc", "output", "paper's conv", "paper's fc", "nats, test images", "seeds"
    return [Table(title, "method", heads, tuple(lines))]


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return [row[key] for row in rows if row[key] is not None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _draw_ratios(rows: Sequence[Row]) -> "Figure":
    return draw_consistency([r for r in rows if r["ratio"] is not None])


_PAPER = {  # top-1 accuracy of conv and fc after long training, Liao et al. (2020), table 1
    ("cifar10", "supervised"): ("75.39", ""),
    ("cifar10", "mine"): ("71.36", "66.30"),
    ("cifar10", "smile(tau=5)"): ("71.88", "66.92"),
    ("cifar10", "smile(tau=1)"): ("71.12", "66.22"),
    ("cifar10", "jsd"): ("72.79", "67.94"),
    ("cifar10", "infonce"): ("73.73", "69.77"),
    ("cifar10", "demi"): ("74.09", "70.16"),
    ("cifar100", "supervised"): ("42.27", ""),
    ("cifar100", "mine"): ("42.52", "37.23"),
    ("cifar100", "smile(tau=5)"): ("42.74", "37.48"),
    ("cifar100", "smile(tau=1)"): ("42.13", "37.10"),
    ("cifar100", "jsd"): ("42.78", "37.76"),
    ("cifar100", "infonce"): ("44.91", "39.95"),
    ("cifar100", "demi"): ("45.59", "42.02"),
}

EXPERIMENTS = {
    "gaussian": Experiment(GaussianStudy(), run_gaussian, _gaussian_tables, draw_gaussian),
    "longrun": Experiment(
        LongRunStudy(),
        run_longrun,
        _longrun_tables,
        draw_longrun,
        apart=("d", "batch", "steps", "every"),
    ),
    "consistency": Experiment(
        ConsistencyStudy(),
        run_consistency,
        _consistency_tables,
        _draw_ratios,
        apart=("epochs", "contrast", "images", "check"),
        derived=ratios,
    ),
    "infomax": Experiment(
        InfoMaxStudy(),
        run_infomax,
        _infomax_tables,
        draw_infomax,
        apart=("dataset", "critic", "units", "negatives", "batch", "epochs", "scale", "precision"),
    ),
}
