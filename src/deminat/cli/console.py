"""Output of the commands: results and tables on stdout, messages and progress on stderr."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from ..errors import printable
from .options import Unit

if TYPE_CHECKING:
    from ..results import Caution, MIResult
    from ..runtime.progress import Progress

__all__ = [
    "format_path",
    "interruptible",
    "print_json",
    "print_results",
    "print_table",
    "print_warnings",
    "progress",
    "say",
]

_TERMINATED = 128 + signal.SIGTERM
_LONGEST_PATH = 300  # characters
_LONGEST_CELL = 80


class _TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM."""


def say(text: str) -> None:
    """Print a line on stderr."""
    typer.echo(text, err=True)


def format_path(path: object) -> str:
    """Return a path for a message, without control characters."""
    return printable(path, _LONGEST_PATH)


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    import json  # late: a few milliseconds of `--help`

    typer.echo(json.dumps(value, indent=2))


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows on stdout, in aligned columns."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    values = [[row.get(key, "") for key in columns] for row in rows]
    cells = [
        [f"{v:.4g}" if isinstance(v, float) else printable(v, _LONGEST_CELL) for v in r]
        for r in [columns, *values]
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        typer.echo("  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)))


def print_results(results: list["MIResult"], unit: Unit, as_json: bool) -> None:
    """Print results on stdout; their recipes and warnings go to stderr, each once."""
    if as_json:
        rows = [result.to_dict(unit.value) for result in results]
        print_json(rows[0] if len(rows) == 1 else rows)
        return
    for result in results:
        typer.echo(result.describe(unit.value))
    for recipe in dict.fromkeys(result.recipe for result in results if result.recipe):
        say(f"recipe: {recipe}")
    print_warnings(tuple(w for result in results for w in result.warnings))


def print_warnings(cautions: tuple["Caution", ...]) -> None:
    """Print warnings on stderr, each once."""
    for caution in dict.fromkeys(cautions):
        say(f"warning: {caution}")


@contextmanager
def progress(label: str, resumable: bool = False) -> Iterator["Progress | None"]:
    """Show a progress bar if stderr is a terminal, and report an interruption.

    Yields a function that takes the finished share, 0 to 1; `None` without a terminal. With
    `resumable`, SIGTERM is handled like Ctrl-C and the message says how to resume.
    """
    from ..runtime.progress import bar, quiet  # late: the help needs none

    hint = "; finished work is saved: run the same command to resume" if resumable else ""
    own = bar(label) if sys.stderr.isatty() else nullcontext()
    said = interruptible(lambda: say(f"interrupted{hint}"), terminable=resumable)
    with said, quiet(), own as update:
        yield update


@contextmanager
def interruptible(report: Callable[[], None], terminable: bool = True) -> Iterator[None]:
    """Call `report` if Ctrl-C ends the work inside; with `terminable`, also on SIGTERM."""

    def terminate(*_: Any) -> None:
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, terminate) if terminable else None
    try:
        yield
    except KeyboardInterrupt as error:
        report()
        if terminable and isinstance(error, _TerminatedError):
            raise typer.Exit(_TERMINATED) from None
        raise
    finally:
        if terminable:
            signal.signal(signal.SIGTERM, before)
