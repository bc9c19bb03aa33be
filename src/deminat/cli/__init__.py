"""The command line: a thin layer over the library.

Data go to stdout and messages to stderr, so that a pipe receives data only. Exit codes: 0 for
success, 1 if a check failed, 2 for bad input (one line, no traceback), 130 when interrupted, 143
when a resumable run was terminated. Commands import heavy libraries when they run, so that
`--help` answers at once.
"""

from importlib import import_module

from .app import app, main

__all__ = ["COMMANDS", "app", "main"]

# Each module adds its command to `app`; `--help` lists them in this order.
COMMANDS = (
    "estimate",
    "independence",
    "laws",
    "matrix",
    "rank",
    "score",
    "tasks",
    "doctor",
    "bench",
    "paper",
)
for _name in COMMANDS:
    import_module(f"{__name__}.{_name}")
