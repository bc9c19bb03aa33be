"""How far work is that has parts, here or in other processes.

What other processes do is told through a small file: each part has eight bytes there, whoever works
at it writes its share, and a thread of this process looks at all of them now and then. No queue has
to be kept alive, and a process that is killed leaves behind no more than the last share it told.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["PartProgress", "Progress", "part_progress", "progress_of_part"]

Progress = Callable[[float], None]  # called with the share of the work that is done, 0 to 1

_EVERY = 0.5  # seconds between two looks
_BYTES = np.dtype(float).itemsize


class PartProgress(Protocol):
    """What the parts of a work tell their progress to."""

    def of(self, part: int) -> Progress | None:
        """Return what a part is to call with its share; `None` if nobody wants to know."""
        ...

    def look(self) -> None:
        """Tell how much is done of all parts."""
        ...

    def done(self, part: int) -> None:
        """Tell that a part is done."""
        ...


@contextmanager
def part_progress(progress: Progress | None, parts: int, *, here: bool) -> Iterator[PartProgress]:
    """Give meters of the parts of a work, whose mean `progress` is told.

    Args:
        progress: Called with the share of the work that is done; by a thread of its own while other
            processes work.
        parts: How many there are.
        here: Whether this process does all of them.
    """
    if progress is None:
        yield _Nobody()
    elif here:
        yield _Here(progress, np.zeros(parts))
    else:
        with TemporaryDirectory(prefix="deminat-") as folder:
            path = Path(folder) / "shares"
            np.zeros(parts).tofile(path)
            meters = _Elsewhere(progress, path, threading.Lock())
            with _looking(meters):
                yield meters


@contextmanager
def _looking(meters: PartProgress) -> Iterator[None]:
    """Look at meters now and then."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(_EVERY):
            meters.look()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Nobody:
    """Meters that nobody looks at."""

    def of(self, part: int) -> None:
        return None

    def look(self) -> None:
        pass

    def done(self, part: int) -> None:
        pass


@dataclass(frozen=True)
class _Here:
    """Meters of what this process does itself."""

    progress: Progress
    shares: NDArray[np.float64]

    def of(self, part: int) -> Progress:
        return partial(self._tell, part)

    def look(self) -> None:
        self.progress(float(self.shares.mean()))

    def done(self, part: int) -> None:
        self._tell(part, 1.0)

    def _tell(self, part: int, share: float) -> None:
        self.shares[part] = share
        self.look()


@dataclass(frozen=True)
class _Elsewhere:
    """Meters of what other processes do."""

    progress: Progress
    path: Path
    one_at_a_time: threading.Lock  # or an older look might be told after a newer one

    def of(self, part: int) -> Progress:
        return partial(_write, self.path, part)

    def look(self) -> None:
        with self.one_at_a_time:
            self.progress(float(np.fromfile(self.path).mean()))

    def done(self, part: int) -> None:
        _write(self.path, part, 1.0)
        self.look()


def _write(path: Path, part: int, share: float) -> None:
    try:
        with path.open("r+b") as file:
            file.seek(part * _BYTES)
            file.write(np.float64(share).tobytes())
    except FileNotFoundError:  # who asked has gone, or this is another machine
        pass


def progress_of_part(progress: Progress | None, i: int, count: int) -> Progress | None:
    """Return the progress of the i-th of `count` like parts of a work."""
    return None if progress is None else lambda share: progress((i + share) / count)
