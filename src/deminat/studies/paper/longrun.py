"""Long runs on fresh samples, appendix B: does an estimate stay where it belongs?

A critic is trained by cross-entropy on 64 new pairs a step, all others of the batch as unpaired
partners, for 100,000 steps. DEMI and SMILE share that loss, so one training gives all four curves.
Each step is read before it is taken: on pairs that the critic has never seen.

References:
    Liao et al. (2020), appendix B. Song and Ermon (2020), section 6.1.
"""

import math
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from torch import Tensor

from ...critics.networks import MLPCritic
from ...errors import TrainingError
from ...objectives import DEMI, SMILE, Objective
from ...runtime.process import one_thread
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import report_progress
from ...tasks import gaussian
from ...training.analytic.gradients import all_pairs_loss
from ...training.config import Training
from ...training.loop import train

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
        reps: Runs of each.
        scale: Share of the steps to take, for a quick look.
    """

    truths: tuple[float, ...] = (10.0, 20.0, 30.0)
    d: int = 20
    batch: int = 64
    steps: int = 100_000
    every: int = 20
    reps: int = 1
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
            for draw in range(self.reps)
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
    steps: list[int] = []
    curves: list[list[float]] = [[] for _ in _READ]
    taken = count()

    def read_and_lose(joint: Tensor, product: Tensor) -> Tensor:
        step = next(taken)
        if step % cell["every"] == 0:
            steps.append(step)
            for curve, objective in zip(curves, _READ, strict=True):
                curve.append(float(objective.estimate(joint.detach(), product.detach())))
        return loss.loss(joint, product)

    settings = Training(batch=cell["batch"], steps=cell["steps"], halve_at=())
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["draw"])
        critic = MLPCritic((cell["d"],), (cell["d"],))
        of_pairs = all_pairs_loss(critic, read_and_lose)
        steps_of = cell["steps"]
        history = train(
            critic,
            lambda b: of_pairs(*b),
            _fresh(cell),
            steps_of,
            settings,
            progress=report_progress,
        )
    if history.restarts:  # the curve would be that of several trainings
        raise TrainingError("the loss was not finite")
    return steps, curves


def _fresh(cell: Cell) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of pairs that were never there before."""
    task = gaussian(cell["d"], cell["truth"])
    rng = np.random.default_rng([cell["draw"], zlib.crc32(task.name.encode())])
    while True:
        x, y = task.sample(_CHUNK * cell["batch"], rng)
        pairs = torch.from_numpy(x).float(), torch.from_numpy(y).float()
        yield from zip(*(torch.split(a, cell["batch"]) for a in pairs), strict=True)
