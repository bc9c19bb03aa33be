"""What made a number: versions of deminat, with its commit, and of packages; and the processor.

Versions are read from the metadata of installed packages, so that no package is imported.
"""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .. import __version__
from .atomic import sha256_of

__all__ = ["environment", "versions"]

_NUMERICAL = "numpy", "scipy", "scikit-learn", "torch"  # what the numbers depend on
_TIMEOUT = 10.0  # seconds for git to answer


def versions(packages: Sequence[str] = _NUMERICAL) -> dict[str, str]:
    """Return the versions of deminat, Python and packages; `not installed` where one is not."""
    own = {"deminat": __version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in packages}


@cache
def environment() -> dict[str, str]:
    """Return the `version` of deminat with its commit, that of `torch`, and the `machine`."""
    return {
        "version": f"{__version__}{_commit()}",
        "torch": _version("torch"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
    }


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Return the commit of a clone, and a hash of its changes if there are any; else nothing.

    An installation inside another project's repository is no clone: git does not know its files.
    """
    is_clone = _git("ls-files", "--", "__init__.py")
    commit = _git("rev-parse", "--short=12", "HEAD") if is_clone else ""
    if not commit:
        return ""
    changes = _git("diff", "HEAD", "--", ".")
    return f" {commit}" + (f" changed {sha256_of(changes.encode())[:8]}" if changes else "")


def _git(*arguments: str) -> str:
    """Return the output of git in the folder of this package; nothing if git fails."""
    try:
        finished = subprocess.run(
            ["git", "--no-optional-locks", *arguments],  # a killed process leaves no lock behind
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return finished.stdout.strip()


def _processor() -> str:
    """Return the name of the processor, as the system gives it."""
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        described = ""
    named = re.search(r"^model name\s*:\s*(.+)$", described, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()
