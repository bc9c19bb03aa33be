"""How long a user waits: from the command to its progress bar, and to its answer.

The command runs as a user runs it, in a process of its own that has yet to load its libraries. It
estimates how much raf tells about mek in 7,466 cells, by the default recipe, on all cores; its bar
appears on a pseudo-terminal. A row also has the time of a process that only loads the library.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...datasets import sachs
from ...runtime.rowstore import Cell, Row
from .runner import Bench, mark, medians

__all__ = ["BENCHES"]

_CLAIM = "a first answer takes less than ten seconds"
_LOAD = [sys.executable, "-c", "import deminat.api"]


def _rounds(seeds: Sequence[int]) -> list[Cell]:
    return [{"round": seed} for seed in seeds]


def _time_command(cell: Cell) -> Row:
    """Return the seconds to the bar, to the answer, and to load the library."""
    with tempfile.TemporaryDirectory(prefix="deminat-") as folder:
        path = Path(folder) / "cells.csv"
        sachs().sample(fraction=1.0, shuffle=True, seed=cell["round"]).write_csv(path)
        words = ["estimate", str(path), "--x", "raf", "--y", "mek", "--seed", str(cell["round"])]
        sign, answer = _seconds([sys.executable, "-m", "deminat", *words])
    start = time.perf_counter()
    subprocess.run(_LOAD, check=True)
    return {"sign": sign, "answer": answer, "load": time.perf_counter() - start}


def _seconds(command: list[str]) -> tuple[float, float]:
    """Return the seconds until a command writes to its terminal, and until it ends."""
    import pty

    ours, theirs = pty.openpty()
    start = time.perf_counter()
    variables = {**os.environ, "TERM": "xterm"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=theirs, env=variables) as process:
        os.close(theirs)
        os.read(ours, 1)
        sign = time.perf_counter() - start
        with suppress(OSError):  # which Linux raises when the other side closes
            while os.read(ours, 1 << 16):  # a full terminal would block the command
                pass
    answer = time.perf_counter() - start
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return sign, answer


def _verdict(rows: Sequence[Row]) -> list[str]:
    sign, answer, load = medians(rows, "sign", "answer", "load")
    return [
        f"{mark(sign < 1)} the bar appears after {sign:.2f} s (at most 1)",
        f"{mark(answer < 10)} the answer appears after {answer:.1f} s (at most 10); a process "
        f"that only loads the library takes {load:.1f} s",
    ]


BENCHES = {"waiting": Bench(_CLAIM, _rounds, _time_command, _verdict, runs=5, jobs=1)}
