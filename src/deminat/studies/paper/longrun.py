"""Long runs on fresh samples, appendix B: does an estimate stay near the truth?

A critic is trained by cross-entropy on 64 new pairs a step, all others of the batch as unpaired
partners, for 100,000 steps. DEMI and SMILE share that loss, so one training gives all four curves.
Each batch is evaluated before it trains the critic, which has never seen its pairs. The public code
has three hidden layers, the text two.

References:
    Liao et al. (2020), appendix B. Song and Ermon (2020), section 6.1.
"""

import math
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from torch import Tensor

from ...critics.networks import MLPCritic
from ...critics.scoring import all_pairs
from ...errors import TrainingError
from ...objectives import DEMI, SMILE, Objective
from ...runtime.process import one_thread
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import report_progress
from ...tasks import gaussian
from ...training.config import Training
from ...training.loop import train
from .recipe import check_study
from .tables import Table, spread

__all__ = ["LongRunStudy", "longrun_setting", "longrun_tables", "run_longrun"]

_OBJECTIVES: tuple[Objective, ...] = (DEMI(), SMILE(1.0), SMILE(5.0), SMILE(math.inf))
_UNITS = 256
_CHUNK = 64  # batches that are drawn at once


@dataclass(frozen=True)
class LongRunStudy:
    """Settings of the experiment.

    Args:
        truths: True information, in nats.
        d: Columns a side.
        batch: Pairs a step.
        steps: Steps of a run.
        every: Steps between two points of a curve.
        layers: Numbers of hidden layers of 256 units.
        reps: Runs of each.
        scale: Share of the steps to run, for a quick run.
    """

    truths: tuple[float, ...] = (10.0, 20.0, 30.0)
    d: int = 20
    batch: int = 64
    steps: int = 100_000
    every: int = 20
    layers: tuple[int, ...] = (3, 2)
    reps: int = 1
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_study(self.scale)

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
                "layers": layers,
                "draw": draw,
            }
            for draw in range(self.reps)
            for layers in self.layers
            for truth in self.truths
        ]


def run_longrun(cell: Cell) -> list[Row]:
    """Train once and return a row for each objective, with its curve."""
    start = time.perf_counter()
    steps, curves = _curves(cell)
    seconds = round(time.perf_counter() - start, 2)
    return [
        {**cell, "method": o.name, "step": steps, "estimate": curve, "seconds": seconds}
        for o, curve in zip(_OBJECTIVES, curves, strict=True)
    ]


def _curves(cell: Cell) -> tuple[list[int], list[list[float]]]:
    """Return the steps that were evaluated and, for each objective, its estimates there."""
    loss, counter = DEMI(), count()
    steps: list[int] = []
    curves: list[list[float]] = [[] for _ in _OBJECTIVES]
    settings = Training(batch=cell["batch"], steps=cell["steps"], halve_at=())
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["draw"])
        critic = MLPCritic((cell["d"],), (cell["d"],), hidden=(_UNITS,) * cell["layers"])

        def evaluated_loss(pairs: tuple[Tensor, Tensor]) -> Tensor:
            joint, product = all_pairs(critic, *pairs)
            step = next(counter)
            if step % cell["every"] == 0:
                steps.append(step)
                for curve, objective in zip(curves, _OBJECTIVES, strict=True):
                    curve.append(float(objective.estimate(joint.detach(), product.detach())))
            return loss.loss(joint, product)

        history = train(
            critic, evaluated_loss, _fresh(cell), cell["steps"], settings, progress=report_progress
        )
    if history.restarts:  # the curve would be that of several trainings
        raise TrainingError("the loss was not finite")
    return steps, curves


def _fresh(cell: Cell) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of new pairs."""
    task = gaussian(cell["d"], cell["truth"])
    rng = np.random.default_rng([cell["draw"], zlib.crc32(task.name.encode())])
    while True:
        x, y = task.sample(_CHUNK * cell["batch"], rng)
        pairs = torch.from_numpy(x).float(), torch.from_numpy(y).float()
        yield from zip(*(torch.split(a, cell["batch"]) for a in pairs), strict=True)


def longrun_setting(row: Cell) -> str:
    """Return what curves must share to be compared."""
    points = f"{row['steps']:,} steps, evaluated every {row['every']}"
    layers = f"{row['layers']} hidden layers"
    return f"{row['d']} + {row['d']} columns, {row['batch']} pairs a step, {layers}, {points}"


def longrun_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the mean of the last tenth of each curve."""
    ends = [
        {**r, "end": float(np.mean(r["estimate"][-max(1, len(r["estimate"]) // 10) :]))}
        for r in rows
    ]
    title = "estimate in nats, mean of the last tenth of the steps, by true nats"
    return [spread(ends, title, "truth", "end")]
