"""TERM ends what can go on as Ctrl-C does: with something to say, and its own exit code."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

__all__ = ["interruptible"]

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
