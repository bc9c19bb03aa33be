"""Is the number right? Each claim with the runs that show it, the truth beside every row."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...api import estimate
from ...critics.networks import MLPCritic
from ...data.transforms import Standardize
from ...estimators.neural import Estimator
from ...estimators.registry import estimator_for
from ...objectives import DEMI
from ...runtime.rowstore import Cell, Row
from ...tasks import gaussian
from ...training.config import PAPER
from .runner import Bench, mark

__all__ = ["ACCURACY"]

RELEASED = {5.0: 4.576, 10.0: 8.741, 15.0: 14.276, 20.0: 17.720}  # the authors' checkpoints


def _gaussian_cells(seeds: Sequence[int]) -> list[Cell]:
    return [{"truth": mi, "seed": s, "n": 160_000, "d": 20} for mi in RELEASED for s in seeds]


def _gaussian_run(cell: Cell) -> Row:
    task = gaussian(cell["d"], cell["truth"])
    rng = np.random.default_rng([cell["seed"], int(cell["truth"])])
    (x, y), held = task.sample(cell["n"], rng), task.sample(10_240, rng)
    fitted = estimator_for("demi", "paper", seed=cell["seed"]).fit(x, y)
    result = fitted.estimate(*held)
    return {"estimate": result.mi, "standard_error": result.standard_error}


def _gaussian_verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for truth, released in RELEASED.items():
        mean = np.mean([r["estimate"] for r in rows if r["truth"] == truth])
        off = mean - released
        lines.append(
            f"{mark(abs(off) <= 0.4)} true {truth:g} nats: {mean:.3f}, the authors' checkpoint "
            f"{released:.3f}, difference {off:+.3f} (at most 0.4)"
        )
    return lines


def _cap_cells(seeds: Sequence[int]) -> list[Cell]:
    return [{"truth": 8.0, "seed": s, "n": 32_000, "d": 20, "batch": 16} for s in seeds]


def _cap_run(cell: Cell) -> Row:
    task = gaussian(cell["d"], cell["truth"])
    rng = np.random.default_rng([cell["seed"], 8])
    (x, y), held = task.sample(cell["n"], rng), task.sample(10_240, rng)
    training = replace(PAPER, batch=cell["batch"], epochs=5, halve_at=())
    fitted = Estimator(DEMI(), MLPCritic, Standardize, training, None, cell["seed"]).fit(x, y)
    result = fitted.estimate(*held)
    return {"estimate": result.mi, "standard_error": result.standard_error}


def _cap_verdict(rows: Sequence[Row]) -> list[str]:
    least = min(r["estimate"] for r in rows)
    cap = math.log(rows[0]["batch"])
    return [f"{mark(least > cap)} lowest estimate {least:.3f} nats, log(batch) is {cap:.3f}"]


def _alpha_cells(seeds: Sequence[int]) -> list[Cell]:
    return [
        {"truth": 2.0, "seed": s, "n": 10_000, "d": 5, "alpha": alpha}
        for s in seeds
        for alpha in (0.1, 0.25, 0.5, 0.75, 0.9)
    ]


def _estimate_run(cell: Cell) -> Row:
    task = gaussian(cell["d"], cell["truth"])
    x, y = task.sample(cell["n"], np.random.default_rng([cell["seed"], cell["d"]]))
    result = estimate(x, y, method=DEMI(cell.get("alpha", 0.5)), seed=cell["seed"])
    return {"estimate": result.mi, "standard_error": result.standard_error}


def _alpha_verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for seed in sorted({r["seed"] for r in rows}):
        same = {r["alpha"]: r for r in rows if r["seed"] == seed}
        gaps = {
            a: abs(r["estimate"] - same[0.5]["estimate"]) / r["standard_error"]
            for a, r in same.items()
        }
        worst = max(gaps, key=lambda a: gaps[a])
        lines.append(
            f"{mark(gaps[worst] <= 2)} seed {seed}: alpha={worst:g} is the farthest from "
            f"alpha=0.5, by {gaps[worst]:.2f} standard errors (at most 2)"
        )
    return lines


def _independent_cells(seeds: Sequence[int]) -> list[Cell]:
    return [{"truth": 0.0, "seed": s, "n": 5_000, "d": 10} for s in seeds]


def _independent_verdict(rows: Sequence[Row]) -> list[str]:
    values = [r["estimate"] for r in rows]
    mean = float(np.mean(values))
    return [
        f"{mark(abs(mean) <= 0.02)} mean of {len(values)} estimates {mean:+.4f} nats (at most "
        f"0.02 from 0), from {min(values):+.4f} to {max(values):+.4f}"
    ]


ACCURACY = {
    "gaussian": Bench(
        "preset 'paper' lands where the authors' released checkpoints do",
        _gaussian_cells,
        _gaussian_run,
        _gaussian_verdict,
        runs=2,
    ),
    "cap": Bench(
        "estimates are not capped by the batch", _cap_cells, _cap_run, _cap_verdict, runs=2
    ),
    "alpha": Bench("alpha does not matter", _alpha_cells, _estimate_run, _alpha_verdict, runs=2),
    "independent": Bench(
        "independent data read 0", _independent_cells, _estimate_run, _independent_verdict, runs=20
    ),
}
