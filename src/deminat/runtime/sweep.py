"""One runner for all sweeps: cells that are not in the store yet are run and stored.

A cell is a plain dictionary of names and numbers, and all that its rows depend on, the seed
included: so rows are the same wherever a cell is run, here or on a cluster of the same processors,
first or last. Cells are handed out one by one and their rows are committed as they come back, by
this process alone. A sweep that is killed loses the cells in the making, and goes on where it was
when called again. Rows also tell of what versions of deminat and torch they are, and on what
processor they were made.
"""

import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from threadpoolctl import threadpool_limits

from ..errors import DataError, TrainingError, printable
from .environment import environment
from .process import keep_freed_memory
from .progress import Progress, part_progress
from .rowstore import Cell, Row, key_of

__all__ = ["RowStore", "Sweep", "filter_cells", "report_progress", "run_sweep"]

_ONE_AT_A_TIME = threading.Lock()
_PATIENCE = 10.0  # seconds that workers may take to report
_TRIES = 5  # until processes that are killed end a sweep
_LISTENER: ContextVar[Progress | None] = ContextVar("_LISTENER", default=None)


@dataclass(frozen=True)
class Sweep:
    """What to run.

    Args:
        cells: Each once.
        run: Turns a cell into rows; importable by name, so that other processes find it.
    """

    cells: Sequence[Cell]
    run: Callable[[Cell], list[Row]]


class RowStore(Protocol):
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
    store: RowStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run what is missing and return the rows of all cells of the sweep, in their order.

    Args:
        sweep: What to run.
        store: Where rows are kept.
        jobs: Processes to use here.
        cluster: Address of a Dask scheduler to use instead, such as `tcp://host:8786`.
        progress: Called with the share of the cells that is done.

    Cells that fail are tried again the next time; they are told when all others are done. If a
    process is killed, as for want of memory, others go on with what it left.
    """
    for _ in range(_TRIES):
        todo = store.missing(sweep.cells)
        whole = _of_all(progress, len(sweep.cells) - len(todo), len(sweep.cells))
        with suppress(BrokenProcessPool):
            if todo and (failed := _run(sweep.run, todo, store, jobs, cluster, whole)):
                raise TrainingError(_told(failed, len(todo)))
            if whole and not todo:
                whole(1.0)
            return store.rows(sweep.cells)
    raise TrainingError(
        f"processes were killed {_TRIES} times in the middle of their work, perhaps for want of "
        "memory; what is finished is kept: go on with --jobs 1"
    )


def _run(
    run: Callable[[Cell], list[Row]],
    cells: Sequence[Cell],
    store: RowStore,
    jobs: int,
    cluster: str | None,
    progress: Progress | None,
) -> list[tuple[str, str]]:
    """Run cells and keep their rows as they come; return those that fail, and why."""
    jobs = min(effective_n_jobs(jobs), len(cells)) if cluster is None else -1
    failed: list[tuple[str, str]] = []
    with _quietly(), part_progress(progress, len(cells), here=jobs == 1) as meters:
        meters.look()
        work = [(i, run, cell, meters.of(i)) for i, cell in enumerate(cells)]
        with closing(_outcomes(work, jobs, cluster)) as outcomes:
            for i, rows in outcomes:
                if isinstance(rows, str):
                    failed.append((key_of(cells[i]), rows))
                else:
                    store.add(cells[i], rows)
                meters.done(i)
    return failed


def _told(failed: Sequence[tuple[str, str]], count: int) -> str:
    """Return what to say of cells that failed; of a reason that all have, once."""
    (cell, why), *others = failed
    if len(failed) == count and {reason for _, reason in others} == {why}:
        return f"all {count} cells failed: {why}"
    return f"{len(failed)} of {count} cells failed, the first {cell}: {why}"


@contextmanager
def _quietly() -> Iterator[None]:
    """Hide that joblib replaces a process when a cell has left it large: nothing is lost by it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield


def _of_all(progress: Progress | None, before: int, count: int) -> Progress | None:
    """Return the progress of the cells that are left, after those that were there before."""
    if progress is None:
        return None
    return lambda share: progress((before + share * (count - before)) / count)


def report_progress(share: float) -> None:
    """Say how much of a cell is done, from within its run."""
    listener = _LISTENER.get()
    if listener:
        listener(share)


def filter_cells(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
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


Work = tuple[int, Callable[[Cell], list[Row]], Cell, Progress | None]
Outcome = tuple[int, list[Row] | str]  # or why there are none


def _outcomes(
    work: Sequence[Work], jobs: int, cluster: str | None
) -> Generator[Outcome, None, None]:
    """Yield the places of cells with their rows, in the order in which they end."""
    with nullcontext() if cluster is None else _on_cluster(cluster):
        # One cell at a time to each process: they take minutes, and none must wait for another.
        parallel = Parallel(
            n_jobs=jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="2*n_jobs" if cluster is None else "all",
        )
        yield from parallel(delayed(_outcome)(*one) for one in work)


def _outcome(
    place: int, run: Callable[[Cell], list[Row]], cell: Cell, progress: Progress | None
) -> Outcome:
    """Run a cell as if it were alone: its rows must not depend on what else runs where.

    Seeds and threads belong to a process, so that two threads of a Dask worker wait for each other,
    what a cell does in parallel stays here, and linear algebra always has one thread.
    """
    with _ONE_AT_A_TIME, threadpool_limits(1), parallel_config(backend="sequential"):
        keep_freed_memory()
        where = environment()  # before it runs: files may change meanwhile
        token = _LISTENER.set(progress)
        try:
            return place, [{**row, **where} for row in run(cell)]
        except (DataError, TrainingError) as error:
            return place, str(error)
        except Exception as error:  # a fault of ours: the others go on all the same
            return place, f"{type(error).__name__}: {error}"
        finally:
            _LISTENER.reset(token)


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
        if found != _version():
            raise DataError(
                f"{where} has deminat {found}, here it is {_version()}: install the same there"
            )


def _version() -> str:
    """Return the version and, in a clone, the commit; and that of torch."""
    return "{version} with torch {torch}".format(**environment())
