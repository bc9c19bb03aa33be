"""Commands that answer questions about the user's own data: estimate, test, check."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import printable
from .again import command
from .app import app
from .carried import Figure, Pointwise, check_places, write
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
from .reading import beside, sides
from .runs import check_place, finished, keeping
from .screen import progress, say, table

if TYPE_CHECKING:
    from ..results import Caution, MIResult

__all__ = ["check", "estimate", "independence"]

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
        from ..report import place

        place(report)  # refused now, not after minutes of work
    check_places(pointwise, figure)
    within = "" if budget is None else f" within {budget:g} s"
    with (
        keeping(context, save, resume, method or [Method.DEMI]) as checkpoint,
        progress(f"estimating{within}") as share,
        _helpers(method, jobs, folds),
    ):
        check_place(save)
        x_side, y_side, known = sides(file, y_file, x, y, categorical, given)
        about = beside(file, y_file, groups, order)
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
    _show(results, unit, as_json)
    if save is not None:
        finished(results[0], save)
    write(results, (x_side, y_side), pointwise, figure, unit)
    if report is not None:
        _report(report, results, unit, context)


@app.command("test")
def independence(
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    given: Given = None,
    groups: Groups = None,
    order: Order = None,
    max_rows: MaxRows = None,
    permutations: Annotated[
        int, typer.Option(help="To compare with, at least 20; not with --order.")
    ] = 999,
    seed: Seed = 0,
    nan: Skip = Nan.RAISE,
    as_json: Json = False,
) -> None:
    """Test whether columns of a file tell anything about others: a p-value, in seconds.

    deminat test cells.parquet --x raf --y mek

    deminat test visits.csv --x dose --y pulse --groups patient
    """
    with progress("testing"):
        x_side, y_side, known = sides(file, y_file, x, y, categorical, given)
        about = beside(file, y_file, groups, order)
        from ..inference import independence_test  # late: torch takes seconds

        result = independence_test(
            x_side,
            y_side,
            given=known,
            permutations=permutations,
            seed=seed,
            nan=nan.value,
            max_rows=max_rows,
            **about,
        )
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    typer.echo(str(result))
    _warn(result.warnings)


@app.command()
def check(
    file: File,
    y_file: YFile = None,
    x: X = None,
    y: Y = None,
    categorical: Categorical = "",
    groups: Groups = None,
    order: Order = None,
    max_rows: MaxRows = None,
    method: Annotated[Method, typer.Option(help="What to check.")] = Method.DEMI,
    preset: Annotated[Preset, typer.Option(help="Recipe of trained methods.")] = Preset.AUTO,
    folds: Folds = 5,
    seed: Seed = 0,
    nan: Skip = Nan.RAISE,
    jobs: Jobs = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds to take at most, for all estimates together.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that the estimate obeys the laws of information on your own data.

    y permuted, x and y exchanged, columns bent, noise added, columns left out, rows side by side
    (not with groups or order): five to eight estimates, which take as many times as long as one.

    deminat check cells.parquet --x raf --y mek
    """
    with progress("checking") as share:
        *pair, _ = sides(file, y_file, x, y, categorical)
        about = beside(file, y_file, groups, order)
        from ..checks import check as checked  # late: torch takes seconds

        base, checks = checked(
            *pair,
            method=method.value,
            preset=preset.value,
            folds=folds,
            seed=seed,
            nan=nan.value,
            n_jobs=jobs or -1,
            budget=budget,
            progress=share,
            max_rows=max_rows,
            **about,
        )
    if as_json:
        told = {"estimate": base.to_dict(), "checks": [c.to_dict() for c in checks]}
        typer.echo(json.dumps(told, indent=2))
    else:
        typer.echo(base.describe())
        table([_line(c.to_dict()) for c in checks], as_json=False)
        _warn(base.warnings)
    if not all(c.passed for c in checks):
        raise typer.Exit(1)


def _helpers(
    methods: list[Method] | None, jobs: int | None, folds: int
) -> AbstractContextManager[None]:
    """Let other processes load libraries while this one does, if they will be wanted."""
    from joblib import effective_n_jobs

    from ..workers import standing_by

    trained = set(methods or [Method.DEMI]).difference(UNTRAINED)
    count = max(1, min(effective_n_jobs(jobs or -1), folds)) if trained else 1
    return standing_by(count, "deminat.api")


def _line(told: dict[str, Any]) -> dict[str, str]:
    """Return a check as a line of a table, in nats."""
    low, high = ("any" if v is None else f"{v:.3f}" for v in (told["low"], told["high"]))
    return {
        "law": told["law"],
        "change": told["change"],
        "nats": f"{told['found']:.3f}",
        "at least": low,
        "at most": high,
        "": "ok" if told["passed"] else "FAIL",
    }


def _show(results: list["MIResult"], unit: Unit, as_json: bool) -> None:
    """Print results on stdout and their warnings, each once, on stderr."""
    if as_json:
        told = [result.to_dict(unit.value) for result in results]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told, indent=2))
        return
    for result in results:
        typer.echo(result.describe(unit.value))
    for words in dict.fromkeys(result.recipe for result in results if result.recipe):
        say(f"recipe: {words}")
    _warn(tuple(w for result in results for w in result.warnings))


def _report(path: Path, results: list["MIResult"], unit: Unit, context: typer.Context) -> None:
    """Write a report of results, with the command that was given."""
    from ..report import About, render, save

    asked = context.params
    options = {name: str(asked[name]) for name in _TOLD if asked[name]}
    if asked["budget"]:
        options["budget"] = f"{asked['budget']:g} s"
    named = [str(asked[name]) for name in ("file", "y_file") if asked[name]]
    about = About(source=" and ".join(named), options=options, command=command(context))
    save(path, render(results, about=about, unit=unit.value))
    say(f"report: {printable(path, _LONGEST)}")


def _warn(cautions: tuple["Caution", ...]) -> None:
    for caution in dict.fromkeys(cautions):
        say(f"warning: {caution}")
