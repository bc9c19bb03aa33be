"""Does the independence test find what there is to find? Its power on hyppo's twenty simulations.

hyppo makes the samples in an environment of its own: see `studies/hyppo_samples.py`. Nineteen of
them are dependent, one is not. Published mean power at n = 100, one column a side, is .888 (MGC).

Of several columns a side the rows have the power of hyppo's own tests on the same samples, and the
mean power must be above that of each. What is slow is run on the first samples only: the test here,
and KMERF.

References:
    Vogelstein et al. (2019), Discovering and deciphering relationships across disparate data
    modalities (MGC and its simulations).
    Shen, Panda and Vogelstein (2020), Learning interpretable characteristic kernels via decision
    forests (KMERF).
"""

import csv
import os
import time
from collections.abc import Iterator, Sequence
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
_TESTED = {3: 100, 10: 50}  # samples of so many columns
_PEERS = {"dcorr": "Dcorr", "hsic": "HSIC", "mgc": "MGC", "kmerf": "KMERF"}
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
        first = slice(_TESTED.get(cell["columns"]))
        x, y = (arrays[f"{cell['simulation']}_{side}"][first] for side in "xy")
    start = time.process_time()
    p_values = [
        independence_test(*pair, seed=cell["seed"]).p_value for pair in zip(x, y, strict=True)
    ]
    cpu = (time.process_time() - start) / len(x)
    power = float(np.mean(np.array(p_values) <= _LEVEL))
    peers = _powers_of_peers(Path(folder), cell) if cell["columns"] > 1 else {}
    return {"samples": len(x), "power": power, "milliseconds": 1e3 * cpu, **peers}


def _powers_of_peers(folder: Path, cell: Cell) -> Row:
    """Return the power of each peer of hyppo on the same samples."""
    with (folder / "peers.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if _is_same(row, cell)]
    return {row["peer"]: float(row["power"]) for row in found}


def _is_same(row: dict[str, str], cell: Cell) -> bool:
    return all(row[key] == str(cell[key]) for key in ("n", "columns", "simulation"))


def _verdict(rows: Sequence[Row]) -> list[str]:
    shapes = grouped(rows, "n", "columns").items()
    return [line for (n, columns), own in shapes for line in _lines(n, columns, own)]


def _lines(n: int, columns: int, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is found of one number of rows and columns, and a line for each peer."""
    dependent = [r for r in rows if r["simulation"] != _INDEPENDENT]
    power, goal = _mean(dependent, "power"), _GOALS.get((n, columns), 0.0)
    worst = min(dependent, key=lambda r: float(r["power"]))
    level = [f"{r['power']:.1%}" for r in rows if r["simulation"] == _INDEPENDENT]
    least = f" (at least {goal})" if goal else ""
    where = f"n={n}, {columns} + {columns} columns"
    yield (
        f"{mark(power >= goal)} {where}: mean power {power:.3f}{least}, lowest "
        f"{worst['power']:.2f} of {worst['simulation']}; {', '.join(level)} of independent "
        f"samples; {_mean(rows, 'milliseconds'):.1f} ms a test, {rows[0]['samples']} samples of "
        "each simulation"
    )
    for peer, name in _PEERS.items():
        both = [r for r in dependent if r.get(peer) not in (None, "")]
        if both:
            own, other = _mean(both, "power"), _mean(both, peer)
            yield (
                f"{mark(own > other)} {where}: {own:.3f}, above {other:.3f} of {name}, "
                f"{len(both)} simulations"
            )


def _mean(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([float(r[key]) for r in rows]))


BENCHES = {"power": Bench("the test finds dependence of any shape", _cells, _run, _verdict, runs=1)}
