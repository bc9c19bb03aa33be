"""The application: what it is called, and how it ends."""

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
_STDOUT = 1
# Libraries make hundreds of thousands of objects that stay to the end. To look for rubbish among
# them, as often as usual while they are loaded and once more at the end, takes a second in all.
_RARELY = 50_000  # new objects between two looks

app = typer.Typer(
    help="How much does X tell you about Y? Mutual information, from two arrays or a file.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; errors that a user can mend are one line on stderr."""
    gc.set_threshold(_RARELY)
    sys.stdout, sys.stderr = (stream or _nowhere() for stream in (sys.stdout, sys.stderr))
    try:
        app(standalone_mode=True)
    except (DataError, TrainingError, ValueError) as error:
        say(f"error: {error}")
        sys.exit(2)
    except OSError as error:  # such as a full disk behind stdout, whose rest has nowhere to go
        say(f"error: {error.filename or 'the output'}: {error.strerror or error}")
        with _nowhere() as nowhere:
            os.dup2(nowhere.fileno(), _STDOUT)
        sys.exit(2)
    except RuntimeError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        say("interrupted")  # in the middle of an import, where Python calls it another name
        sys.exit(_INTERRUPTED)
    finally:
        gc.freeze()


def _nowhere() -> TextIO:
    """Return what stands for a stream that was closed before we began."""
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
