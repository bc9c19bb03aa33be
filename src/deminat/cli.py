"""The command line: a thin layer over the library.

Data go to stdout and everything said to people goes to stderr, so that a pipe sees only data.
Exit codes: 0, 2 for bad input (one line, no traceback), 130 when interrupted. Heavy imports wait
until a command needs them, so that `--help` answers at once.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .errors import DataError, TrainingError, printable

if TYPE_CHECKING:
    from .bench.runner import Bench
    from .results import MIResult
    from .store import Row
    from .training import Progress

__all__ = ["app", "main"]

app = typer.Typer(
    help="How much does X tell you about Y? Mutual information, from two arrays or a file.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Method(StrEnum):
    """Methods of the command line; a test keeps them equal to `METHODS`."""

    DEMI = "demi"
    JSD = "jsd"
    CCMI = "ccmi"
    SMILE = "smile"
    MINE = "mine"
    NWJ = "nwj"
    INFONCE = "infonce"
    GM = "gm"
    KSG = "ksg"
    GAUSSIAN = "gaussian"
    COPULA = "copula"


class Preset(StrEnum):
    """Presets of the command line."""

    AUTO = "auto"
    PAPER = "paper"


class Unit(StrEnum):
    """Units of the command line."""

    NATS = "nats"
    BITS = "bits"


class Nan(StrEnum):
    """What to do with missing values."""

    RAISE = "raise"
    OMIT = "omit"


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[int, typer.Option(help="Processes to use; the answer does not depend on it.")]
Cluster = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler to use: tcp://host:8786.")
]


def main() -> None:
    """Run the command line; errors that a user can mend are one line on stderr."""
    try:
        app(standalone_mode=True)
    except (DataError, TrainingError, ValueError) as error:
        _say(f"error: {error}")
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deminat {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def estimate(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, TXT, Parquet, NPY or NPZ.")],
    y_file: Annotated[Path | None, typer.Argument(help="A second file, of y alone.")] = None,
    x: Annotated[
        str | None,
        typer.Option(
            help="Columns of x: names, or numbers from 0, as a,b,c. Of NPZ: an array, by default x."
        ),
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="Columns of y. Of NPZ: an array, by default y.")
    ] = None,
    categorical: Annotated[str, typer.Option(help="Columns that are categories: a,b.")] = "",
    method: Annotated[
        list[Method] | None, typer.Option(help="By default demi; give it again for several.")
    ] = None,
    preset: Annotated[Preset, typer.Option(help="Recipe of trained methods.")] = Preset.AUTO,
    folds: Annotated[
        int, typer.Option(help="Number of critics, each trained without the pairs it scores.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="One seed gives one answer.")] = 0,
    nan: Annotated[Nan, typer.Option(help="Refuse missing values or omit their pairs.")] = (
        Nan.RAISE
    ),
    unit: Annotated[Unit, typer.Option(help="Unit of the answer.")] = Unit.NATS,
    jobs: Jobs = 1,
    budget: Annotated[
        float | None, typer.Option(help="Seconds to take at most; fewer are less accurate.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate the mutual information of columns of a file, or of two files.

    deminat estimate cells.parquet --x raf --y mek

    deminat estimate x.npy y.npy --method demi --method ksg
    """
    within = "" if budget is None else f" within {budget:g} s"
    with _progress(f"estimating{within}", remaining=jobs == 1) as progress:
        pair = _read(file, y_file, x, y, categorical)
        from .api import compare  # late: torch takes seconds

        results = compare(
            *pair,
            methods=[m.value for m in method or [Method.DEMI]],
            preset=preset.value,
            folds=folds,
            seed=seed,
            nan=nan.value,
            n_jobs=jobs,
            budget=budget,
            progress=progress,
        )
    _show(results, unit, as_json)


@app.command()
def tasks(as_json: Json = False) -> None:
    """List the distributions with known mutual information."""
    from .tasks import EXAMPLES, bmi_tasks

    rows = [
        {"name": t.name, "mi": t.mi, "unit": "nats", "dim_x": t.dim_x, "dim_y": t.dim_y}
        for t in bmi_tasks()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:<{width}}  {row['mi']:.5f} nats  {row['dim_x']} x {row['dim_y']}")
    _say(f"also, for any dimension and MI: {', '.join(EXAMPLES)}")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show versions, device and threads, and test the estimator in about five seconds."""
    from .doctor import examine

    with _progress("testing") as progress:
        report = examine(progress)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for name, value in report.items():
            typer.echo(f"{name:<14} {value}")
    if report["self_test"] != "passed":
        raise typer.Exit(1)


@app.command()
def bench(
    name: Annotated[
        str,
        typer.Argument(help="speed, cells, gaussian, cap, alpha, independent, bmi or highmi."),
    ],
    runs: Annotated[int | None, typer.Option(help="Number of seeds or rounds.")] = None,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Keep cells that match: n=10000, task='spiral*'. Repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV of rows; goes on after those in it.")] = (
        None
    ),
    figure: Annotated[Path | None, typer.Option(help="Draw the rows of bmi or highmi.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes to use.")] = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Measure speed or accuracy, with a verdict on what is claimed of it.

    deminat bench bmi --runs 1 --only preset=auto --only n=10000 --out bmi.csv --figure bmi.png
    """
    from .bench import BENCHES, narrowed, run_bench

    if name not in BENCHES:
        raise DataError(f"no bench {printable(name)}; there are {', '.join(BENCHES)}")
    chosen = narrowed(BENCHES[name], only or [])
    draw = _drawing(name, chosen) if figure else None
    seeds = range(first, first + (runs or chosen.runs))
    cells = chosen.cells(seeds)  # which refuses what cannot be
    _say(f"claim: {chosen.claim} ({len(cells)} cells)")
    with _progress(name, kept=out is not None) as progress:
        how = {"cluster": cluster, "progress": progress}
        rows = run_bench(chosen, seeds, out, jobs=jobs or chosen.jobs, **how)
    _table(rows, as_json)
    for line in chosen.verdict(rows):
        _say(line)
    if draw and figure:
        draw(figure, rows)


@app.command()
def paper(
    name: Annotated[str, typer.Argument(help="gaussian, longrun or consistency.")],
    out: Annotated[
        Path, typer.Option(help="Folder for rows, tables and figures; goes on where it was.")
    ] = Path("paper"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="Keep cells that match: d=20, training='demi*'. Repeatable."),
    ] = None,
    reps: Annotated[int | None, typer.Option(help="Draws of each; gaussian has 10.")] = None,
    scale: Annotated[
        float | None, typer.Option(help="Share of pairs, steps or images, for a quick look.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Of consistency, instead of 100.")] = None,
    contrast: Annotated[
        int | None, typer.Option(help="Unpaired images a pair of InfoNCE, instead of 63.")
    ] = None,
    jobs: Jobs = 2,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Run an experiment of the paper, or the part of it that is missing, and write its results.

    deminat paper gaussian --only d=20 --only n=32000 --reps 2

    deminat paper longrun --scale 0.2
    """
    from .experiments.paper import EXPERIMENTS, run_paper

    if name not in EXPERIMENTS:
        raise DataError(f"no experiment {printable(name)}; there are {', '.join(EXPERIMENTS)}")
    for module, extra in {"matplotlib": "plot", "zuko": "flows"}.items():
        if find_spec(module) is None:
            raise DataError(f"this needs {module}: pip install 'deminat[{extra}]'")
    experiment = EXPERIMENTS[name]
    changed = {"reps": reps, "scale": scale, "epochs": epochs, "contrast": contrast}
    sweep = experiment.sweep(only or [], **changed)
    _say(f"{len(sweep.cells)} cells, rows in {out / name}.sqlite")
    with _progress(name, kept=True) as progress:
        how = {"jobs": jobs, "cluster": cluster, "progress": progress}
        rows = run_paper(name, experiment, sweep, out, **how)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    _say(f"wrote {out / name}.csv, .parquet, .md, .tex, .png and .svg")


def _drawing(name: str, bench: "Bench") -> Callable[[Path, Sequence["Row"]], None]:
    """Return what draws a bench, or say at once, not after hours, that nothing will."""
    if bench.figure is None:
        raise DataError(f"there is no figure of {name}; leave --figure out")
    if find_spec("matplotlib") is None:
        raise DataError("a figure needs matplotlib: pip install 'deminat[plot]'")
    return bench.figure


def _read(
    file: Path, y_file: Path | None, x: str | None, y: str | None, categorical: str
) -> tuple[Any, Any]:
    """Return both sides, from columns of one file or from two files."""
    from . import files

    labels = [name for name in categorical.split(",") if name]
    if y_file is None:
        return files.read(file, x, y, categorical=labels)
    if x is not None or y is not None:
        raise DataError("two files stand for x and y whole; leave --x and --y out, or one file")
    return files.read_pair(file, y_file, categorical=labels)


def _show(results: list["MIResult"], unit: Unit, as_json: bool) -> None:
    """Print results on stdout and their warnings, each once, on stderr."""
    if as_json:
        told = [result.to_dict(unit.value) for result in results]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told, indent=2))
        return
    for result in results:
        typer.echo(result.describe(unit.value))
    for words in dict.fromkeys(result.recipe for result in results if result.recipe):
        _say(f"recipe: {words}")
    for caution in dict.fromkeys(w for result in results for w in result.warnings):
        _say(f"warning: {caution}")


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _table(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns] + [[_cell(row.get(key, "")) for key in columns] for row in rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    for row in cells:
        typer.echo("  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def _progress(what: str, remaining: bool = True, kept: bool = False) -> Iterator["Progress | None"]:
    """Show a bar on a terminal, at once, and nothing in a pipe; say so when interrupted.

    With `remaining` it guesses the time left, which makes no sense while several processes work;
    with `kept` it says that what is finished is not lost.
    """
    try:
        with _bar(what, remaining) if sys.stderr.isatty() else nullcontext() as progress:
            yield progress
    except KeyboardInterrupt:
        _say("interrupted" + "; what is finished is kept, the same command goes on there" * kept)
        raise


@contextmanager
def _bar(what: str, remaining: bool) -> Iterator["Progress"]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining

    columns = [TextColumn(what), BarColumn(), TaskProgressColumn(), Elapsed()]
    columns += [Remaining()] if remaining else []
    # Cells of a sweep are minutes apart: a guess from the last half minute would never come.
    period = 3600.0
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=period) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
