"""Several processes that train one model, started by torchrun.

The first process stores the rows. It sends each cell to the others before it runs it, so that all
of them train it together.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import distributed

from ...errors import DataError, TrainingError, printable
from ...runtime.rowstore import Cell, Row

__all__ = [
    "follow_leader",
    "is_one_of_several",
    "leader",
    "process_group",
    "rank",
    "ranks",
    "run_on_first",
]

Run = Callable[[Cell], list[Row]]


def is_one_of_several() -> bool:
    """Tell whether torchrun started this process beside others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def ranks() -> int:
    """Return how many processes train together."""
    return distributed.get_world_size() if _is_on() else 1


def rank() -> int:
    """Return the index of this process, 0 for the first."""
    return distributed.get_rank() if _is_on() else 0


def _is_on() -> bool:
    return distributed.is_available() and distributed.is_initialized()


@contextmanager
def process_group(device: str) -> Iterator[str]:
    """Join the other processes if torchrun started several; give the device of this one."""
    if device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", device):
        raise DataError(f"device must be cpu or cuda, got {printable(device)}")
    if device != "cpu" and not torch.cuda.is_available():
        raise DataError(f"there is no {device}: torch finds no GPU here; leave out --device")
    if not is_one_of_several():
        yield device
        return
    on_gpu = device.startswith("cuda")
    if on_gpu:  # or all of them would exchange objects through the first
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield device
    finally:
        distributed.destroy_process_group()


@contextmanager
def leader(run: Run) -> Iterator[Run]:
    """Give a run that the other processes join, and end them afterwards."""
    if ranks() == 1:
        yield run
        return

    def lead(cell: Cell) -> list[Row]:
        _broadcast(cell)
        return run(cell)

    try:
        yield lead
    finally:
        _broadcast(None)


def follow_leader(run: Run) -> None:
    """Run what the first process runs, until it ends."""
    while (cell := _broadcast(None)) is not None:
        with suppress(DataError, TrainingError):  # which the first process reports
            run(cell)


def run_on_first(action: Callable[[], None]) -> None:
    """Let the first process do something; an error is raised in all processes."""
    error = None
    if rank() == 0:
        try:
            action()
        except DataError as found:
            error = str(found)
    if ranks() > 1:
        error = _broadcast(error)
    if error is not None:
        raise DataError(error)


def _broadcast(value: Any) -> Any:
    """Return the value of the first process."""
    values = [value]
    distributed.broadcast_object_list(values, src=0)
    return values[0]
