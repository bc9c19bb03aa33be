"""The experiments of `deminat paper`: what they run, and the files that are made of their rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from ...errors import DataError
from ...runtime.atomic import show_path, write_atomically
from ...runtime.progress import Progress
from ...runtime.rowstore import Cell, Row, SqliteStore, key_of, read_csv
from ...runtime.sweep import Sweep, filter_cells, run_sweep
from .consistency import (
    ConsistencyStudy,
    consistency_setting,
    consistency_tables,
    ratios,
    run_consistency,
)
from .figures import (
    draw_consistency,
    draw_gaussian,
    draw_infomax,
    draw_longrun,
    draw_notebook,
    method_rank,
)
from .gaussian import GaussianStudy, gaussian_tables, run_gaussian
from .infomax import InfoMaxStudy, infomax_setting, infomax_tables, run_infomax, with_names
from .longrun import LongRunStudy, longrun_setting, longrun_tables, run_longrun
from .notebook import NotebookStudy, notebook_tables, run_notebook
from .tables import Table, latex, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Experiment", "Study", "read_rows", "run_paper"]

_CURVE = "step", "estimate"  # columns of curves, whose files have one point a line
_OPTIONAL = {"precision"}  # keys that only some cells of an experiment have
_ORIGIN = "version", "torch", "machine"


class Study(Protocol):
    """Settings of an experiment: a frozen dataclass."""

    def cells(self) -> list[Cell]:
        """Return what to run."""
        ...


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments.

    Args:
        study: Its settings.
        run: Turns a cell into rows.
        tables: Makes tables of rows of one setting.
        draw: Makes a figure of them.
        setting: Describes in words what rows, or cells, must share to be compared.
        derived: Adds values to rows that are computed from several of them.
        needs: Modules that are not always installed.
    """

    study: Study
    run: Callable[[Cell], list[Row]]
    tables: Callable[[Sequence[Row]], list[Table]]
    draw: Callable[[Sequence[Row]], "Figure"]
    setting: Callable[[Cell], str] = lambda row: ""
    derived: Callable[[list[Row]], list[Row]] = list
    needs: tuple[str, ...] = ("matplotlib",)

    def sweep(self, only: Sequence[str] = ()) -> Sweep:
        """Return the sweep of the cells that match `only`, as of `filter_cells`."""
        cells = {key_of(cell): cell for cell in self.study.cells()}  # some equal at small scales
        return Sweep(filter_cells(list(cells.values()), only), self.run)

    def alike(self, rows: Sequence[Row], cells: Sequence[Cell]) -> list[Row]:
        """Return the rows that can be compared with those of the cells."""
        settings = {self.setting(cell) for cell in cells}
        return [row for row in rows if self.setting(row) in settings]

    def all_tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return the tables of each setting, which their titles name."""
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
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run missing cells; write all rows, their tables, and a figure of those like the sweep's.

    Args:
        name: Name of the files.
        experiment: What is run.
        sweep: Its cells.
        folder: Where the files go. Rows that only a CSV file there has, as in a clone, are
            imported.
        jobs: As of `run_sweep`.
        cluster: As of `run_sweep`.
        progress: As of `run_sweep`.

    Returns:
        The rows of the figure.
    """
    path = folder / name
    with SqliteStore.writing(path.with_name(f"{name}.sqlite")) as store:
        _import(store, path.with_name(f"{name}.csv"), list(sweep.cells[0]))
        try:
            run_sweep(sweep, store, jobs=jobs, cluster=cluster, progress=progress)
        finally:  # the rows so far, also when some cells failed
            rows = sorted(experiment.derived(store.rows()), key=_sort_key)
            alike = experiment.alike(rows, sweep.cells)
            _write(experiment, rows, alike, path)
    return alike


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file that `run_paper` wrote."""
    rows = read_csv(path)
    if not rows or _CURVE[0] not in rows[0]:
        return rows
    curves: dict[tuple[object, ...], Row] = {}
    for row in rows:
        same = tuple(value for key, value in row.items() if key not in _CURVE)
        curve = curves.setdefault(same, {**row, **{key: [] for key in _CURVE}})
        for key in _CURVE:
            curve[key].append(row[key])
    return list(curves.values())


def _import(store: SqliteStore, path: Path, keys: list[str]) -> None:
    """Add the rows of a CSV file that a store does not have, all or none."""
    required = set(keys) - _OPTIONAL

    def cell_of(row: Row) -> Cell:
        if not row.keys() >= required:
            raise DataError(f"{show_path(path)} is not of this experiment: move it away")
        optional = {key for key in _OPTIONAL if row.get(key) is not None}
        return {key: row[key] for key in required | optional}

    if path.exists():
        store.add_rows(read_rows(path), cell_of)


def _write(experiment: Experiment, rows: list[Row], alike: list[Row], path: Path) -> None:
    if not rows:
        return
    frame = pl.DataFrame(rows, infer_schema_length=None)
    curves = [column for column, kind in frame.schema.items() if isinstance(kind, pl.List)]
    frame = frame.explode(curves) if curves else frame
    tables, origin = experiment.all_tables(rows), _origin(rows)
    writers: dict[str, Callable[[Path], Any]] = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "md": lambda to: to.write_text(f"{markdown(tables)}\n{origin}\n", encoding="utf-8"),
        "tex": lambda to: to.write_text(latex(tables), encoding="utf-8"),
    }
    if alike:
        figure = experiment.draw(alike)
        writers["png"] = lambda to: figure.savefig(to, format="png", dpi=150)
        writers["svg"] = lambda to: figure.savefig(to, format="svg")
    for suffix, write in writers.items():
        write_atomically(path.with_name(f"{path.name}.{suffix}"), write)


def _origin(rows: Sequence[Row]) -> str:
    """Return in words what made the rows."""
    found = ({row[key] for row in rows if row.get(key)} for key in _ORIGIN)  # not in old rows
    versions, torches, machines = (", ".join(sorted(each)) or "unknown" for each in found)
    return f"Made by deminat {versions} with torch {torches} on {machines}."


def _sort_key(row: Row) -> tuple[Any, ...]:
    """Return what rows are sorted by: normal before cubic, much data before little."""
    setting = row.get("kind") == "cubic", row.get("d", 0), -row.get("n", 0)
    point = method_rank(row["method"]), row.get("truth", 0), row.get("t", 0)
    return *setting, *point, row.get("draw", 0), row.get("epoch", 0), row.get("precision") or ""


EXPERIMENTS = {
    "notebook": Experiment(
        NotebookStudy(),
        run_notebook,
        notebook_tables,
        draw_notebook,
        lambda row: f"{row['n']:,} training pairs",
    ),
    "gaussian": Experiment(
        GaussianStudy(), run_gaussian, gaussian_tables, draw_gaussian, needs=("matplotlib", "zuko")
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
