"""What `deminat paper` runs, and what it writes of the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import DataError
from ..store import Row
from .consistency import ConsistencyStudy, ratios, run_consistency
from .figures import COLOURS, draw_consistency, draw_gaussian, draw_longrun, save
from .gaussian import GaussianStudy, run_gaussian
from .longrun import LongRunStudy, run_longrun
from .sweep import Cell, Sweep, matching
from .tables import Table, latex, markdown, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Experiment", "write"]


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments.

    Args:
        study: What to run, with `cells()`, and the fields `draws` and `scale`.
        run: Turns a cell into rows.
        tables: Tables of rows.
        draw: Figure of rows.
        derived: Rows with what is computed from several.
    """

    study: Any
    run: Callable[[Cell], list[Row]]
    tables: Callable[[Sequence[Row]], list[Table]]
    draw: Callable[[Sequence[Row]], "Figure"]
    derived: Callable[[list[Row]], list[Row]] = list

    def sweep(self, only: Sequence[str] = (), **changed: float | None) -> Sweep:
        """Return what to run: cells that match `only`, of a study with some fields changed."""
        given = {name: value for name, value in changed.items() if value is not None}
        if strange := given.keys() - {field.name for field in fields(self.study)}:
            raise DataError(f"this experiment has no {' and no '.join(sorted(strange))}")
        for name, value in given.items():
            if not value > 0:
                raise DataError(f"{name} must be above 0, got {value:g}")
        study = replace(self.study, **given)
        return Sweep(matching(study.cells(), only), self.run)


def write(experiment: Experiment, rows: list[Row], folder: Path, name: str) -> None:
    """Write rows as CSV and Parquet, tables as Markdown and LaTeX, figures as PNG and SVG."""
    rows = sorted(experiment.derived(rows), key=_place)
    if not rows:
        return
    frame = pl.DataFrame(rows)
    curves = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    frame = frame.explode(curves) if curves else frame
    frame.write_csv(folder / f"{name}.csv")
    frame.write_parquet(folder / f"{name}.parquet")
    tables = experiment.tables(rows)
    (folder / f"{name}.md").write_text(markdown(tables))
    (folder / f"{name}.tex").write_text(latex(tables))
    save(experiment.draw(rows), folder, name)


def _place(row: Row) -> tuple[Any, ...]:
    """Return what rows are sorted by: normal before cubic, much data before little."""
    setting = row.get("kind") == "cubic", row.get("d", 0), -row.get("n", 0)
    return *setting, list(COLOURS).index(row["method"]), row.get("truth", 0), row.get("t", 0)


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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


EXPERIMENTS = {
    "gaussian": Experiment(GaussianStudy(), run_gaussian, _gaussian_tables, draw_gaussian),
    "longrun": Experiment(LongRunStudy(), run_longrun, _longrun_tables, draw_longrun),
    "consistency": Experiment(
        ConsistencyStudy(), run_consistency, _consistency_tables, draw_consistency, ratios
    ),
}
