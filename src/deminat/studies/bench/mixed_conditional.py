r"""Is the number right for tables of mixed types, and given a third variable?

- `mixed`: categories, counts, booleans and quantities with many zeros, against exact values;
- `conditional`: jointly normal x, y, z, whose information is a ratio of determinants,
  $I(x; y \mid z) = \tfrac12 \log \frac{|\Sigma_{xz}| |\Sigma_{yz}|}{|\Sigma_z| |\Sigma|}$.
"""

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...api import estimate
from ...runtime.rowstore import Cell, Row
from ...tasks import labelled, mixed_tasks
from .runner import Bench, grouped, mark, measured

__all__ = ["BENCHES"]

Array = NDArray[np.float64]

_PAIRS = 10_000
_MIXED_LIMIT, _CONDITIONAL_LIMIT = 0.02, 0.05  # nats

# Numbers of columns of x, y and z, and the weights of independent normal variables in each.
_NORMAL: dict[str, tuple[tuple[int, int, int], Array]] = {
    "chain": ((1, 1, 1), np.array([[0.8, 0, 1.0], [0, 0.8, 1.0], [0, 0, 1.0]])),
    "fork with a link": ((1, 1, 1), np.array([[0.8, 0, 1.0], [0.6, 0.8, 1.0], [0, 0, 1.0]])),
    "collider": ((1, 1, 1), np.array([[1.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0.5]])),
    "3 + 3 given 2": ((3, 3, 2), np.random.default_rng(8).normal(size=(8, 8)) + 1.5 * np.eye(8)),
}


def _cells(cases: Iterable[str], seeds: Sequence[int]) -> list[Cell]:
    return [{"case": case, "n": _PAIRS, "seed": seed} for seed in seeds for case in cases]


def _mixed_run(cell: Cell) -> Row:
    task = mixed_tasks()[cell["case"]]
    x, y = task.sample(cell["n"], _generator(cell))
    sides = labelled(x, task.labels_x), labelled(y, task.labels_y)
    result = estimate(*sides, seed=cell["seed"])
    oracle = float(task.log_ratio(x, y).mean())
    return {**measured(result), "truth": task.mi, "oracle": oracle}


def _conditional_run(cell: Cell) -> Row:
    sizes, weights = _NORMAL[cell["case"]]
    rows = _generator(cell).normal(size=(cell["n"], len(weights))) @ weights.T
    x, y, z = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    result = estimate(x, y, given=z, seed=cell["seed"])
    return {**measured(result), "truth": _exact(sizes, weights)}


def _generator(cell: Cell) -> np.random.Generator:
    return np.random.default_rng([cell["seed"], zlib.crc32(cell["case"].encode())])


def _exact(sizes: tuple[int, int, int], weights: Array) -> float:
    """Return the information in nats, from determinants."""
    covariance = weights @ weights.T
    x, y, z = np.split(np.arange(len(weights)), np.cumsum(sizes)[:-1])

    def log_det(*parts: NDArray[np.int64]) -> float:
        rows = np.concatenate(parts)
        return float(np.linalg.slogdet(covariance[np.ix_(rows, rows)])[1])

    return 0.5 * (log_det(x, z) + log_det(y, z) - log_det(z) - log_det(x, y, z))


def _verdict(rows: Sequence[Row], limit: float) -> list[str]:
    """Return a line for each case, on the error of the mean over seeds."""
    lines = []
    for (case,), own in grouped(rows, "case").items():
        errors = [row["estimate"] - row["truth"] for row in own]
        mean, truth = float(np.mean(errors)), own[0]["truth"]
        oracle = [row["oracle"] - truth for row in own if "oracle" in row]
        perfect = f", a perfect critic {np.mean(oracle):+.4f}" if oracle else ""
        lines.append(
            f"{mark(abs(mean) <= limit)} {case}: true {truth:.4f} nats, off by {mean:+.4f} (at "
            f"most {limit}){perfect}; from {min(errors):+.4f} to {max(errors):+.4f} in "
            f"{len(own)} runs"
        )
    return lines


BENCHES = {
    "mixed": Bench(
        "estimates for categories, counts and zeros are right",
        lambda seeds: _cells(mixed_tasks(), seeds),
        _mixed_run,
        lambda rows: _verdict(rows, _MIXED_LIMIT),
        runs=3,
    ),
    "conditional": Bench(
        "conditional estimates are right",
        lambda seeds: _cells(_NORMAL, seeds),
        _conditional_run,
        lambda rows: _verdict(rows, _CONDITIONAL_LIMIT),
        runs=3,
    ),
}
