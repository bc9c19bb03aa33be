"""A small sweep to be killed: a script, and cells that other processes can import.

python sweeping.py PATH CELLS JOBS [SCHEDULER]
"""

import os
import signal
import sys
import time
from pathlib import Path

from deminat.runtime.environment import environment
from deminat.runtime.rowstore import SqliteStore
from deminat.runtime.sweep import Sweep, run_sweep


def rows_of(cell):
    """Return two rows that depend on the cell alone."""
    return [{**cell, "power": power, "value": cell["seed"] ** power} for power in (2, 3)]


def with_origin(cells):
    """Return the rows of cells as the runner keeps them."""
    return [{**row, **environment()} for cell in cells for row in rows_of(cell)]


def squares(cell):
    """Return the rows after a short time; where a log is wanted, note there that it was run."""
    time.sleep(0.02)
    if log := os.environ.get("SWEEP_LOG"):
        with open(log, "a") as file:
            file.write(f"{cell['seed']}\n")
    return rows_of(cell)


def deadly(cell):
    """Return the rows; some cells kill their process, the first time that they are run."""
    time.sleep(0.02)
    mark = Path(cell["folder"]) / str(cell["seed"])
    if cell["seed"] % 10 == 4 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return [cell]


def relentless(cell):
    """Return a row, or kill the process."""
    if cell["seed"] % 10 == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return [cell]


_HOARD = []


def hoarded(cell):
    """Return the process as a row, and leave it larger than joblib suffers."""
    _HOARD.append(b"1" * 500_000_000)
    time.sleep(1.1)  # joblib looks once a second
    return [{**cell, "process": os.getpid()}]


def cells(count):
    return [{"kind": "square", "seed": seed} for seed in range(count)]


def main(path, count, jobs, scheduler=None):
    from sweeping import squares as run  # by the name that other processes know it by

    with SqliteStore.writing(Path(path)) as store:
        run_sweep(Sweep(cells(int(count)), run), store, jobs=int(jobs), cluster=scheduler)
    sys.stdout.write("finished\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
