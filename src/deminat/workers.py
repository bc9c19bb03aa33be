"""Parts of a work, shared between this process and others.

To load torch and scikit-learn takes a process seconds, as long as a small estimate takes in all. So
this process works too, instead of waiting for others, and a command may start the others before it
knows what they will have to do: they load libraries while it does. Each has one part at a time,
and takes the next one that nobody has.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from threading import Lock
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import get_active_backend

__all__ = ["begun", "shared", "standing_by"]

T = TypeVar("T")

_PATIENCE = 1.0  # seconds
_IDLE = 300  # seconds after which a process ends that has nothing to do
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@contextmanager
def standing_by(jobs: int, module: str) -> Iterator[None]:
    """Let the other processes that `jobs` need import a module already; end them at the end.

    Left alone, they would keep this process for a second more when it wants to end.
    """
    loads = [_others(jobs).submit(_load, module) for _ in range(jobs - 1)]
    try:
        yield
    finally:
        if loads:
            _dismiss(_others(jobs), loads)


def _load(module: str) -> None:
    """Import a module, without looking for rubbish among all that is made and stays."""
    gc.disable()
    import_module(module)
    gc.freeze()
    gc.enable()


def begun(work: Callable[[], T], jobs: int) -> Callable[[], T]:
    """Return what gives the outcome of a work, which another process begins now if there is one."""
    return _others(jobs).submit(work).result if jobs > 1 and _is_usual() else cache(work)


def shared(parts: Sequence[Callable[[], T]], jobs: int) -> Iterator[T]:
    """Yield what each part returns, in their order.

    Args:
        parts: Work, to be done by whoever is free.
        jobs: Processes, this one among them.

    Where joblib was told of other means, such as a cluster, these do it.
    """
    if jobs == 1:
        yield from (part() for part in parts)
    elif not _is_usual():
        yield from Parallel(n_jobs=jobs)(delayed(_call)(part) for part in parts)
    else:
        others = _others(jobs)
        work = _Work(parts, others.submit)
        try:
            for _ in range(jobs - 1):
                work.hand_out()
            yield from work.results()
        except BaseException:  # Ctrl-C too: nobody wants what the others are at
            _dismiss(others, work.given)
            raise


def _others(jobs: int) -> Any:
    """Return the other processes, the same as before if they are still there."""
    return get_reusable_executor(jobs - 1, timeout=_IDLE, env=_ONE_THREAD)


def _dismiss(others: Any, given: Sequence[Future[Any]]) -> None:
    """End other processes in the middle of their work."""
    deadline = time.monotonic() + _PATIENCE
    while any(not (f.running() or f.done()) for f in given) and time.monotonic() < deadline:
        time.sleep(0.001)  # loky stumbles over work that it has not passed on yet
    others.shutdown(kill_workers=True)


def _is_usual() -> bool:
    """Tell whether joblib would use processes of this machine."""
    backend, _ = get_active_backend()
    return type(backend).__name__ == "LokyBackend"


def _call(part: Callable[[], T]) -> T:
    return part()


class _Work(Generic[T]):
    """Parts that are not done yet, and what came of the others."""

    def __init__(self, parts: Sequence[Callable[[], T]], submit: Callable[..., Future[T]]):
        self.parts, self.submit = parts, submit
        self.left, self.lock = iter(range(len(parts))), Lock()
        self.found: list[Future[T]] = [Future() for _ in parts]
        self.given: list[Future[T]] = []

    def take(self) -> int | None:
        """Return the next part that nobody has."""
        with self.lock:
            return next(self.left, None)

    def hand_out(self) -> None:
        """Give another process a part, and the next one when it is done."""
        i = self.take()
        if i is not None:
            self.given.append(self.submit(self.parts[i]))
            self.given[-1].add_done_callback(partial(self.come_back, i))

    def come_back(self, i: int, told: Future[T]) -> None:
        """Keep what another process found; after an error nobody begins anything."""
        error = told.exception()
        if error is None:
            self.found[i].set_result(told.result())
            self.hand_out()
        else:
            self.left = iter(())
            self.found[i].set_exception(error)

    def take_part(self) -> bool:
        """Do a part that nobody else has begun, if there is one."""
        i = self.take()
        if i is not None:
            self.found[i].set_result(self.parts[i]())
        return i is not None

    def results(self) -> Iterator[T]:
        """Yield what was found; rather than wait for others, do something."""
        for future in self.found:
            while not future.done() and self.take_part():
                pass
            yield future.result()
