"""Does the independence test find what there is to find? Its power on hyppo's twenty simulations.

hyppo makes the samples in an environment of its own: see `studies/hyppo_samples.py`. Nineteen of
them are dependent, one is not. Published mean power at n = 100, one column a side, is .888 (MGC).

References:
    Vogelstein et al. (2019), Discovering and deciphering relationships across disparate data
    modalities (MGC and its simulations).
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import DataError
from ...inference.independence import independence_test
from ...runtime.rowstore import Cell, Row
from ..hyppo_samples import SHAPES
from .runner import Bench, grouped, mark

__all__ = ["BENCHES"]

_INDEPENDENT = "multimodal_independence"
_LEVEL = 0.05
_GOALS = {(50, 1): 0.58, (100, 1): 0.90, (300, 1): 0.99}
_NAMES = (
    *("linear", "exponential", "cubic", "joint_normal", "step", "quadratic", "w_shaped", "spiral"),
    *("uncorrelated_bernoulli", "logarithmic", "fourth_root", "sin_four_pi", "sin_sixteen_pi"),
    *("square", "two_parabolas", "circle", "ellipse", "diamond", "multiplicative_noise"),
    _INDEPENDENT,
)


def _cells(seeds: Sequence[int]) -> list[Cell]:
    """Return a cell for each simulation and shape; the samples have seeds of their own."""
    return [
        {"simulation": name, "n": n, "columns": columns, "seed": seed}
        for seed in seeds
        for n, columns, _ in SHAPES
        for name in _NAMES
    ]


def _run(cell: Cell) -> Row:
    """Return the share of samples that are found dependent, and the time of a test."""
    folder = os.environ.get("DEMINAT_HYPPO")
    if not folder:
        raise DataError(
            "the samples are made by hyppo: run studies/hyppo_samples.py, and set DEMINAT_HYPPO to "
            "its folder"
        )
    with np.load(Path(folder) / f"{cell['n']}_{cell['columns']}.npz") as arrays:
        x, y = (arrays[f"{cell['simulation']}_{side}"] for side in "xy")
    start = time.process_time()
    p_values = [
        independence_test(*pair, seed=cell["seed"]).p_value for pair in zip(x, y, strict=True)
    ]
    cpu = (time.process_time() - start) / len(x)
    power = float(np.mean(np.array(p_values) <= _LEVEL))
    return {"samples": len(x), "power": power, "milliseconds": 1e3 * cpu}


def _verdict(rows: Sequence[Row]) -> list[str]:
    lines = []
    for (n, columns), own in grouped(rows, "n", "columns").items():
        dependent = [r for r in own if r["simulation"] != _INDEPENDENT]
        power, goal = float(np.mean([r["power"] for r in dependent])), _GOALS[n, columns]
        worst = min(dependent, key=lambda r: float(r["power"]))
        level = [f"{r['power']:.1%}" for r in own if r["simulation"] == _INDEPENDENT]
        cpu = float(np.mean([r["milliseconds"] for r in own]))
        lines.append(
            f"{mark(power >= goal)} n={n}, {columns} + {columns} columns: mean power {power:.3f} "
            f"(at least {goal}), lowest {worst['power']:.2f} of {worst['simulation']}; "
            f"{', '.join(level)} of independent samples; {cpu:.1f} ms a test, "
            f"{own[0]['samples']} samples of each simulation"
        )
    return lines


BENCHES = {"power": Bench("the test finds dependence of any shape", _cells, _run, _verdict, runs=1)}
