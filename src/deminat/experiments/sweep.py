"""One runner for all sweeps: cells that are not in the store yet are run and stored.

A cell is a plain dictionary of names and numbers, and all that its rows depend on, the seed
included: so rows are the same wherever a cell is run, here or on a cluster, first or last. Cells
are handed out one by one and their rows are committed as they come back, by this process alone. A
sweep that is killed loses the cells in the making, and goes on where it was when called again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from joblib import Parallel, delayed, parallel_config

from ..errors import DataError, printable
from ..store import Row, Store, key_of

__all__ = ["Cell", "Sweep", "matching", "run_sweep"]

Cell = dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """What to run.

    Args:
        cells: Each once.
        run: Turns a cell into rows; importable by name, so that other processes find it.
    """

    cells: Sequence[Cell]
    run: Callable[[Cell], list[Row]]


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Row]:
    """Run what is missing and return the rows of all cells of the sweep, in their order.

    Args:
        sweep: What to run.
        store: Where rows are kept.
        jobs: Processes to use here.
        cluster: Address of a Dask scheduler to use instead, such as `tcp://host:8786`.
        progress: Called with the share of the cells that is done.
    """
    known = store.done()
    todo = [cell for cell in sweep.cells if key_of(cell) not in known]
    finished = len(sweep.cells) - len(todo)
    if progress and sweep.cells:
        progress(finished / len(sweep.cells))
    for cell, rows in _outcomes(sweep.run, todo, jobs, cluster):
        store.add(cell, rows)
        finished += 1
        if progress:
            progress(finished / len(sweep.cells))
    return store.rows(sweep.cells)


def matching(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """Return the cells that match.

    Args:
        cells: To choose from.
        only: Such as `task=spiral*`, with the wildcards of file names. Of several for one key, one
            must match; of several keys, all must.
    """
    wanted: dict[str, list[str]] = {}
    for item in only:
        key, equals, pattern = item.partition("=")
        if not equals:
            raise DataError(f"--only takes key=value, such as seed=0; got {printable(item)}")
        wanted.setdefault(key, []).append(pattern)
    for key, patterns in wanted.items():
        there = [cell for cell in cells if key in cell]
        if not there:
            raise DataError(f"no cell has {printable(key)}; there are {', '.join(cells[0])}")
        cells = [c for c in there if any(fnmatchcase(_text(c[key]), p) for p in patterns)]
        if not cells:
            known = list(dict.fromkeys(_text(cell[key]) for cell in there))
            raise DataError(
                f"no cell has {printable(key)} = {printable(' or '.join(patterns))}; there are "
                + ", ".join(known[:9] + ["..."] * (len(known) > 9))
            )
    return cells


def _text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _outcomes(
    run: Callable[[Cell], list[Row]], cells: Sequence[Cell], jobs: int, cluster: str | None
) -> Iterator[tuple[Cell, list[Row]]]:
    """Yield cells with their rows, in the order in which they end."""
    with nullcontext() if cluster is None else _on_cluster(cluster):
        # One cell at a time to each process: they take minutes, and none must wait for another.
        parallel = Parallel(
            n_jobs=jobs if cluster is None else -1,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="2*n_jobs" if cluster is None else "all",
        )
        yield from parallel(delayed(_outcome)(run, cell) for cell in cells)


def _outcome(run: Callable[[Cell], list[Row]], cell: Cell) -> tuple[Cell, list[Row]]:
    return cell, run(cell)


@contextmanager
def _on_cluster(address: str) -> Iterator[None]:
    """Let joblib send its work to a Dask scheduler."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise DataError("a cluster needs dask: pip install 'deminat[cluster]'") from error
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise DataError(f"no Dask scheduler answers at {printable(address)}: {error}") from error
    with client, parallel_config(backend="dask", client=client):
        yield
