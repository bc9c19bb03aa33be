"""One runner for all sweeps: cells that are not in the store yet are run and stored.

A cell is a plain dictionary of names and numbers, the seed included, and determines its rows: they
are the same wherever it runs, here or on a cluster of the same processors, first or last. Cells are
submitted one by one, and this process alone commits their rows as they come back. A killed sweep
loses the cells that were running, and continues from there when it is called again. Rows also name
the versions of deminat and torch and the processor.
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
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from threadpoolctl import threadpool_limits

from ..errors import DataError, TrainingError, printable
from .environment import environment
from .process import keep_freed_memory
from .progress import Progress, part_progress, quiet
from .rowstore import Cell, Row, SqliteStore, key_of

__all__ = ["Sweep", "complete_sweep", "filter_cells", "report_progress", "run_sweep"]

Run = Callable[[Cell], list[Row]]
Outcome = tuple[int, list[Row] | str]  # index of a cell, and its rows or why there are none

_ONE_AT_A_TIME = threading.RLock()
_TIMEOUT = 10.0  # seconds for a cluster to answer
_ATTEMPTS = 5  # after killed processes
_LISTENER: ContextVar[Progress | None] = ContextVar("_LISTENER", default=None)


@dataclass(frozen=True)
class Sweep:
    """What to run.

    Args:
        cells: Each once.
        run: Turns a cell into rows; importable by name, so that other processes find it.
    """

    cells: Sequence[Cell]
    run: Run


def run_sweep(
    sweep: Sweep,
    store: SqliteStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run the missing cells and return the rows of all cells of the sweep, in their order.

    Arguments are those of `complete_sweep`.
    """
    complete_sweep(sweep, store, jobs=jobs, cluster=cluster, progress=progress)
    return store.rows(sweep.cells)


def complete_sweep(
    sweep: Sweep,
    store: SqliteStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Run the missing cells.

    Args:
        sweep: What to run.
        store: Where rows are stored.
        jobs: Processes to use here.
        cluster: Address of a Dask scheduler to use instead, such as `tcp://host:8786`.
        progress: Called with the share of the cells that is done.

    Cells that fail are reported when all others are done, and are missing at the next call. If a
    process is killed, as for lack of memory, new ones continue.
    """
    count = len(sweep.cells)
    for _ in range(_ATTEMPTS):
        todo = store.missing(sweep.cells)
        if not todo and progress:
            progress(1.0)
        remaining = _remaining_progress(progress, count - len(todo), count)
        with suppress(BrokenProcessPool):
            failed = _run(Sweep(todo, sweep.run), store, jobs, cluster, remaining) if todo else []
            if failed:
                raise TrainingError(_failures(failed, len(todo)))
            return
    raise TrainingError(
        f"worker processes were killed {_ATTEMPTS} times, perhaps for lack of memory; finished "
        "cells are stored: continue with --jobs 1"
    )


def _run(
    sweep: Sweep, store: SqliteStore, jobs: int, cluster: str | None, progress: Progress | None
) -> list[tuple[str, str]]:
    """Run cells and store their rows as they come; return the keys of those that fail, and why."""
    cells = sweep.cells
    jobs = min(effective_n_jobs(jobs), len(cells)) if cluster is None else -1
    failed: list[tuple[str, str]] = []
    with warnings.catch_warnings(), part_progress(progress, len(cells), here=jobs == 1) as parts:
        # joblib replaces a process that a cell has left large; nothing is lost by it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        parts.report()
        calls = [delayed(_outcome)(i, sweep.run, c, parts.listener(i)) for i, c in enumerate(cells)]
        with closing(_outcomes(calls, jobs, cluster)) as outcomes:
            for i, rows in outcomes:
                if isinstance(rows, str):
                    failed.append((key_of(cells[i]), rows))
                else:
                    store.add(cells[i], rows)
                parts.finish(i)
    return failed


def _failures(failed: Sequence[tuple[str, str]], count: int) -> str:
    """Return a message about cells that failed; a reason that all share is given once."""
    (cell, reason), *others = failed
    if len(failed) == count and {other for _, other in others} == {reason}:
        return f"all {count} cells failed: {reason}"
    return f"{len(failed)} of {count} cells failed, the first {cell}: {reason}"


def _remaining_progress(progress: Progress | None, before: int, count: int) -> Progress | None:
    """Return the progress of the cells that are left, after those that were stored before."""
    if progress is None:
        return None
    return lambda share: progress((before + share * (count - before)) / count)


def report_progress(share: float) -> None:
    """Report the share of a cell that is done, from within its run."""
    listener = _LISTENER.get()
    if listener:
        listener(share)


def filter_cells(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """Return the cells that match.

    Args:
        cells: To select from.
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
        having = [cell for cell in cells if key in cell]
        if not having:
            raise DataError(f"no cell has {printable(key)}; there are {', '.join(cells[0])}")
        cells = [c for c in having if any(fnmatchcase(_text(c[key]), p) for p in patterns)]
        if not cells:
            known = list(dict.fromkeys(_text(cell[key]) for cell in having))
            raise DataError(
                f"no cell has {printable(key)} = {printable(' or '.join(patterns))}; there are "
                + ", ".join(known[:9] + ["..."] * (len(known) > 9))
            )
    return cells


def _text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _outcomes(
    calls: Sequence[Any], jobs: int, cluster: str | None
) -> Generator[Outcome, None, None]:
    """Yield outcomes in the order in which cells end."""
    with nullcontext() if cluster is None else _on_cluster(cluster):
        # One cell at a time to each process: they take minutes, and none must wait for another.
        yield from Parallel(
            n_jobs=jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="2*n_jobs" if cluster is None else "all",
        )(calls)


def _outcome(index: int, run: Run, cell: Cell, progress: Progress | None) -> Outcome:
    """Run a cell in isolation: its rows must not depend on what else runs.

    Seeds and threads belong to a process. So two threads of a Dask worker wait for each other,
    whatever a cell does in parallel stays here, and linear algebra uses one thread.
    """
    with _ONE_AT_A_TIME, threadpool_limits(1), parallel_config(backend="sequential"), quiet():
        keep_freed_memory()
        origin = environment()  # before it runs: files may change meanwhile
        token = _LISTENER.set(progress)
        try:
            return index, [{**row, **origin} for row in run(cell)]
        except (DataError, TrainingError) as error:
            return index, str(error)
        except Exception as error:  # a defect in the code of a cell does not stop the others
            return index, f"{type(error).__name__}: {error}"
        finally:
            _LISTENER.reset(token)


@contextmanager
def _on_cluster(address: str) -> Iterator[None]:
    """Let joblib send its work to a Dask scheduler, after a check of its workers."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise DataError("a cluster needs dask: pip install 'deminat[cluster]'") from error
    try:
        client = Client(address, timeout=_TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise DataError(f"no Dask scheduler answers at {printable(address)}: {error}") from error
    with client:
        _check_cluster(client)
        with parallel_config(backend="dask", client=client):
            yield


def _check_cluster(client: Any) -> None:
    """Refuse a cluster of other versions, which would give other rows, or of fewer than 2 cores."""
    deadline = time.monotonic() + _TIMEOUT
    while (cores := sum(client.ncores().values())) < 2:
        if time.monotonic() > deadline:
            raise DataError(f"the cluster has {cores} cores; start more workers, or leave it out")
        time.sleep(0.2)
    found = {**client.run(_version), "the scheduler": client.run_on_scheduler(_version)}
    for where, version in found.items():
        if version != _version():
            raise DataError(
                f"{where} has deminat {version}, here it is {_version()}: install the same there"
            )


def _version() -> str:
    """Return the versions of deminat, with its commit, and of torch."""
    return "{version} with torch {torch}".format(**environment())
