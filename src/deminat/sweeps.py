"""One runner for all sweeps: cells that are not in the store yet are run and stored.

A cell is a plain dictionary of names and numbers, and all that its rows depend on, the seed
included: so rows are the same wherever a cell is run, here or on a cluster, first or last. Cells
are handed out one by one and their rows are committed as they come back, by this process alone. A
sweep that is killed loses the cells in the making, and goes on where it was when called again.
Rows also tell of what version of deminat they are, and on what processor they were made.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from . import __version__
from .errors import DataError, TrainingError, printable
from .origin import origin
from .store import Cell, Row, key_of

__all__ = ["Rows", "Sweep", "matching", "run_sweep", "tell"]

_ONE_AT_A_TIME = threading.Lock()
_PATIENCE = 10.0  # seconds that workers may take to report
_LISTENER: ContextVar[Callable[[float], None] | None] = ContextVar("_LISTENER", default=None)


@dataclass(frozen=True)
class Sweep:
    """What to run.

    Args:
        cells: Each once.
        run: Turns a cell into rows; importable by name, so that other processes find it.
    """

    cells: Sequence[Cell]
    run: Callable[[Cell], list[Row]]


class Rows(Protocol):
    """Where rows are kept."""

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that are not there yet."""
        ...

    def add(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Keep the rows of a cell, all or none."""
        ...

    def rows(self, cells: Sequence[Cell]) -> list[Row]:
        """Return the rows of some cells, in their order."""
        ...


def run_sweep(
    sweep: Sweep,
    store: Rows,
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

    Cells that fail are tried again the next time; they are told when all others are done.
    """
    todo = store.missing(sweep.cells)
    finished, failed = len(sweep.cells) - len(todo), []

    def report(part: float = 0.0) -> None:
        if progress and sweep.cells:
            progress((finished + part) / len(sweep.cells))

    report()
    jobs = jobs if len(todo) > 1 else 1  # here, where it can be heard how far it is
    with _heard_by(report), closing(_outcomes(sweep.run, todo, jobs, cluster)) as outcomes:
        for cell, rows in outcomes:
            if isinstance(rows, str):
                failed.append(f"{key_of(cell)}: {rows}")
            else:
                store.add(cell, rows)
            finished += 1
            report()
    if failed:
        raise TrainingError(f"{len(failed)} of {len(todo)} cells failed, the first {failed[0]}")
    return store.rows(sweep.cells)


def tell(share: float) -> None:
    """Say how much of a cell is done, from within its run; other processes are not heard."""
    listener = _LISTENER.get()
    if listener:
        listener(share)


@contextmanager
def _heard_by(listener: Callable[[float], None]) -> Iterator[None]:
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


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


Outcome = tuple[Cell, list[Row] | str]  # or why there are none


def _outcomes(
    run: Callable[[Cell], list[Row]], cells: Sequence[Cell], jobs: int, cluster: str | None
) -> Generator[Outcome, None, None]:
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


def _outcome(run: Callable[[Cell], list[Row]], cell: Cell) -> Outcome:
    """Run a cell as if it were alone: its rows must not depend on what else runs where.

    Seeds and threads belong to a process, so that two threads of a Dask worker wait for each other,
    what a cell does in parallel stays here, and linear algebra always has one thread.
    """
    with _ONE_AT_A_TIME, threadpool_limits(1), parallel_config(backend="sequential"):
        try:
            return cell, [{**row, **origin()} for row in run(cell)]
        except (DataError, TrainingError) as error:  # the others go on
            return cell, str(error)


@contextmanager
def _on_cluster(address: str) -> Iterator[None]:
    """Let joblib send its work to a Dask scheduler, once all its workers know what to do."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise DataError("a cluster needs dask: pip install 'deminat[cluster]'") from error
    try:
        client = Client(address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise DataError(f"no Dask scheduler answers at {printable(address)}: {error}") from error
    with client:
        _check_cluster(client)
        with parallel_config(backend="dask", client=client):
            yield


def _check_cluster(client: Any) -> None:
    """Refuse a cluster that would give other rows, or none, or leave the work to this process."""
    deadline = time.monotonic() + _PATIENCE
    while (cores := sum(client.ncores().values())) < 2:
        if time.monotonic() > deadline:
            raise DataError(f"the cluster has {cores} cores; start more workers, or leave it out")
        time.sleep(0.2)
    for where, found in [
        *client.run(_version).items(),
        ("the scheduler", client.run_on_scheduler(_version)),
    ]:
        if found != __version__:
            raise DataError(
                f"{where} has deminat {found}, here it is {__version__}: install the same there"
            )


def _version() -> str:
    return __version__
