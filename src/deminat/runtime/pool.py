"""Parts of a work, shared between this process and worker processes.

A process takes seconds to load torch and scikit-learn, as long as a small estimate takes in all. So
this process works too instead of waiting, and a command may start its workers before it knows what
they will do: they load libraries meanwhile. Each process has one part at a time, and then takes the
next one that nobody has.

Each thread uses pools of its own, apart from the processes of joblib. An idle pool is used again,
and ends after some minutes or with this process.
"""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from loky import ProcessPoolExecutor

from ..errors import DataError, TrainingError

__all__ = ["preloaded_workers", "run_parts", "start_early", "worker_pool"]

T = TypeVar("T")

_WAIT = 1.0  # seconds
_IDLE = 300  # seconds after which an idle process ends
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_CURRENT: ContextVar["WorkerPool | None"] = ContextVar("_CURRENT", default=None)
_IDLE_POOLS: dict[tuple[int, int], list["WorkerPool"]] = {}  # by process, as forks copy it; size


class WorkerPool:
    """A number of worker processes."""

    def __init__(self, size: int):
        self.size, self._lock = size, Lock()
        self._submitted: list[Future[Any]] = []
        self._executor = ProcessPoolExecutor(
            size, timeout=_IDLE, env=_ONE_THREAD, initializer=_end_with, initargs=(os.getpid(),)
        )

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let a worker run something."""
        with self._lock, _interrupts_ignored():
            future: Future[T] = self._executor.submit(work)
            self._submitted = [f for f in self._submitted if not f.done()] + [future]
            return future

    def is_alive(self) -> bool:
        """Tell whether the workers still answer."""
        try:
            return self.submit(os.getpid).result() > 0
        except BrokenProcessPool:
            return False

    def kill(self) -> None:
        """End the workers in the middle of their work."""
        deadline = time.monotonic() + _WAIT
        while any(not (f.running() or f.done()) for f in self._submitted):
            time.sleep(0.001)  # loky fails on work that it has not passed on yet
            if time.monotonic() > deadline:
                break
        self._executor.shutdown(kill_workers=True)


@contextmanager
def worker_pool(jobs: int, *, reuse: bool = True) -> Iterator[WorkerPool | None]:
    """Give a pool of workers for the work inside; `None` if this process works alone.

    Args:
        jobs: Processes, this one among them.
        reuse: Whether the workers wait for more work afterwards. If they do, this process takes a
            second longer to end.
    """
    current = _CURRENT.get()
    if jobs == 1 or current is not None or not _uses_processes():
        yield current
        return
    idle = _IDLE_POOLS.setdefault((os.getpid(), jobs - 1), [])
    while idle and not idle[-1].is_alive():
        idle.pop()
    pool = idle.pop() if idle else WorkerPool(jobs - 1)
    token = _CURRENT.set(pool)
    try:
        yield pool
    except BaseException:  # Ctrl-C too: nobody needs the results of the workers
        reuse = False
        raise
    finally:
        _CURRENT.reset(token)
        if reuse:
            idle.append(pool)
        else:
            pool.kill()


@contextmanager
def preloaded_workers(jobs: int, module: str) -> Iterator[None]:
    """Let workers import a module, for the work inside."""
    with worker_pool(jobs, reuse=False) as pool:
        if pool is not None:
            for _ in range(pool.size):
                pool.submit(partial(_preload, module))
        yield


def start_early(work: Callable[[], T]) -> Callable[[], T]:
    """Return a function that returns the result of a work; a worker, if any, starts it now."""
    pool = _CURRENT.get()
    return cache(work) if pool is None else partial(_result, pool.submit(work))


def run_parts(parts: Sequence[Callable[[], T]], jobs: int) -> Iterator[T]:
    """Yield what each part returns, in the order of the parts.

    Args:
        parts: Functions to call.
        jobs: Processes, this one among them.

    If joblib was set to another backend, such as a cluster, that backend runs them; threads are not
    used, since seeds belong to a process.
    """
    # Within its own workers joblib uses threads, that is, it stays in this process.
    elsewhere = not (_uses_processes() or getattr(get_active_backend()[0], "uses_threads", False))
    if jobs > 1 and elsewhere:
        yield from Parallel(n_jobs=jobs)(delayed(part)() for part in parts)
        return
    with worker_pool(jobs) as pool:
        if pool is None:
            yield from (part() for part in parts)
        else:
            work = _SharedWork(parts, pool.submit)
            for _ in range(min(jobs - 1, pool.size)):
                work.submit_next()
            yield from work.results()


class _SharedWork(Generic[T]):
    """Parts that are not started yet, and the results of the others."""

    def __init__(
        self, parts: Sequence[Callable[[], T]], submit: Callable[[Callable[[], T]], Future[T]]
    ):
        self.parts, self.submit = parts, submit
        self.unstarted, self.lock = iter(range(len(parts))), Lock()
        self.futures: list[Future[T]] = [Future() for _ in parts]

    def submit_next(self) -> None:
        """Let a worker run the next part, and another one after it."""
        i = self._next()
        if i is None:
            return
        try:
            self.submit(self.parts[i]).add_done_callback(partial(self._receive, i))
        except Exception as error:  # the workers are gone
            self._fail(i, error)

    def results(self) -> Iterator[T]:
        """Yield the results in order; run parts here rather than wait."""
        for future in self.futures:  # parts that never start come after an error
            while not future.done() and self._run_next():
                pass
            yield _result(future)

    def _next(self) -> int | None:
        with self.lock:
            return next(self.unstarted, None)

    def _run_next(self) -> bool:
        """Run the next part here; return whether there was one."""
        i = self._next()
        if i is None:
            return False
        try:
            self.futures[i].set_result(self.parts[i]())
        except BaseException as error:
            self._fail(i, error)
            raise
        return True

    def _receive(self, i: int, finished: Future[T]) -> None:
        error = BrokenProcessPool() if finished.cancelled() else finished.exception()
        if error is None:
            self.futures[i].set_result(finished.result())
            self.submit_next()
        else:
            self._fail(i, error)

    def _fail(self, i: int, error: BaseException) -> None:
        """Record an error, after which no part is started."""
        with self.lock:
            self.unstarted = iter(())
        self.futures[i].set_exception(error)


def _result(future: Future[T]) -> T:
    """Return the result of a worker, or raise an error that says what to do."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise TrainingError(
            "a worker process was killed, perhaps for lack of memory: use one process, n_jobs=1 or "
            "--jobs 1, or fewer rows"
        ) from error
    except Exception as error:
        if type(error).__name__ != "PicklingError":
            raise
        raise DataError(f"this cannot be sent to other processes, use n_jobs=1: {error}") from error


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes that are started inside ignore Ctrl-C: this process gets it and ends them."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or current_thread() is not main_thread():  # then it cannot be set
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _end_with(parent: int) -> None:
    """End this worker when its parent has ended, as by a kill."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WAIT)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _preload(module: str) -> None:
    """Import a module without garbage collection, which would find nothing to free."""
    gc.disable()
    import_module(module)
    gc.freeze()
    gc.enable()


def _uses_processes() -> bool:
    """Tell whether joblib would use processes of this machine."""
    return type(get_active_backend()[0]).__name__ == "LokyBackend"
