"""What people see: lines, tables, bars. Data go to stdout, everything else to stderr."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from .signals import interruptible

if TYPE_CHECKING:
    from ..training import Progress

__all__ = ["progress", "say", "table"]


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
