"""Long runs on fresh samples, appendix B: does an estimate stay where it belongs?

A critic is trained by cross-entropy on 64 new pairs a step, all others of the batch as unpaired
partners, for 100,000 steps. DEMI and SMILE share that loss, so one training gives all four curves.
Each step is read before it is taken: on pairs that the critic has never seen.

References:
    Liao et al. (2020), appendix B. Song and Ermon (2020), section 6.1.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..critics import MLPCritic
from ..objectives import DEMI, SMILE, Objective
from ..store import Row
from ..tasks import gaussian
from ..training import Training, one_thread, train
from .sweep import Cell

__all__ = ["LongRunStudy", "run_longrun"]

_READ: tuple[Objective, ...] = (DEMI(), SMILE(1.0), SMILE(5.0), SMILE(math.inf))
_CHUNK = 64  # batches that are drawn at once


@dataclass(frozen=True)
class LongRunStudy:
    """What to run.

    Args:
        truths: True information, in nats.
        d: Columns a side.
        batch: Pairs a step.
        steps: Steps of a run.
        every: Steps between two points of a curve.
        draws: Runs of each.
        scale: Share of the steps to take, for a quick look.
    """

    truths: tuple[float, ...] = (10.0, 20.0, 30.0)
    d: int = 20
    batch: int = 64
    steps: int = 100_000
    every: int = 10
    draws: int = 1
    scale: float = 1.0

    def cells(self) -> list[Cell]:
        """Return a cell for each run."""
        steps = max(self.every, round(self.scale * self.steps))
        return [
            {
                "truth": truth,
                "d": self.d,
                "batch": self.batch,
                "steps": steps,
                "every": self.every,
                "draw": draw,
            }
            for draw in range(self.draws)
            for truth in self.truths
        ]


def run_longrun(cell: Cell) -> list[Row]:
    """Train once and return a row for each readout, with its curve."""
    start = time.perf_counter()
    steps, curves = _curves(cell)
    seconds = round(time.perf_counter() - start, 2)
    return [
        {
            **cell,
            "method": objective.name,
            "step": steps,
            "estimate": curve,
            "seconds": seconds,
        }
        for objective, curve in zip(_READ, curves, strict=True)
    ]


def _curves(cell: Cell) -> tuple[list[int], list[list[float]]]:
    """Return the steps that were read and, for each readout, its values there."""
    loss = DEMI()
    curves: list[list[float]] = [[] for _ in _READ]
    taken = 0

    def read_and_lose(batch: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal taken
        table = _table(critic, *batch)
        joint, product = table.diagonal(), _without_diagonal(table)
        if taken % cell["every"] == 0:
            for curve, objective in zip(curves, _READ, strict=True):
                curve.append(float(objective.estimate(joint.detach(), product.detach())))
        taken += 1
        return loss.loss(joint, product)

    settings = Training(batch=cell["batch"], steps=cell["steps"], halve_at=())
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["draw"])
        critic = MLPCritic((cell["d"],), (cell["d"],))
        train(critic, read_and_lose, _fresh(cell), cell["steps"], settings)
    return [i * cell["every"] for i in range(len(curves[0]))], curves


def _fresh(cell: Cell) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of pairs that were never there before."""
    task = gaussian(cell["d"], cell["truth"])
    rng = np.random.default_rng([cell["draw"], round(cell["truth"])])
    while True:
        x, y = task.sample(_CHUNK * cell["batch"], rng)
        pairs = torch.from_numpy(x).float(), torch.from_numpy(y).float()
        yield from zip(*(torch.split(a, cell["batch"]) for a in pairs), strict=True)


def _table(critic: MLPCritic, x: Tensor, y: Tensor) -> Tensor:
    """Return the score of every x with every y, (b, b)."""
    b = len(x)
    pairs = x.repeat_interleave(b, dim=0), y.repeat(b, 1)
    return torch.as_tensor(critic(*pairs)).reshape(b, b)


def _without_diagonal(table: Tensor) -> Tensor:
    """Return (b, b - 1): each row without the pair itself."""
    b = len(table)
    return table.flatten()[1:].view(b - 1, b + 1)[:, :-1].reshape(b, b - 1)
