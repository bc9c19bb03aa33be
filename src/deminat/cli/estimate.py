"""`deminat estimate`: the mutual information of columns of a file, or of two files.

The mutual information is the mean log ratio of the rows, so each row has its own contribution,
which --pointwise and --figure show.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import printable
from ..estimators.registry import trains
from . import options as opt
from .app import app
from .console import format_path, print_results, progress, say
from .inputs import check_installed, labels_of_sides, row_columns, scan_sides
from .saved_runs import command_line, resumable_run, save_finished

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["estimate"]

_REPORTED = "preset", "categorical", "discrete", "groups", "order"  # options that a report lists
_MAX_COLUMNS = 20  # of x and y together that are written beside the contributions

Pointwise = Annotated[
    Path | None,
    typer.Option(help="Write the nats that each row contributes to this .parquet or .csv file."),
]
Figure = Annotated[
    Path | None, typer.Option(help="Draw the contribution of each row to this .png, .svg or .pdf.")
]


@app.command()
def estimate(
    context: typer.Context,
    file: opt.File,
    y_file: opt.YFile = None,
    x: opt.X = None,
    y: opt.Y = None,
    categorical: opt.Categorical = "",
    discrete: opt.Discrete = None,
    given: opt.Given = None,
    groups: opt.Groups = None,
    order: opt.Order = None,
    max_rows: opt.MaxRows = None,
    method: opt.Method = None,
    preset: opt.Recipe = "auto",
    folds: opt.Folds = 5,
    seed: opt.Seed = 0,
    nan: opt.Missing = opt.Nan.RAISE,
    unit: Annotated[opt.Unit, typer.Option(help="Unit of the answer.")] = opt.Unit.NATS,
    jobs: opt.Jobs = None,
    budget: opt.Budget = None,
    report: opt.Report = None,
    pointwise: Pointwise = None,
    figure: Figure = None,
    save: opt.Save = None,
    resume: opt.Resume = False,
    as_json: opt.Json = False,
) -> None:
    """Estimate the mutual information of columns of a file, or of two files.

    deminat estimate cells.parquet --x raf --y mek

    deminat estimate x.npy y.npy --method demi --method ksg

    deminat estimate cells.parquet --x raf --y erk --given mek

    deminat estimate cells.parquet --x raf --y mek --report report.html

    deminat estimate cells.parquet --x raf --y mek --pointwise rows.parquet --figure rows.png

    deminat estimate labels.csv --x images/ --y age --max-rows 50000

    deminat estimate cells.parquet --x raf --y mek --save run --resume
    """
    _check_paths(report, pointwise, figure)
    methods = method or ["demi"]
    limit = "" if budget is None else f" within {budget:g} s"
    with (
        resumable_run(context, save, resume, methods) as checkpoint,
        progress(f"estimating{limit}") as report_share,
        _workers(methods, jobs, folds),
    ):
        if save is not None:
            from ..persistence.saved_run import check_folder  # late: imports torch

            check_folder(save)
        x_side, y_side, z_side = scan_sides(file, y_file, x, y, categorical, given)
        row_groups, row_order = row_columns(file, y_file, groups, order)
        from ..api import compare  # late: imports torch

        results = compare(
            x_side,
            y_side,
            methods=methods,
            preset=preset,
            folds=folds,
            seed=seed,
            nan=nan.value,
            given=z_side,
            groups=row_groups,
            order=row_order,
            discrete=labels_of_sides(discrete, x_side, y_side, z_side),
            max_rows=max_rows,
            n_jobs=jobs or -1,
            budget=budget,
            progress=report_share,
            checkpoint=checkpoint,
        )
    print_results(results, unit, as_json)
    if save is not None:
        save_finished(results[0], save)
    _write_pointwise(results, (x_side, y_side), pointwise, figure, unit)
    if report is not None:
        _write_report(report, results, unit, context)


def _check_paths(report: Path | None, pointwise: Path | None, figure: Path | None) -> None:
    """Refuse output files that cannot be written, before the work starts."""
    if report is not None:
        from ..report import check_path

        check_path(report)
    from ..runtime.atomic import check_writable

    if pointwise is not None:
        check_writable(pointwise, (".parquet", ".csv"), "a table of rows")
    if figure is not None:
        check_writable(figure, (".png", ".svg", ".pdf"), "a figure")
        check_installed("matplotlib", "a figure")


def _workers(methods: list[str], jobs: int | None, folds: int) -> AbstractContextManager[None]:
    """Start worker processes, if a method trains, so that they import torch in parallel."""
    from joblib import effective_n_jobs

    from ..runtime.pool import preloaded_workers

    trained = any(map(trains, methods))
    count = max(1, min(effective_n_jobs(jobs or -1), folds)) if trained else 1
    return preloaded_workers(count, "deminat.api")


def _write_report(
    path: Path, results: list["MIResult"], unit: opt.Unit, context: typer.Context
) -> None:
    """Write a report of the results, with the command that made them."""
    from ..report import About, render, save

    params = context.params
    options = {name: str(params[name]) for name in _REPORTED if params[name]}
    if params["budget"]:
        options["budget"] = f"{params['budget']:g} s"
    files = [str(params[name]) for name in ("file", "y_file") if params[name]]
    about = About(source=" and ".join(files), options=options, command=command_line(context))
    save(path, render(results, about=about, unit=unit.value))
    say(f"wrote report: {format_path(path)}")


def _write_pointwise(
    results: list["MIResult"],
    sides: tuple[Any, Any],
    pointwise: Path | None,
    figure: Path | None,
    unit: opt.Unit,
) -> None:
    """Write the table and the figure of contributions, where a path is given."""
    if pointwise is None and figure is None:
        return
    values = _values(sides, results[0].rows)
    if pointwise is not None:
        from ..report.pointwise import table
        from ..report.tables import save_table

        save_table(pointwise, table(results, values))
        say(f"wrote pointwise table: {format_path(pointwise)}{_summary(results[0], unit)}")
    if figure is not None:
        _draw(figure, results[0], values)
        say(f"wrote figure: {format_path(figure)}")


def _summary(result: "MIResult", unit: opt.Unit) -> str:
    """Return which rows contribute most, in words."""
    if result.half is None:
        return ""
    from ..results import nats_to

    (row, *_), (nats, *_) = result.top(1)
    return (
        f"; half of the information is in {result.half:.0%} of the rows, most in row {row}, "
        f"counted from 0 ({nats_to(unit.value, nats):.3f} {unit.value})"
    )


def _values(sides: tuple[Any, Any], rows: Any) -> list[Any]:
    """Return both sides of the rows; an empty list if they have too many columns."""
    import numpy as np
    import polars as pl

    from ..data.files.columns import Columns
    from ..data.source import take_rows, width

    if sum(map(width, sides)) > _MAX_COLUMNS:
        return []
    values = [take_rows(side, rows) for side in sides]
    for i, side in enumerate(sides):
        if isinstance(side, Columns) and isinstance(values[i], np.ndarray):
            values[i] = pl.DataFrame(values[i], schema=side.names)
    return values


def _draw(path: Path, result: "MIResult", values: list[Any]) -> None:
    """Draw the contributions, in the plane of x and y if each is one number."""
    from ..report.plots import save_information
    from ..report.pointwise import table
    from ..runtime.atomic import write_atomically

    frame = table([result], values)
    names = frame.columns[1:-1]
    numeric = len(names) == 2 and all(frame[name].dtype.is_numeric() for name in names)
    pair = (frame[names[0]].to_numpy(), frame[names[1]].to_numpy()) if numeric else None
    labels = (printable(names[0]), printable(names[1])) if numeric else ("x", "y")
    kind = path.suffix.lower().removeprefix(".")
    write_atomically(path, lambda draft: save_information(draft, result, pair, labels, kind))
