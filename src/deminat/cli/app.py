"""The application: its name, its entry point, and how errors become exit codes."""

import gc
import os
import signal
import sys
from typing import Annotated, TextIO

import typer

from .. import __version__
from ..errors import DataError, TrainingError
from .console import say

__all__ = ["app", "main"]

_INTERRUPTED = 128 + signal.SIGINT
_STDOUT = 1  # file descriptor
# Imports allocate hundreds of thousands of objects that live until the end. Collecting garbage
# at the default threshold while they load, and once more at exit, costs about a second.
_GC_THRESHOLD = 50_000  # new objects between two collections

app = typer.Typer(
    help="How much does X tell you about Y? Mutual information from two arrays or a file.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; an error the user can fix is one line on stderr and exit code 2."""
    gc.set_threshold(_GC_THRESHOLD)
    sys.stdout, sys.stderr = (stream or _devnull() for stream in (sys.stdout, sys.stderr))
    try:
        app(standalone_mode=True)
    except (DataError, TrainingError, ValueError) as error:
        say(f"error: {error}")
        sys.exit(2)
    except OSError as error:  # such as a full disk behind stdout
        say(f"error: {error.filename or 'the output'}: {error.strerror or error}")
        with _devnull() as devnull:  # the interpreter flushes stdout at exit, which would fail
            os.dup2(devnull.fileno(), _STDOUT)
        sys.exit(2)
    except RuntimeError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        say("interrupted")  # during an import, where Python may wrap the interrupt
        sys.exit(_INTERRUPTED)
    finally:
        gc.freeze()


def _devnull() -> TextIO:
    """Return a replacement for a standard stream that the caller has closed."""
    return open(os.devnull, "w", encoding="utf-8")


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
