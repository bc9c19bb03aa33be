"""How long a user waits: from the command to its first sign of life, and to its answer.

The command is run as a user runs it, in a process of its own, libraries still to be loaded: what
does raf tell about mek in 7,466 cells, by the default recipe, on all cores? Its bar is looked for
on a pseudo-terminal. Beside it stands what a process takes that only loads the library.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ...datasets import sachs
from ...runtime.rowstore import Cell, Row
from .runner import Bench, mark

__all__ = ["STARTUP"]

_LOAD = [sys.executable, "-c", "import deminat.api"]


def _rounds(seeds: Sequence[int]) -> list[Cell]:
    return [{"round": seed} for seed in seeds]


def _waited(cell: Cell) -> Row:
    """Return the seconds to the bar, to the answer, and to load the library."""
    with tempfile.TemporaryDirectory(prefix="deminat-") as folder:
        path = Path(folder) / "cells.csv"
        sachs().sample(fraction=1.0, shuffle=True, seed=cell["round"]).write_csv(path)
        words = ["estimate", str(path), "--x", "raf", "--y", "mek", "--seed", str(cell["round"])]
        sign, answer = _watched([sys.executable, "-m", "deminat", *words])
    start = time.perf_counter()
    subprocess.run(_LOAD, check=True)
    return {"sign": sign, "answer": answer, "load": time.perf_counter() - start}


def _watched(command: list[str]) -> tuple[float, float]:
    """Return the seconds until a command shows something on its terminal, and until it ends."""
    import pty

    ours, its = pty.openpty()
    start = time.perf_counter()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=its, env=environment
    ) as process:
        os.close(its)
        os.read(ours, 1)
        sign = time.perf_counter() - start
        _drain(ours)
    answer = time.perf_counter() - start
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return sign, answer


def _drain(terminal: int) -> None:
    """Read until the other side closes: a full terminal would hold it up."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # how Linux says that nobody is there any more
        pass


def _verdict(rows: Sequence[Row]) -> list[str]:
    sign, answer, load = (
        statistics.median(row[key] for row in rows) for key in ("sign", "answer", "load")
    )
    return [
        f"{mark(sign < 1)} the bar is there after {sign:.2f} s (at most 1)",
        f"{mark(answer < 10)} the answer is there after {answer:.1f} s (at most 10); a process "
        f"that only loads the library takes {load:.1f} s",
    ]


STARTUP = Bench(
    "a first answer does not keep anyone waiting",
    _rounds,
    _waited,
    _verdict,
    runs=5,
    jobs=1,
)
