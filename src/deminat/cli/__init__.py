"""The command line: a thin layer over the library.

Data go to stdout and everything said to people goes to stderr, so that a pipe sees only data.
Exit codes: 0, 2 for bad input (one line, no traceback), 130 when interrupted (143 by TERM, where a
run is saved). Heavy imports wait until a command needs them, so that `--help` answers at once.
"""

from . import (  # which add their commands to the application
    answers,
    pairs,
    paper,
    runs,
    scoring,
    studies,
)
from .app import app, main
from .options import Method

__all__ = ["Method", "answers", "app", "main", "pairs", "paper", "runs", "scoring", "studies"]
