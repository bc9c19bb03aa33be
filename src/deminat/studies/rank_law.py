"""The law of the rank test under independence, by simulation: `inference/rank_law.csv`.

It depends on the number of rows alone. Run it again, some minutes on one core, if the statistic in
`inference/rank_test.py` changes:

    python -m deminat.studies.rank_law src/deminat/inference/rank_law.csv
"""

import csv
import math
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..inference.rank_test import COSINES, LEAST_RANKED, cosines, harmonic

__all__ = ["P_VALUES", "simulated", "write_law"]

_SIZES = LEAST_RANKED, 24, 30, 40, 50, 65, 80, 100, 140, 200, 300, 500, 1_000, math.inf
P_VALUES = *np.linspace(1, 0.2, 33), *np.geomspace(0.2, 5e-5, 60)[1:]
_DRAWS, _BLOCK = 400_000, 1_000
_LIMIT = 10**9  # rows that stand for infinitely many


def simulated(n: float, draws: int, seed: int = 0) -> NDArray[np.float64]:
    """Return draws of log H of n independent rows; of infinitely many, by normal coefficients."""
    rng = np.random.default_rng([seed, int(min(n, _LIMIT))])
    found = []
    for first in range(0, draws, _BLOCK):
        count = min(_BLOCK, draws - first)
        if math.isinf(n):
            squares = rng.standard_normal((count, COSINES, COSINES)) ** 2
            found.append(harmonic(squares, _LIMIT))
        else:
            left = cosines(int(n))
            each = [left.T @ left[rng.permutation(int(n))] for _ in range(count)]
            found.append(harmonic(np.array(each) ** 2 / n, int(n)))
    return np.concatenate(found)


def write_law(path: Path, draws: int = _DRAWS) -> None:
    """Write quantiles of log H for each p-value, a line for each number of rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["n", *(f"{p:.4g}" for p in P_VALUES)])
        for n in _SIZES:
            quantiles = np.quantile(simulated(n, draws), 1 - np.array(P_VALUES))
            writer.writerow([n, *(f"{q:.4f}" for q in quantiles)])


if __name__ == "__main__":
    write_law(Path(sys.argv[1]))
