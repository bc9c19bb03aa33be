"""Where rows come from: the versions of deminat, with its commit, and of torch, the processor."""

import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy
import sklearn
import torch

from .. import __version__
from .atomic import sha256_of

__all__ = ["environment"]

_PATIENCE = 10.0  # seconds


@cache
def environment() -> dict[str, str]:
    """Return the versions, with the commit if this is a clone, and the processor."""
    return {
        "version": _version(),
        "torch": version("torch"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
    }


def _version() -> str:
    """Return the version, and after it the commit; `changed` and how, if files differ from it."""
    commit = _git("rev-parse", "--short=12", "HEAD") if _is_clone() else ""
    if not commit:
        return __version__
    changes = _git("diff", "HEAD", "--", ".")
    changed = f" changed {sha256_of(changes.encode())[:8]}" if changes else ""
    return f"{__version__} {commit}{changed}"


def _is_clone() -> bool:
    """Tell a clone from an installation into somebody else's repository."""
    inside = _git("ls-files", "--", "__init__.py")
    return bool(inside)


def _git(*arguments: str) -> str:
    """Return what git says of this package, nothing if there is no git."""
    try:
        asked = subprocess.run(
            ["git", "--no-optional-locks", *arguments],  # killed, it must leave none behind
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()


def _processor() -> str:
    """Return its name as the system gives it."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = ""
    named = re.search(r"^model name\s*:\s*(.+)$", told, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


@cache
def versions() -> dict[str, str]:
    """Return those of what the numbers depend on."""
    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "torch": torch}
    told = {"deminat": __version__, "python": platform.python_version()}
    return told | {name: str(package.__version__) for name, package in packages.items()}
