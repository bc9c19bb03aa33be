"""Do tests, intervals and bounds hold? Error rates, power, coverage, and their cost in time.

Each kind of check is a `promise`. A cell is a batch of runs, each with data and seeds of its own,
and its row counts in how many of them the promise was broken.

- `level`: independent x and y with eight kinds of marginals, and labels, tested at 5%;
- `columns`: the same with three columns a side, and 99 permutations;
- `copies` and `groups`: one column, with every row twice, and with twenty rows a group;
- `series`: two independent autoregressions, with and without their order;
- `power`: a correlation of .3;
- `interval`: 95% intervals of the default recipe that miss the truth, and warnings that are not
  needed, within the validated range; `outside` it: intervals that miss the truth without a warning;
- `bound`: lower bounds above the truth, by quick critics and by critics that memorised their
  training rows;
- `time`: an estimate with its interval, test and bound, relative to its trainings alone.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from ...api import estimate
from ...critics.networks import MLPCritic
from ...data.sample import as_sample
from ...estimators.crossfit import CrossFitOptions
from ...estimators.neural import Estimator
from ...inference import Assessor, independence_test
from ...inference.lower_bound import lower_bound
from ...inference.sequential import sequential_parts
from ...runtime.rowstore import Cell, Row
from ...tasks import get
from ...training.config import PAPER
from .runner import Bench, grouped, mark

__all__ = ["BENCHES"]

Array = NDArray[np.float64]

_LEVEL = 0.05
_RANGE = (0.021, 0.079)  # false alarms of 500 runs at 5% are outside once in 300 times
_RANGES = {"level": (0.035, 0.065)}
_GROUP_SIZE = 20  # rows
_AUTOREGRESSION = 0.95
_SEVERAL = 3  # columns a side
_FEW_PERMUTATIONS = 99  # the level is the same for more

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
_LABELLED: dict[str, Callable[[np.random.Generator, int], tuple[Any, Any]]] = {
    "labels": lambda rng, n: (rng.choice(list("abcd"), n), rng.choice(list("uvw"), n)),
    "label-number": lambda rng, n: (rng.choice(list("abcd"), n), rng.normal(size=n)),
}
_FAMILIES = [
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
]
_COVERED = [
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
]
_OUTSIDE = (
    ("spiral-normal_cdf-multinormal-sparse-5-5-2-2.0", 1_000),
    ("spiral-multinormal-sparse-25-25-2-2.0", 1_000),
    ("1v1-additive-0.1", 500),
    ("asinh-student-identity-5-5-2", 500),
    ("multinormal-dense-50-50-0.5", 1_000),
    ("mixture-10d-5nats-a-component", 2_000),
)


def _cells(seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of each promise; one seed has enough runs for a verdict."""
    return [
        {"promise": name, "case": case, "n": n, "seed": seed, "batch": batch}
        for seed in seeds
        for name, promise in _PROMISES.items()
        for case, n in promise.cases
        for batch in range(promise.batches)
    ]


def _run(cell: Cell) -> Row:
    """Return the number of runs, and of those that broke the promise or had a warning."""
    return _PROMISES[cell["promise"]].run(cell)


def _verdicts(rows: Sequence[Row]) -> list[str]:
    """Return a line for each promise and case of the rows: does it hold?"""
    promises = grouped(rows, "promise").items()
    return [line for (name,), own in promises for line in _PROMISES[name].verdict(own)]


def _streams(cell: Cell) -> list[np.random.Generator]:
    """Return a random generator for each run of a cell."""
    entropy = [cell["seed"], cell["n"], *cell["case"].encode(), *cell["promise"].encode()]
    root = np.random.SeedSequence([*entropy, cell["batch"]])
    return [np.random.default_rng(child) for child in root.spawn(_PROMISES[cell["promise"]].runs)]


def _test(
    cell: Cell,
    draw: Callable[[np.random.Generator], tuple[Any, Any]],
    groups: Any = None,
    order: Any = None,
) -> Row:
    """Test pairs of each run for independence; count rejections and warnings."""
    results = [
        independence_test(*draw(rng), groups=groups, order=order, seed=_seed(rng))
        for rng in _streams(cell)
    ]
    rejected = sum(r.p_value <= _LEVEL for r in results)
    return {"runs": len(results), "rejected": rejected, "warned": _autocorrelated(results)}


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(1 << 31))


def _autocorrelated(warned: Iterable[Any]) -> int:
    """Return how many results or samples warn of autocorrelated rows."""
    return sum(any(w.code == "autocorrelated" for w in one.warnings) for one in warned)


def _level(cell: Cell) -> Row:
    case, n = cell["case"], cell["n"]
    if case in _LABELLED:
        return _test(cell, lambda rng: _LABELLED[case](rng, n))
    draw = _MARGINALS[case]
    return _test(cell, lambda rng: (draw(rng, n), draw(rng, n)))


def _columns(cell: Cell) -> Row:
    """Test three columns a side."""
    draw, shape, rejected = _MARGINALS[cell["case"]], (cell["n"], _SEVERAL), []
    for rng in _streams(cell):
        x, y = (draw(rng, math.prod(shape)).reshape(shape) for _ in "xy")
        test = independence_test(x, y, permutations=_FEW_PERMUTATIONS, seed=_seed(rng))
        rejected.append(test.p_value <= _LEVEL)
    return {"runs": len(rejected), "rejected": sum(rejected)}


def _copies(cell: Cell) -> Row:
    half = cell["n"] // 2
    return _test(cell, lambda rng: tuple(np.repeat(rng.normal(size=(2, half)), 2, axis=1)))


def _groups(cell: Cell) -> Row:
    """Test rows whose x and y both depend on their group."""
    groups = np.arange(cell["n"]) // _GROUP_SIZE
    count = int(groups.max()) + 1

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        own = 0.5 * rng.normal(size=(2, len(groups)))
        return tuple(rng.normal(size=(2, count))[:, groups] + own)

    return _test(cell, draw, groups=groups)


def _series(cell: Cell) -> Row:
    """Test two series with their order, and count warnings without it."""
    n = cell["n"]

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        steps = rng.normal(size=(2, n + 500))
        return tuple(lfilter([1], [1, -_AUTOREGRESSION], steps, axis=1)[:, 500:])

    row = _test(cell, draw, order=True)
    samples = (as_sample(*draw(rng)) for rng in _streams(cell))
    return {**row, "warned": _autocorrelated(samples)}


def _power(cell: Cell) -> Row:
    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        x, y = rng.normal(size=(2, cell["n"]))
        return x, 0.3 * x + math.sqrt(1 - 0.3**2) * y

    return _test(cell, draw)


def _interval(cell: Cell) -> Row:
    """Count intervals that miss the truth, and those among them with a warning."""
    task = get(cell["case"])
    results = [estimate(*task.sample(cell["n"], rng), seed=_seed(rng)) for rng in _streams(cell)]
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
    """Count lower bounds above the truth, with overfitted critics and with quick ones."""
    task, bounds = get(cell["case"]), []
    training = replace(PAPER, epochs=30, halve_at=())
    overfitted = Estimator(critic=MLPCritic, baseline=None, training=training, correct=False)
    for rng in _streams(cell):
        sample = as_sample(*task.sample(cell["n"], rng))
        seed = _seed(rng)
        fit = replace(overfitted, seed=seed).cross_fit(sample, CrossFitOptions(folds=2))
        sequential = [part.tables(seed) for part in sequential_parts(sample, seed)]
        bounds.append(max(lower_bound(fit.tables), lower_bound(fit.tables, sequential)))
    above, mean = sum(bound > task.mi for bound in bounds), float(np.mean(bounds))
    return {"runs": len(bounds), "rejected": above, "truth": task.mi, "mean": mean}


def _time(cell: Cell) -> Row:
    """Time the trainings of an estimate, and the whole of it."""
    (rng,) = _streams(cell)
    sample = as_sample(*get(cell["case"]).sample(cell["n"], rng))
    estimator = Estimator(seed=cell["seed"])
    start = time.perf_counter()
    fit = estimator.cross_fit(sample, CrossFitOptions())
    result = estimator.reading(fit, sample)
    bare = time.perf_counter() - start
    Assessor(sample, cell["seed"])(result, fit, estimator)
    whole = time.perf_counter() - start
    return {"runs": 1, "bare_seconds": bare, "ratio": whole / bare}


def _shares(rows: Sequence[Row], key: str = "rejected") -> dict[str, tuple[float, int]]:
    """Return the share of runs and their number, by case and n."""
    shares: dict[str, tuple[float, int]] = {}
    for (case, n), own in grouped(rows, "case", "n").items():
        runs = sum(r["runs"] for r in own)
        shares[f"{case}, n={n}"] = sum(r[key] for r in own) / runs, runs
    return shares


def _false_alarms(rows: Sequence[Row]) -> list[str]:
    low, high = _RANGES.get(rows[0]["promise"], _RANGE)
    return [
        f"{mark(low <= share <= high)} {rows[0]['promise']}, {name}: {share:.1%} false alarms at "
        f"5% ({low:.1%} to {high:.1%}), {runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]


def _series_verdict(rows: Sequence[Row]) -> list[str]:
    ((share, runs),) = _shares(rows).values()
    ((warned, _),) = _shares(rows, "warned").values()
    return [
        f"{mark(warned == 1)} series: {warned:.1%} have a warning without their order (100%), "
        f"{runs} runs",
        f"{mark(share <= 0.10)} series: {share:.1%} false alarms at 5% with their order (at most "
        f"10%), {runs} runs",
    ]


def _power_verdict(rows: Sequence[Row]) -> list[str]:
    ((share, runs),) = _shares(rows).values()
    return [f"{mark(share >= 0.95)} power: {share:.1%} found (at least 95%), {runs} runs"]


def _interval_verdict(rows: Sequence[Row]) -> list[str]:
    covered = [
        f"{mark(share <= 0.10)} interval, {name}: covers the truth in {1 - share:.0%} (at least "
        f"90%), {runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]
    alarmed, runs = (sum(r[key] for r in rows) for key in ("alarmed", "runs"))
    codes = Counter(code for r in rows for code in str(r.get("codes", "")).split())
    found = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    return [
        *covered,
        f"{mark(alarmed <= 0.05 * runs)} warnings: {alarmed / runs:.1%} of data in the validated "
        f"range have one (at most 5%), {runs} runs" + (f": {found}" if found else ""),
    ]


def _outside_verdict(rows: Sequence[Row]) -> list[str]:
    missed, warned = (sum(r[key] for r in rows) for key in ("rejected", "warned"))
    return [
        f"{mark(warned >= 0.95 * missed)} outside: {warned} of {missed} intervals that miss the "
        f"truth have a warning (at least 95%), {sum(r['runs'] for r in rows)} runs"
    ]


def _bound_verdict(rows: Sequence[Row]) -> list[str]:
    return [
        f"{mark(share <= 0.05)} bound, {name}: {share:.1%} above the truth (at most 5%), "
        f"{runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]


def _time_verdict(rows: Sequence[Row]) -> list[str]:
    worst = max(rows, key=lambda r: float(r["ratio"]))
    mean = float(np.mean([r["ratio"] for r in rows]))
    return [
        f"{mark(worst['ratio'] <= 2)} time: {mean:.2f} times the bare estimate (at most 2), "
        f"at most {worst['ratio']:.2f} for {worst['case']}, {len(rows)} runs"
    ]


@dataclass(frozen=True)
class _Promise:
    """What is tested: how, on which cases and sizes, in how many batches of how many runs."""

    run: Callable[[Cell], Row]
    verdict: Callable[[Sequence[Row]], list[str]]
    cases: Sequence[tuple[str, int]]
    batches: int
    runs: int


_BOTH_SIZES = [("normal", 200), ("normal", 2_000)]
_MARGINAL_CASES = [
    *((kind, n) for kind in _MARGINALS for n in (50, 200, 2_000)),
    *((kind, n) for kind in _LABELLED for n in (50, 500)),
]
_COLUMNS_CASES = [(kind, n) for kind in _MARGINALS for n in (50, 200, 2_000)]
_PROMISES = {
    "level": _Promise(_level, _false_alarms, _MARGINAL_CASES, 20, 50),
    "columns": _Promise(_columns, _false_alarms, _COLUMNS_CASES, 10, 50),
    "copies": _Promise(_copies, _false_alarms, _BOTH_SIZES, 10, 50),
    "groups": _Promise(_groups, _false_alarms, _BOTH_SIZES, 10, 50),
    "series": _Promise(_series, _series_verdict, [("autoregression", 2_000)], 10, 50),
    "power": _Promise(_power, _power_verdict, [("normal", 1_000)], 4, 50),
    "interval": _Promise(_interval, _interval_verdict, [(f, 5_000) for f in _COVERED], 20, 3),
    "outside": _Promise(_interval, _outside_verdict, _OUTSIDE, 4, 5),
    "bound": _Promise(_bound, _bound_verdict, [(f, 1_000) for f in _FAMILIES], 8, 25),
    "time": _Promise(_time, _time_verdict, [(f, 5_000) for f in _FAMILIES], 1, 1),
}
BENCHES = {"trust": Bench("tests, intervals and bounds hold", _cells, _run, _verdicts, runs=1)}
