"""What people see: lines, tables, bars. Data go to stdout, everything else to stderr."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from .options import Unit

if TYPE_CHECKING:
    from ..results import Caution, MIResult
    from ..runtime.progress import Progress

__all__ = ["interruptible", "progress", "say", "show", "table", "warn"]


def say(text: str) -> None:
    """Print a line on stderr."""
    typer.echo(text, err=True)


def table(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows on stdout, in aligned columns or as JSON."""
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
def progress(what: str, kept: bool = False) -> Iterator["Progress | None"]:
    """Show a bar on a terminal, at once, and nothing in a pipe; say so when interrupted.

    With `kept`, by Ctrl-C or TERM, it then says that what is finished is not lost.
    """

    def tell() -> None:
        say("interrupted" + "; what is finished is kept, the same command goes on there" * kept)

    bar = _bar(what) if sys.stderr.isatty() else nullcontext()
    with interruptible(tell) if kept else _told(tell), bar as progress:
        yield progress


@contextmanager
def _told(tell: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        tell()
        raise


@contextmanager
def _bar(what: str) -> Iterator["Progress"]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining

    columns = [TextColumn(what), BarColumn(), TaskProgressColumn(), Elapsed(), Remaining()]
    # Cells of a sweep are minutes apart: a guess from the last half minute would never come.
    period = 3600.0
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=period) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


_TERMINATED = 128 + signal.SIGTERM


class _TerminatedError(KeyboardInterrupt):
    """The process was asked to end, by TERM."""


@contextmanager
def interruptible(tell: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and TERM end the work inside; `tell` says what is left of it."""

    def end(*_: Any) -> None:
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except KeyboardInterrupt as error:
        tell()
        if isinstance(error, _TerminatedError):
            raise typer.Exit(_TERMINATED) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def show(results: list["MIResult"], unit: Unit, as_json: bool) -> None:
    """Print results on stdout and their warnings, each once, on stderr."""
    if as_json:
        told = [result.to_dict(unit.value) for result in results]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told, indent=2))
        return
    for result in results:
        typer.echo(result.describe(unit.value))
    for words in dict.fromkeys(result.recipe for result in results if result.recipe):
        say(f"recipe: {words}")
    warn(tuple(w for result in results for w in result.warnings))


def warn(cautions: tuple["Caution", ...]) -> None:
    """Print warnings on stderr, each once."""
    for caution in dict.fromkeys(cautions):
        say(f"warning: {caution}")
