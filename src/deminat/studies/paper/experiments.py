"""What `deminat paper` runs, and what it writes of the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import polars as pl

from ...errors import DataError, printable
from ...runtime.atomic import write_atomically
from ...runtime.rowstore import Cell, Row, SqliteStore, key_of
from ...runtime.sweep import Sweep, filter_cells, run_sweep
from .consistency import ConsistencyStudy, ratios, run_consistency
from .figures import draw_consistency, draw_gaussian, draw_infomax, draw_longrun, method_rank
from .gaussian import GaussianStudy, run_gaussian
from .infomax import InfoMaxStudy, run_infomax, with_names
from .longrun import LongRunStudy, run_longrun
from .summaries import (
    consistency_setting,
    consistency_tables,
    gaussian_tables,
    infomax_setting,
    infomax_tables,
    longrun_setting,
    longrun_tables,
)
from .tables import Table, latex, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Experiment", "Study", "read_rows", "run_paper"]

_CURVE = ["step", "estimate"]  # columns that hold one point a line
_SOMETIMES = {"precision"}  # what cells of an experiment may have or not


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
        tables: Tables of rows of one setting.
        draw: Figure of them.
        setting: What must agree for rows to stand side by side, in words, of a row or a cell.
        derived: Rows with what is computed from several.
        needs: Modules that are not always installed.
    """

    study: Study
    run: Callable[[Cell], list[Row]]
    tables: Callable[[Sequence[Row]], list[Table]]
    draw: Callable[[Sequence[Row]], "Figure"]
    setting: Callable[[Cell], str] = lambda row: ""
    derived: Callable[[list[Row]], list[Row]] = list
    needs: tuple[str, ...] = ("matplotlib",)

    def sweep(self, only: Sequence[str] = (), **changed: object) -> Sweep:
        """Return what to run: cells that match `only`, of a study with some fields changed."""
        given: dict[str, Any] = {k: v for k, v in changed.items() if v is not None}
        if not 0 < given.get("scale", 1.0) <= 1:
            raise DataError(f"scale must be above 0 and at most 1, got {given['scale']:g}")
        study = cast(Study, replace(cast(Any, self.study), **given))
        cells = {key_of(cell): cell for cell in study.cells()}  # at small scales some are equal
        return Sweep(filter_cells(list(cells.values()), only), self.run)

    def alike(self, rows: Sequence[Row], cells: Sequence[Cell]) -> list[Row]:
        """Return the rows that may stand beside those of the cells."""
        settings = {self.setting(cell) for cell in cells}
        return [row for row in rows if self.setting(row) in settings]

    def all_tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return the tables of each setting, which their titles tell."""
        settings: dict[str, list[Row]] = {}
        for row in rows:
            settings.setdefault(self.setting(row), []).append(row)
        return [
            replace(table, title=f"{table.title}; {words}" if words else table.title)
            for words, own in settings.items()
            for table in self.tables(own)
        ]


def run_paper(
    name: str,
    experiment: Experiment,
    sweep: Sweep,
    folder: Path,
    **how: Any,
) -> list[Row]:
    """Run what is missing; write all rows, their tables, and a figure of those like the sweep's.

    Args:
        name: What files are called.
        experiment: What is run.
        sweep: Its cells.
        folder: Where to. Rows that only a CSV file there has, as in a clone, are taken up.
        **how: As of `run_sweep`.

    Returns:
        The rows of the figure.
    """
    path = folder / name
    with SqliteStore.writing(path.with_name(f"{name}.sqlite")) as store:
        _take_up(store, path.with_name(f"{name}.csv"), list(sweep.cells[0]))
        try:
            run_sweep(sweep, store, **how)
        finally:  # what there is, also when some cells failed
            rows = sorted(experiment.derived(store.rows()), key=_place)
            alike = experiment.alike(rows, sweep.cells)
            _write(experiment, rows, alike, path)
    return alike


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file that `run_paper` wrote."""
    frame = pl.read_csv(path, infer_schema_length=None)
    if _CURVE[0] in frame.columns:
        others = [column for column in frame.columns if column not in _CURVE]
        joined = frame.group_by(others, maintain_order=True).agg(_CURVE)
        frame = joined.select(frame.columns)
    return frame.to_dicts()


def _take_up(store: SqliteStore, path: Path, keys: list[str]) -> None:
    """Put into a store what it does not have of a CSV file, all of it or nothing."""
    if not path.exists():
        return
    cells: dict[str, tuple[Cell, list[Row]]] = {}
    always = set(keys) - _SOMETIMES
    for row in read_rows(path):
        if not row.keys() >= always:
            raise DataError(f"{printable(path, 300)} is not of this experiment: move it away")
        sometimes = {key for key in _SOMETIMES if row.get(key) is not None}
        cell = {key: row[key] for key in always | sometimes}
        cells.setdefault(key_of(cell), (cell, []))[1].append(row)
    store.add_all(list(cells.values()))


def _write(experiment: Experiment, rows: list[Row], alike: list[Row], path: Path) -> None:
    if not rows:
        return
    frame = pl.DataFrame(rows, infer_schema_length=None)
    curves = [column for column, kind in frame.schema.items() if isinstance(kind, pl.List)]
    frame = frame.explode(curves) if curves else frame
    tables, made = experiment.all_tables(rows), _origins(rows)
    writers: dict[str, Callable[[Path], Any]] = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "md": lambda to: to.write_text(f"{markdown(tables)}\n{made}\n", encoding="utf-8"),
        "tex": lambda to: to.write_text(latex(tables), encoding="utf-8"),
    }
    if alike:
        figure = experiment.draw(alike)
        writers["png"] = lambda to: figure.savefig(to, format="png", dpi=150)
        writers["svg"] = lambda to: figure.savefig(to, format="svg")
    for suffix, write in writers.items():
        write_atomically(path.with_name(f"{path.name}.{suffix}"), write)


def _origins(rows: Sequence[Row]) -> str:
    """Return in words what made the rows."""
    found = ({row[key] for row in rows if row.get(key)} for key in _MADE)  # old rows tell less
    versions, torches, machines = (", ".join(sorted(each)) or "unknown" for each in found)
    return f"Made by deminat {versions} with torch {torches} on {machines}."


_MADE = "version", "torch", "machine"


def _place(row: Row) -> tuple[Any, ...]:
    """Return what rows are sorted by: normal before cubic, much data before little."""
    setting = row.get("kind") == "cubic", row.get("d", 0), -row.get("n", 0)
    place = method_rank(row["method"]), row.get("truth", 0), row.get("t", 0)
    return *setting, *place, row.get("draw", 0), row.get("epoch", 0), row.get("precision") or ""


EXPERIMENTS = {
    "gaussian": Experiment(
        GaussianStudy(),
        run_gaussian,
        gaussian_tables,
        draw_gaussian,
        needs=("matplotlib", "zuko"),
    ),
    "longrun": Experiment(
        LongRunStudy(), run_longrun, longrun_tables, draw_longrun, longrun_setting
    ),
    "consistency": Experiment(
        ConsistencyStudy(),
        run_consistency,
        consistency_tables,
        draw_consistency,
        consistency_setting,
        ratios,
    ),
    "infomax": Experiment(
        InfoMaxStudy(), run_infomax, infomax_tables, draw_infomax, infomax_setting, with_names
    ),
}
