"""`deminat estimate`: the mutual information of columns of a file, or of two files."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..estimators.registry import trains
from . import options as opt
from .app import app
from .console import format_path, print_results, progress, say
from .inputs import row_columns, scan_sides
from .pointwise import Figure, Pointwise, check_paths, write_pointwise
from .saved_runs import command_line, resumable_run, save_finished

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["estimate"]

_REPORTED = "preset", "categorical", "groups", "order"  # options that a report lists


@app.command()
def estimate(
    context: typer.Context,
    file: opt.File,
    y_file: opt.YFile = None,
    x: opt.X = None,
    y: opt.Y = None,
    categorical: opt.Categorical = "",
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
    check_paths(report, pointwise, figure)
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
            max_rows=max_rows,
            n_jobs=jobs or -1,
            budget=budget,
            progress=report_share,
            checkpoint=checkpoint,
        )
    print_results(results, unit, as_json)
    if save is not None:
        save_finished(results[0], save)
    write_pointwise(results, (x_side, y_side), pointwise, figure, unit)
    if report is not None:
        _write_report(report, results, unit, context)


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
