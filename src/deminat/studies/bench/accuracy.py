"""Is the number right? Claims about accuracy, tested on data whose information is known."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...api import estimate
from ...critics.networks import MLPCritic
from ...data.transforms import Standardize
from ...estimators.neural import Estimator
from ...objectives import DEMI
from ...runtime.rowstore import Cell, Row
from ...tasks import gaussian
from ...training.config import PAPER
from .runner import Bench, grouped, mark, measured

__all__ = ["BENCHES"]

_HELD_OUT = 10_240
_ALPHAS = 0.1, 0.25, 0.5, 0.75, 0.9


def _cell(truth: float, seed: int, n: int, d: int, **more: float) -> Cell:
    return {"truth": truth, "seed": seed, "n": n, "d": d, **more}


def _held_out(cell: Cell, estimator: Estimator) -> Row:
    """Return the estimate on 10,240 pairs that the critic was not trained on."""
    task = gaussian(cell["d"], cell["truth"])
    rng = np.random.default_rng([cell["seed"], int(cell["truth"])])
    train, held_out = task.sample(cell["n"], rng), task.sample(_HELD_OUT, rng)
    return measured(estimator.fit(*train).estimate(*held_out))


def _cap_run(cell: Cell) -> Row:
    training = replace(PAPER, batch=cell["batch"], epochs=5, halve_at=())
    estimator = Estimator(DEMI(), MLPCritic, Standardize, training, None, cell["seed"])
    return _held_out(cell, estimator)


def _cap_verdict(rows: Sequence[Row]) -> list[str]:
    lowest = min(r["estimate"] for r in rows)
    cap = math.log(rows[0]["batch"])
    return [f"{mark(lowest > cap)} lowest estimate {lowest:.3f} nats, log(batch) is {cap:.3f}"]


def _estimate_run(cell: Cell) -> Row:
    task = gaussian(cell["d"], cell["truth"])
    x, y = task.sample(cell["n"], np.random.default_rng([cell["seed"], cell["d"]]))
    return measured(estimate(x, y, method=DEMI(cell.get("alpha", 0.5)), seed=cell["seed"]))


def _alpha_verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for (seed,), own in sorted(grouped(rows, "seed").items()):
        half = next(r["estimate"] for r in own if r["alpha"] == 0.5)
        gaps = {r["alpha"]: abs(r["estimate"] - half) / r["standard_error"] for r in own}
        worst = max(gaps, key=lambda a: gaps[a])
        lines.append(
            f"{mark(gaps[worst] <= 2)} seed {seed}: alpha={worst:g} is the farthest from "
            f"alpha=0.5, by {gaps[worst]:.2f} standard errors (at most 2)"
        )
    return lines


def _independent_verdict(rows: Sequence[Row]) -> list[str]:
    values = [r["estimate"] for r in rows]
    mean = float(np.mean(values))
    return [
        f"{mark(abs(mean) <= 0.02)} mean of {len(values)} estimates {mean:+.4f} nats (at most "
        f"0.02 from 0), from {min(values):+.4f} to {max(values):+.4f}"
    ]


BENCHES = {
    "cap": Bench(
        "estimates are not capped by the batch",
        lambda seeds: [_cell(8.0, seed, 32_000, 20, batch=16) for seed in seeds],
        _cap_run,
        _cap_verdict,
        runs=2,
    ),
    "alpha": Bench(
        "alpha does not matter",
        lambda seeds: [_cell(2.0, seed, 10_000, 5, alpha=a) for seed in seeds for a in _ALPHAS],
        _estimate_run,
        _alpha_verdict,
        runs=2,
    ),
    "independent": Bench(
        "estimates for independent data are 0",
        lambda seeds: [_cell(0.0, seed, 5_000, 10) for seed in seeds],
        _estimate_run,
        _independent_verdict,
        runs=20,
    ),
}
