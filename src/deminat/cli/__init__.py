"""The command line: a thin layer over the library.

Data go to stdout and everything said to people goes to stderr, so that a pipe sees only data.
Exit codes: 0, 2 for bad input (one line, no traceback), 130 when interrupted (143 by TERM, where a
run is saved). Heavy imports wait until a command needs them, so that `--help` answers at once.
"""

from importlib import import_module

from .app import app, main

__all__ = ["COMMANDS", "app", "main"]

# A module each, which adds its command to the application; `--help` lists them in this order.
COMMANDS = (
    "estimate",
    "independence",
    "laws",
    "matrix",
    "score",
    "tasks",
    "doctor",
    "bench",
    "paper",
)
for _name in COMMANDS:
    import_module(f"{__name__}.{_name}")
