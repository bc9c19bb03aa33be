"""Time of whole cells of the paper's experiments, relative to the matrix products of their steps.

The time of a cell, divided by its steps, is compared with that of the matrix products of a step,
forward and backward, timed before and after it in the same process; for one cell alone, and for two
at once. InfoNCE is timed at 2 nats: at high information it skips most of its products.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed, parallel_config

from ...runtime.process import keep_freed_memory, one_thread
from ...runtime.rowstore import Cell, Row
from ..paper.consistency import run_on_images
from ..paper.gaussian import run_gaussian
from ..paper.longrun import run_longrun
from .runner import Bench, grouped, mark
from .speed import Layer, matrix_products, milliseconds, mlp_layers

__all__ = ["BENCHES", "TIMED"]

_CLAIM = "a cell of the paper takes little more time than its products, two at once not more each"
_COUPLINGS, _HIDDEN, _DIM = 3, 256, 20
_TIMES = "limit_ms", "cell_ms"


@dataclass(frozen=True)
class _Timed:
    """A small cell, with its training steps and the layers of a step."""

    run: Callable[[Cell], list[Row]]
    cell: Cell  # without its draw
    steps: int
    layers: list[Layer]


def _flows(rows: int) -> list[Layer]:
    """Return the layers of a step of GM: couplings of (x, y), of x, and of y."""
    layers: list[Layer] = []
    for half in (_DIM, _DIM // 2, _DIM // 2):
        widths = list(pairwise([half, _HIDDEN, _HIDDEN, 2 * half]))
        layers += [(rows, i, o) for i, o in widths] * _COUPLINGS
    return layers


def _gaussian(training: str, n: int, steps: int, layers: list[Layer], truth: float = 10) -> _Timed:
    cell = {"kind": "normal", "d": _DIM, "n": n, "truth": truth, "training": training}
    return _Timed(run_gaussian, cell, steps, layers)


def _on_noise(cell: Cell) -> list[Row]:
    """Run a cell of the experiment on MNIST on images of noise."""
    rng = np.random.default_rng(cell["draw"])
    sets = (rng.random((n, 28, 28), np.float32) for n in (cell["images"], cell["images"] // 6))
    return run_on_images(cell, *sets)


_ALL_PAIRS = mlp_layers(64 * 64, 64)
TIMED = {
    "demi(0.5)": _gaussian("demi(0.5)", 16_000, 5_000, mlp_layers(128)),
    "mine": _gaussian("mine", 8_000, 2_500, mlp_layers(128)),
    "infonce": _gaussian("infonce", 3_200, 1_000, _ALL_PAIRS, truth=2.0),
    "gm": _gaussian("gm", 3_200, 1_000, _flows(64)),
    "longrun": _Timed(
        run_longrun,
        {"truth": 10.0, "d": _DIM, "batch": 64, "steps": 500, "every": 20, "layers": 2},
        500,
        _ALL_PAIRS,
    ),
    "consistency": _Timed(
        _on_noise,
        {"test": "monotonicity", "t": 28, "training": "demi(0.5)", "epochs": 10}
        | {"contrast": 1, "images": 1_280},
        200,
        [(128, 64 * 14 * 14, 1024), (128, 1024, 1)],
    ),
}


def _cells(seeds: Sequence[int]) -> list[Cell]:
    return [
        {"training": training, "at_once": at_once, "round": seed}
        for seed in seeds
        for training in TIMED
        for at_once in (1, 2)
    ]


def _time_cells(cell: Cell) -> Row:
    """Return the milliseconds of a step of cells that run at once, and of its products."""
    with parallel_config(backend="loky"):
        timed = Parallel(n_jobs=cell["at_once"])(
            delayed(_time_cell)(cell["training"], 2 * cell["round"] + i)
            for i in range(cell["at_once"])
        )
    limit, ours = zip(*timed, strict=True)
    return {"limit_ms": statistics.mean(limit), "cell_ms": statistics.mean(ours)}


def _time_cell(training: str, draw: int) -> tuple[float, float]:
    keep_freed_memory()  # as sweeps do in each process
    timed = TIMED[training]
    multiply, some = matrix_products(timed.layers), max(1, timed.steps // 10)
    with one_thread():
        multiply(some)
        limit = milliseconds(multiply, some)
        (row, *_) = timed.run({**timed.cell, "draw": draw})
        limit = (limit + milliseconds(multiply, some)) / 2  # before and after
    return limit, row["seconds"] / timed.steps * 1e3


def _verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for (training,), own in grouped(rows, "training").items():
        each = {n: cells for (n,), cells in grouped(own, "at_once").items()}
        limit, ours = (
            {n: statistics.median(row[key] for row in cells) for n, cells in each.items()}
            for key in _TIMES
        )
        share, slower, floor = limit[1] / ours[1], ours[2] / ours[1] - 1, limit[2] / limit[1] - 1
        shares = sorted(row["limit_ms"] / row["cell_ms"] for row in each[1])
        lines += [
            f"{mark(share >= 0.5)} {training}: a step of a cell takes {ours[1]:.2f} ms, its matrix "
            f"products {limit[1]:.2f} ms: {share:.0%} of the limit (at least 50%), in rounds "
            f"{shares[0]:.0%} to {shares[-1]:.0%}",
            f"{mark(slower <= 0.15)} {training}: two at a time take {slower:.0%} longer (at most "
            f"15%); matrix products alone {floor:.0%}",
        ]
    return lines


BENCHES = {"cells": Bench(_CLAIM, _cells, _time_cells, _verdict, runs=3, jobs=1)}
