"""Parts of a work, shared between this process and others.

To load torch and scikit-learn takes a process seconds, as long as a small estimate takes in all. So
this process works too, instead of waiting for others, and a command may start the others before it
knows what they will have to do: they load libraries while it does. Each has one part at a time,
and takes the next one that nobody has.

The others are a crew. Threads have crews of their own, apart from the processes of joblib; one that
has done its work rests until it is wanted again, and ends after some minutes or with this process.
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

_PATIENCE = 1.0  # seconds
_IDLE = 300  # seconds after which a process ends that has nothing to do
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerPool:
    """Other processes.

    Args:
        size: How many.
    """

    def __init__(self, size: int):
        self.size, self.lock = size, Lock()
        self.given: list[Future[Any]] = []
        self.processes = ProcessPoolExecutor(
            size, timeout=_IDLE, env=_ONE_THREAD, initializer=_join, initargs=(os.getpid(),)
        )

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let one of them work."""
        with self.lock, _deaf():
            future: Future[T] = self.processes.submit(work)
            self.given = [f for f in self.given if not f.done()] + [future]
            return future

    def is_well(self) -> bool:
        """Tell whether they still answer."""
        try:
            return self.submit(os.getpid).result() > 0
        except BrokenProcessPool:
            return False

    def dismiss(self) -> None:
        """End them in the middle of their work."""
        deadline = time.monotonic() + _PATIENCE
        while any(not (f.running() or f.done()) for f in self.given):
            time.sleep(0.001)  # loky stumbles over work that it has not passed on yet
            if time.monotonic() > deadline:
                break
        self.processes.shutdown(kill_workers=True)


_CREW: ContextVar[WorkerPool | None] = ContextVar("_CREW", default=None)
_RESTING: dict[
    tuple[int, int], list[WorkerPool]
] = {}  # by this process, lest a fork takes them for its


@contextmanager
def worker_pool(jobs: int, *, rests: bool = True) -> Iterator[WorkerPool | None]:
    """Have other processes at hand for the work inside; `None` if it will be done without.

    Args:
        jobs: Processes, this one among them.
        rests: Whether they wait for more work afterwards. Left alone, they would keep this process
            for a second more when it wants to end.
    """
    known = _CREW.get()
    if jobs == 1 or known is not None or not _is_usual():
        yield known
        return
    others = _woken(jobs - 1)
    token = _CREW.set(others)
    try:
        yield others
    except BaseException:  # Ctrl-C too: nobody wants what they are at
        rests = False
        raise
    finally:
        _CREW.reset(token)
        if rests:
            _resting(others.size).append(others)
        else:
            others.dismiss()


@contextmanager
def preloaded_workers(jobs: int, module: str) -> Iterator[None]:
    """Let other processes import a module, for the work inside."""
    with worker_pool(jobs, rests=False) as others:
        if others is not None:
            for _ in range(others.size):
                others.submit(partial(_load, module))
        yield


def start_early(work: Callable[[], T]) -> Callable[[], T]:
    """Return what gives the outcome of a work, which the crew begins now if there is one."""
    others = _CREW.get()
    return cache(work) if others is None else partial(_outcome, others.submit(work))


def run_parts(parts: Sequence[Callable[[], T]], jobs: int) -> Iterator[T]:
    """Yield what each part returns, in their order.

    Args:
        parts: Work, to be done by whoever is free.
        jobs: Processes, this one among them.

    Where joblib was told of other means, such as a cluster, these do it. Threads would be none:
    seeds belong to a process.
    """
    if jobs > 1 and not _is_usual() and not _has_threads():
        yield from Parallel(n_jobs=jobs)(delayed(_call)(part) for part in parts)
        return
    with worker_pool(jobs) as others:
        if others is None:
            yield from (part() for part in parts)
        else:
            work = _Work(parts, others.submit)
            for _ in range(min(jobs - 1, others.size)):
                work.hand_out()
            yield from work.results()


class _Work(Generic[T]):
    """Parts that are not done yet, and what came of the others."""

    def __init__(
        self, parts: Sequence[Callable[[], T]], submit: Callable[[Callable[[], T]], Future[T]]
    ):
        self.parts, self.submit = parts, submit
        self.left, self.lock = iter(range(len(parts))), Lock()
        self.found: list[Future[T]] = [Future() for _ in parts]

    def take(self) -> int | None:
        """Return the next part that nobody has."""
        with self.lock:
            return next(self.left, None)

    def hand_out(self) -> None:
        """Give another process a part, and the next one when it is done."""
        i = self.take()
        if i is None:
            return
        try:
            self.submit(self.parts[i]).add_done_callback(partial(self.come_back, i))
        except Exception as error:  # they are gone
            self.fail(i, error)

    def come_back(self, i: int, told: Future[T]) -> None:
        """Keep what another process found."""
        error = None if told.cancelled() else told.exception()
        if error is not None or told.cancelled():
            self.fail(i, error or BrokenProcessPool())
        else:
            self.found[i].set_result(told.result())
            self.hand_out()

    def fail(self, i: int, error: BaseException) -> None:
        """Keep an error; nobody begins anything any more."""
        with self.lock:
            self.left = iter(())
        self.found[i].set_exception(error)

    def take_part(self) -> bool:
        """Do a part that nobody else has begun, if there is one."""
        i = self.take()
        if i is None:
            return False
        try:
            self.found[i].set_result(self.parts[i]())
        except BaseException as error:
            self.fail(i, error)
            raise
        return True

    def results(self) -> Iterator[T]:
        """Yield what was found; rather than wait for others, do something."""
        for future in self.found:  # what was not begun comes after an error
            while not future.done() and self.take_part():
                pass
            yield _outcome(future)


def _outcome(future: Future[T]) -> T:
    """Return what another process found, or say what a user can do about it."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise TrainingError(
            "another process was killed in the middle of its work, perhaps for want of memory: "
            "use one process, n_jobs=1 or --jobs 1, or fewer rows"
        ) from error
    except Exception as error:
        if type(error).__name__ != "PicklingError":
            raise
        raise DataError(f"this cannot be sent to other processes, use n_jobs=1: {error}") from error


def _woken(size: int) -> WorkerPool:
    """Return a crew that rested, if one is well, or another."""
    while resting := _resting(size):
        known = resting.pop()
        if known.is_well():
            return known
    return WorkerPool(size)


def _resting(size: int) -> list[WorkerPool]:
    return _RESTING.setdefault((os.getpid(), size), [])


@contextmanager
def _deaf() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started inside: who asks hears it too, and ends them."""
    heard = signal.getsignal(signal.SIGINT)
    if heard is None or current_thread() is not main_thread():  # then it is not ours to decide
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)


def _join(asking: int) -> None:
    """Begin to serve a process, and end with it: it may be killed in the middle of a word."""

    def watch() -> None:
        while os.getppid() == asking:
            time.sleep(_PATIENCE)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _load(module: str) -> None:
    """Import a module, without looking for rubbish among all that is made and stays."""
    gc.disable()
    import_module(module)
    gc.freeze()
    gc.enable()


def _is_usual() -> bool:
    """Tell whether joblib would use processes of this machine."""
    backend, _ = get_active_backend()
    return type(backend).__name__ == "LokyBackend"


def _has_threads() -> bool:
    """Tell whether joblib would stay in this process, as it does within its own."""
    backend, _ = get_active_backend()
    return bool(getattr(backend, "uses_threads", False))


def _call(part: Callable[[], T]) -> T:
    return part()
