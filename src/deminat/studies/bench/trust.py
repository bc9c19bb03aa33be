"""Are the promises kept? False alarms, power, bounds above the truth, and what it all costs.

A cell is a batch of runs, each with data and seeds of its own, and its row counts how often a
promise was broken. Batches are small enough to be resumed, and large enough for few rows.

- `level`: independent x and y with eight kinds of marginals, tested at 5%;
- `copies` and `groups`: the same with every row twice, and with twenty rows a group;
- `series`: two independent autoregressions, with and without their order;
- `power`: a correlation of .3;
- `given`: x and y that are independent given z, tested given z at 5%;
- `interval`: 95% intervals of the default recipe that cover the truth, for data like those they
  were made for and that deserve no warning, and how often there is one all the same; `outside`: how
  often an interval that misses the truth carries a warning;
- `bound`: lower bounds above the truth, by quick critics and by critics that know their training
  rows by heart;
- `time`: an estimate with all that comes with it, over its trainings alone.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from ...api import estimate
from ...critics.networks import MLPCritic
from ...data.sample import as_sample
from ...estimators.neural import Estimator
from ...inference import Assessor, independence_test
from ...inference.lower_bound import lower_bound
from ...inference.sequential import sequential_parts
from ...runtime.rowstore import Cell, Row
from ...tasks import get
from ...training.config import PAPER
from .runner import Bench
from .trust_verdicts import trust_verdicts

__all__ = ["TRUST"]

Array = NDArray[np.float64]

_LEVEL = 0.05
_BATCH = 50  # runs of a row
_ROWS_A_GROUP = 20
_MEMORY = 0.95

_MARGINALS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: rng.lognormal(sigma=2, size=n),
    "bimodal": lambda rng, n: rng.normal(size=n) + 6 * rng.integers(0, 2, n),
    "counts": lambda rng, n: rng.poisson(2, n).astype(float),
    "coin": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "atom": lambda rng, n: rng.normal(size=n) * rng.integers(0, 2, n),
}
_FAMILIES = (
    "1v1-normal-0.75",
    "1v1-additive-0.1",
    "1v1-bimodal-0.75",
    "half_cube-1v1-normal-0.75",
    "swissroll_x-normal_cdf-1v1-normal-0.75",
    "multinormal-dense-5-5-0.5",
    "multinormal-sparse-5-5-2-2.0",
    "student-identity-1-1-1",
    "student-identity-5-5-2",
    "spiral-multinormal-sparse-3-3-2-2.0",
)
_COVERED = (
    "1v1-normal-0.75",
    "1v1-additive-0.1",
    "1v1-bimodal-0.75",
    "swissroll_x-normal_cdf-1v1-normal-0.75",
    "half_cube-multinormal-sparse-5-5-2-2.0",
    "multinormal-dense-5-5-0.5",
    "gaussian-20d-3nats",
    "student-identity-5-5-2",
    "asinh-student-identity-3-3-2",
    "spiral-multinormal-sparse-3-3-2-2.0",
)
_OUTSIDE = (
    ("spiral-normal_cdf-multinormal-sparse-5-5-2-2.0", 1_000),
    ("spiral-multinormal-sparse-25-25-2-2.0", 1_000),
    ("1v1-additive-0.1", 500),
    ("asinh-student-identity-5-5-2", 500),
    ("multinormal-dense-50-50-0.5", 1_000),
    ("mixture-10d-5nats-a-component", 2_000),
)
_GIVEN: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {  # of z and noise
    "chain": lambda z, e, f: (z + e, z + f),
    "tight": lambda z, e, f: (z + 0.3 * e, z + 0.3 * f),
    "bent": lambda z, e, f: (np.sin(2 * z) + 0.5 * e, z**2 + 0.5 * f),
    "spread": lambda z, e, f: (z * e, np.exp(z / 2) * f),
}
_HEADS: dict[str, tuple[int, int]] = {  # promise: batches a seed, runs in a batch
    "level": (10, _BATCH),
    "copies": (10, _BATCH),
    "groups": (10, _BATCH),
    "series": (10, _BATCH),
    "power": (4, _BATCH),
    "given": (8, 25),
    "interval": (20, 3),
    "outside": (4, 5),
    "bound": (8, 25),
    "time": (1, 1),
}


def _cells(seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of each promise; a seed holds all runs that the promise speaks of."""
    cases = {
        "level": [(kind, n) for kind in _MARGINALS for n in (200, 2_000)],
        "copies": [("normal", 200), ("normal", 2_000)],
        "groups": [("normal", 200), ("normal", 2_000)],
        "series": [("autoregression", 2_000)],
        "power": [("normal", 1_000)],
        "given": [(kind, n) for kind in _GIVEN for n in (500, 2_000)],
        "interval": [(family, 5_000) for family in _COVERED],
        "outside": list(_OUTSIDE),
        "bound": [(family, 1_000) for family in _FAMILIES],
        "time": [(family, 5_000) for family in _FAMILIES],
    }
    return [
        {"promise": promise, "case": case, "n": n, "seed": seed, "batch": batch}
        for seed in seeds
        for promise, found in cases.items()
        for case, n in found
        for batch in range(_HEADS[promise][0])
    ]


def _run(cell: Cell) -> Row:
    """Return how many runs there were, and how many broke the promise or were warned."""
    return _RUNS[cell["promise"]](cell)


def _streams(cell: Cell) -> list[np.random.Generator]:
    """Return a source of randomness for each run of a cell."""
    entropy = [cell["seed"], cell["n"], *cell["case"].encode(), *cell["promise"].encode()]
    root = np.random.SeedSequence([*entropy, cell["batch"]])
    return [np.random.default_rng(child) for child in root.spawn(_HEADS[cell["promise"]][1])]


def _tested(
    cell: Cell, draw: Callable[[np.random.Generator], tuple[Array, Array]], **how: Any
) -> Row:
    results = [
        independence_test(*draw(rng), seed=int(rng.integers(1 << 31)), **how)
        for rng in _streams(cell)
    ]
    warned = sum(any(w.code == "autocorrelated" for w in r.warnings) for r in results)
    return {
        "runs": len(results),
        "rejected": sum(r.p_value <= _LEVEL for r in results),
        "warned": warned,
    }


def _level(cell: Cell) -> Row:
    draw, n = _MARGINALS[cell["case"]], cell["n"]
    return _tested(cell, lambda rng: (draw(rng, n), draw(rng, n)))


def _copies(cell: Cell) -> Row:
    half = cell["n"] // 2
    return _tested(cell, lambda rng: tuple(np.repeat(rng.normal(size=(2, half)), 2, axis=1)))


def _groups(cell: Cell) -> Row:
    """Test rows that have their group in common, on both sides."""
    of = np.arange(cell["n"]) // _ROWS_A_GROUP
    count = int(of.max()) + 1

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        own = 0.5 * rng.normal(size=(2, len(of)))
        return tuple(rng.normal(size=(2, count))[:, of] + own)

    return _tested(cell, draw, groups=of)


def _series(cell: Cell) -> Row:
    """Test two series with their order, and count how often they are warned of without it."""
    n = cell["n"]

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        steps = rng.normal(size=(2, n + 500))
        return tuple(lfilter([1], [1, -_MEMORY], steps, axis=1)[:, 500:])

    row = _tested(cell, draw, order=True)
    samples = (as_sample(*draw(rng)) for rng in _streams(cell))
    told = sum(any(w.code == "autocorrelated" for w in s.warnings) for s in samples)
    return {**row, "warned": told}


def _power(cell: Cell) -> Row:
    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        x, y = rng.normal(size=(2, cell["n"]))
        return x, 0.3 * x + math.sqrt(1 - 0.3**2) * y

    return _tested(cell, draw)


def _given(cell: Cell) -> Row:
    """Test x and y that have nothing in common but z."""
    draw, p_values = _GIVEN[cell["case"]], []
    for rng in _streams(cell):
        z, e, f = rng.normal(size=(3, cell["n"]))
        test = independence_test(*draw(z, e, f), given=z, seed=int(rng.integers(1 << 31)))
        p_values.append(test.p_value)
    return {"runs": len(p_values), "rejected": sum(p <= _LEVEL for p in p_values)}


def _interval(cell: Cell) -> Row:
    """Count intervals that miss the truth, and those among them that were warned of."""
    task, results = get(cell["case"]), []
    for rng in _streams(cell):
        pair = task.sample(cell["n"], rng)
        results.append(estimate(*pair, seed=int(rng.integers(1 << 31))))
    low, high = np.transpose([r.interval for r in results])
    missed = (task.mi < low) | (task.mi > high)
    return {
        "runs": len(results),
        "rejected": int(missed.sum()),
        "warned": sum(bool(r.warnings) for r, miss in zip(results, missed, strict=True) if miss),
        "alarmed": sum(bool(r.warnings) for r in results),
        "codes": " ".join(sorted(w.code for r in results for w in r.warnings)),
        "truth": task.mi,
        "mean": float(np.mean([r.mi for r in results])),
        "width": float((high - low).mean()),
    }


def _bound(cell: Cell) -> Row:
    """Count lower bounds above the truth; half of the evidence is by overfitted critics."""
    task, above, bounds = get(cell["case"]), 0, []
    training = replace(PAPER, epochs=30, halve_at=())
    keen = Estimator(critic=MLPCritic, start=None, training=training, correct=False)
    for rng in _streams(cell):
        sample = as_sample(*task.sample(cell["n"], rng))
        seed = int(rng.integers(1 << 31))
        fit = replace(keen, seed=seed).cross_fit(sample, folds=2)
        chained = [link.tables(seed) for link in sequential_parts(sample, seed)]
        each = lower_bound(fit.tables), lower_bound(fit.tables, chained)
        bounds.append(max(each))
        above += max(each) > task.mi
    return {
        "runs": len(bounds),
        "rejected": above,
        "truth": task.mi,
        "mean": float(np.mean(bounds)),
    }


def _time(cell: Cell) -> Row:
    """Time the trainings of an estimate, and what is done with their scores."""
    (rng,) = _streams(cell)
    sample = as_sample(*get(cell["case"]).sample(cell["n"], rng))
    estimator = Estimator(seed=cell["seed"])
    start = time.perf_counter()
    fit = estimator.cross_fit(sample)
    (result,) = estimator.readings(fit, [estimator.objective], sample)
    bare = time.perf_counter() - start
    Assessor(sample, cell["seed"])(result, fit)
    whole = time.perf_counter() - start
    return {"runs": 1, "bare_seconds": bare, "ratio": whole / bare}


_RUNS: dict[str, Callable[[Cell], Row]] = {
    "level": _level,
    "copies": _copies,
    "groups": _groups,
    "series": _series,
    "power": _power,
    "given": _given,
    "interval": _interval,
    "outside": _interval,
    "bound": _bound,
    "time": _time,
}


TRUST = Bench(
    "what comes with an estimate is as good as its word", _cells, _run, trust_verdicts, runs=1
)
