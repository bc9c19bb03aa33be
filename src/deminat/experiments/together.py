"""Several processes that train one model: started by torchrun, led by the first.

The first process keeps the rows and hands each cell to the others before it runs it, so that all of
them train it together.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import distributed

from ..store import Cell, Row

__all__ = ["follow", "leading", "rank", "ranks", "together"]

Run = Callable[[Cell], list[Row]]


def ranks() -> int:
    """Return how many processes train together."""
    return distributed.get_world_size() if _is_on() else 1


def rank() -> int:
    """Return which of them this is, 0 for the first."""
    return distributed.get_rank() if _is_on() else 0


def _is_on() -> bool:
    return distributed.is_available() and distributed.is_initialized()


@contextmanager
def together(device: str) -> Iterator[str]:
    """Join the other processes if torchrun started several; give the device of this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield device
        return
    on_gpu = device.startswith("cuda")
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu else device
    finally:
        distributed.destroy_process_group()


@contextmanager
def leading(run: Run) -> Iterator[Run]:
    """Give a run that the other processes join, and let them go at the end."""
    if ranks() == 1:
        yield run
        return

    def lead(cell: Cell) -> list[Row]:
        _exchanged(cell)
        return run(cell)

    try:
        yield lead
    finally:
        _exchanged(None)


def follow(run: Run) -> None:
    """Run what the first process runs, until it ends."""
    while (cell := _exchanged(None)) is not None:
        run(cell)


def _exchanged(cell: Cell | None) -> Any:
    """Return what the first process has."""
    held = [cell]
    distributed.broadcast_object_list(held, src=0)
    return held[0]
