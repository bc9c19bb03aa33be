"""`deminat estimate`."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import printable
from .app import app
from .console import progress, say, show
from .inputs import row_columns, scan_sides
from .options import (
    UNTRAINED,
    Categorical,
    File,
    Folds,
    Given,
    Groups,
    Jobs,
    Json,
    MaxRows,
    Method,
    Nan,
    Order,
    Preset,
    Report,
    Resume,
    Save,
    Seed,
    Skip,
    Unit,
    X,
    Y,
    YFile,
)
from .pointwise import Figure, Pointwise, check_paths, write_pointwise
from .saved_runs import check_save_folder, command_line, resumable_run, save_finished

if TYPE_CHECKING:
    from ..results import MIResult

__all__ = ["estimate"]

_LONGEST = 300  # characters of a path on the screen
_TOLD = "preset", "categorical", "groups", "order"  # options that a report names


@app.command()
def estimate(
    context: typer.Context,
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    given: Given = None,
    groups: Groups = None,
    order: Order = None,
    max_rows: MaxRows = None,
    method: Annotated[
        list[Method] | None, typer.Option(help="By default demi; give it again for several.")
    ] = None,
    preset: Annotated[Preset, typer.Option(help="Recipe of trained methods.")] = Preset.AUTO,
    folds: Folds = 5,
    seed: Seed = 0,
    nan: Skip = Nan.RAISE,
    unit: Annotated[Unit, typer.Option(help="Unit of the answer.")] = Unit.NATS,
    jobs: Jobs = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds to take at most; fewer are less accurate.")
    ] = None,
    report: Report = None,
    pointwise: Pointwise = None,
    figure: Figure = None,
    save: Save = None,
    resume: Resume = False,
    as_json: Json = False,
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
    if report is not None:
        from ..report import check_path

        check_path(report)  # refused now, not after minutes of work
    check_paths(pointwise, figure)
    within = "" if budget is None else f" within {budget:g} s"
    with (
        resumable_run(context, save, resume, method or [Method.DEMI]) as checkpoint,
        progress(f"estimating{within}") as share,
        _helpers(method, jobs, folds),
    ):
        check_save_folder(save)
        x_side, y_side, known = scan_sides(file, y_file, x, y, categorical, given)
        about = row_columns(file, y_file, groups, order)
        from ..api import compare  # late: torch takes seconds

        results = compare(
            x_side,
            y_side,
            methods=[m.value for m in method or [Method.DEMI]],
            preset=preset.value,
            folds=folds,
            seed=seed,
            nan=nan.value,
            n_jobs=jobs or -1,
            budget=budget,
            progress=share,
            given=known,
            checkpoint=checkpoint,
            max_rows=max_rows,
            **about,
        )
    show(results, unit, as_json)
    if save is not None:
        save_finished(results[0], save)
    write_pointwise(results, (x_side, y_side), pointwise, figure, unit)
    if report is not None:
        _report(report, results, unit, context)


def _helpers(
    methods: list[Method] | None, jobs: int | None, folds: int
) -> AbstractContextManager[None]:
    """Let other processes load libraries while this one does, if they will be wanted."""
    from joblib import effective_n_jobs

    from ..runtime.pool import preloaded_workers

    trained = set(methods or [Method.DEMI]).difference(UNTRAINED)
    count = max(1, min(effective_n_jobs(jobs or -1), folds)) if trained else 1
    return preloaded_workers(count, "deminat.api")


def _report(path: Path, results: list["MIResult"], unit: Unit, context: typer.Context) -> None:
    """Write a report of results, with the command that was given."""
    from ..report import About, render, save

    asked = context.params
    options = {name: str(asked[name]) for name in _TOLD if asked[name]}
    if asked["budget"]:
        options["budget"] = f"{asked['budget']:g} s"
    named = [str(asked[name]) for name in ("file", "y_file") if asked[name]]
    about = About(source=" and ".join(named), options=options, command=command_line(context))
    save(path, render(results, about=about, unit=unit.value))
    say(f"report: {printable(path, _LONGEST)}")
