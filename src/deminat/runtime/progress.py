"""How much of a work is done whose parts run here or in other processes.

Other processes report through a small file with eight bytes for each part: whoever runs a part
writes its share, and a thread of this process reads all of them now and then. No queue has to be
served, and a killed process leaves behind no more than its last share.

Python calls that take over two seconds show a bar, on a terminal or in a notebook, unless they run
within another call or a sweep.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

__all__ = [
    "AskedProgress",
    "PartProgress",
    "Progress",
    "bar",
    "part_progress",
    "progress_of_part",
    "quiet",
    "shown",
]

Progress = Callable[[float], None]  # called with the share of the work that is done, 0 to 1
# What a caller asks for: his own function; False for nothing; None for a bar if it takes long.
AskedProgress = Progress | bool | None

_PATIENCE = 2.0  # seconds after which a bar is shown
# Seconds of history behind the remaining time that a bar shows. Cells of a sweep are minutes
# apart, so rich's default of 30 s would never give an estimate.
_SPEED_PERIOD = 3600.0
_QUIET: ContextVar[bool] = ContextVar("_QUIET", default=False)

_INTERVAL = 0.5  # seconds between two reports
_BYTES = np.dtype(float).itemsize


class PartProgress:
    """Progress of the parts of a work.

    Args:
        progress: Called with the mean share of the parts; `None` reports nothing.
        parts: Number of parts.
        path: File for the shares that other processes write; `None` if all parts run here.
    """

    def __init__(self, progress: Progress | None, parts: int, path: Path | None = None):
        self._progress, self._path = progress, path
        self._shares = np.zeros(parts)
        self._lock = threading.RLock()  # or an older share might be reported after a newer one
        if path:
            self._shares.tofile(path)

    def listener(self, part: int) -> Progress | None:
        """Return what a part calls with its share; `None` if nothing is reported."""
        if self._progress is None:
            return None
        return partial(_write, self._path, part) if self._path else partial(self._set, part)

    def report(self) -> None:
        """Report the mean share of all parts."""
        if self._progress is not None:
            with self._lock:
                shares = np.fromfile(self._path) if self._path else self._shares
                self._progress(float(shares.mean()))

    def finish(self, part: int) -> None:
        """Report that a part is done."""
        if self._path:
            _write(self._path, part, 1.0)
        self._set(part, 1.0)

    def _set(self, part: int, share: float) -> None:
        self._shares[part] = share
        self.report()


@contextmanager
def part_progress(progress: Progress | None, parts: int, *, here: bool) -> Iterator[PartProgress]:
    """Give the progress of the parts of a work.

    Args:
        progress: Called with the share of the work that is done; by a thread of its own while other
            processes work.
        parts: Number of parts.
        here: Whether this process runs all of them.
    """
    if progress is None or here:
        yield PartProgress(progress, parts)
        return
    with TemporaryDirectory(prefix="deminat-") as folder:
        shares = PartProgress(progress, parts, Path(folder) / "shares")
        with _repeated(shares.report):
            yield shares


@contextmanager
def _repeated(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` at intervals, from a thread."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(_INTERVAL):
            report()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _write(path: Path, part: int, share: float) -> None:
    with suppress(FileNotFoundError), path.open("r+b") as file:  # gone, or on another machine
        file.seek(part * _BYTES)
        file.write(np.float64(share).tobytes())


def progress_of_part(progress: Progress | None, i: int, count: int) -> Progress | None:
    """Return the progress of the i-th of `count` equal parts of a work."""
    return None if progress is None else lambda share: progress((i + share) / count)


@contextmanager
def quiet() -> Iterator[None]:
    """Within it, calls show no bar of their own."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


@contextmanager
def shown(asked: AskedProgress, label: str) -> Iterator[Progress | None]:
    """Give the progress that a caller asked for; calls within show none of their own.

    Args:
        asked: A function; `None` for a bar on a terminal or in a notebook after two seconds;
            `False` for nothing.
        label: What stands before the bar.
    """
    watched = not _QUIET.get() and (asked is True or _is_watched())
    with quiet(), ExitStack() as stack:
        if asked is None or asked is True:
            yield _late_bar(label, stack) if watched else None
        else:
            yield asked or None


def _is_watched() -> bool:
    """Tell whether somebody sees a bar."""
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


def _late_bar(label: str, stack: ExitStack) -> Progress:
    """Return a progress whose bar appears after two seconds, and goes with the stack."""
    start, found = time.monotonic(), list[Progress]()

    def update(share: float) -> None:
        if not found and time.monotonic() - start > _PATIENCE:
            found.append(stack.enter_context(bar(label)))
        for own in found:
            own(share)

    return update


@contextmanager
def bar(label: str) -> Iterator[Progress]:
    """Show a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining

    columns = [TextColumn(label), BarColumn(), TaskProgressColumn(), Elapsed(), Remaining()]
    console, period = Console(stderr=True), _SPEED_PERIOD
    with Bar(*columns, console=console, transient=True, speed_estimate_period=period) as shown_bar:
        task = shown_bar.add_task(label, total=1.0)
        yield lambda share: shown_bar.update(task, completed=share)
