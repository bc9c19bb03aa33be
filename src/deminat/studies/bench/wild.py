r"""Is the default recipe right off the public benchmark? The tasks of `deminat.tasks.wild`.

Families are divided into two halves of similar difficulty. `choose` may be looked at while a recipe
is chosen; `report` may not. Seeds are divided as well: those below 100 choose, those from 100 on
report. So a recipe is developed by

    deminat bench wild --only half=choose --only preset=auto

and reported by `deminat bench wild --first 100 --runs 3`, of which the half `report` is new to it
in both ways.

Five families, `clusters`, `embedding-wave`, `images`, `t-copula` and `answers`, reported once. What
they showed led to changes of the recipe, so they choose now, and ten new families report in their
place.

Every row has the truth, and the mean of the true log ratio on the same pairs, `oracle`. The
standard error of that mean, `oracle_error`, is the sampling noise of these pairs. So estimates may
exceed the truth by 5% and three of these, and the width of an interval is compared with 3.92 of
these. For comparison a row also has the estimates of KSG, where both sides have at most ten columns
of numbers and n is at most 10,000, and of scikit-learn, where both have one. scikit-learn is told
which columns are labels; deminat is not, but where they are declared as categories.
"""

import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...api import estimate
from ...errors import DataError, TrainingError, printable
from ...runtime.rowstore import Cell, Row
from ...tasks.wild import WildCase, wild_cases
from .runner import Bench, grouped, mark, measured

__all__ = ["BENCHES", "HALVES", "judge_case", "median_cpu", "refusals", "without_marks"]

HALVES = {
    **dict.fromkeys(
        (
            "student",
            "mixture",
            "variance",
            "parity",
            "embedding-tanh",
            "copies",
            "edges",
            "zeros",
            "labels",
            "weak",
            "spiral",
            "clusters",
            "embedding-wave",
            "images",
            "t-copula",
            "answers",
        ),
        "choose",
    ),
    **dict.fromkeys(
        (
            "scale-mixture",
            "product",
            "bent-copies",
            "curves",
            "rounded",
            "label-number",
            "wiggly",
            "angles",
            "tuning",
            "bars",
            "gains",
            "branches",
            "steps",
            "logistic",
            "frailty",
            "profiles",
        ),
        "report",
    ),
}
_PRESETS = ("auto", "quick")  # the first is judged, others are shown beside it

# Goals for the default recipe, not figures that it has reached.
_MEAN, _WORST = 0.02, 0.08  # error by max(1, truth): mean over rows, and of the worst cell
_COVERED, _LEAST_ROWS = 0.90, 1_000  # share of intervals that hold the truth, from this n on
_WIDTH, _CPU = 2.5, 6.0  # widths of the oracle's interval, seconds; medians
_GOOD, _ALARMS = 0.05, 0.02  # share, or nats, off a perfect critic; share of false alarms
_KSG_COLUMNS, _KSG_ROWS = 10, 10_000


def _cells(seeds: Sequence[int]) -> list[Cell]:
    return [
        {
            "family": case.family,
            "half": HALVES[case.family],
            "task": name,
            "n": case.n,
            "seed": seed,
            "preset": preset,
        }
        for preset in _PRESETS
        for seed in seeds
        for name, case in wild_cases().items()
    ]


def _run(cell: Cell) -> Row:
    return judge_case(wild_cases()[cell["task"]], cell)


def judge_case(case: WildCase, cell: Cell) -> Row:
    """Return the truth, the estimate of the oracle, those to be judged, and what they cost.

    Args:
        case: What to draw pairs from.
        cell: With `n`, `seed` and `preset`.
    """
    task = case.task
    # By the name of the task, not of the case: all codings of labels get the same pairs.
    entropy = [cell["seed"], cell["n"], zlib.crc32(task.name.encode())]
    x, y = task.sample(cell["n"], np.random.default_rng(entropy))
    ratios = task.log_ratio(x, y)
    sides = case.shown(x, y)
    return {
        "truth": task.mi,
        "oracle": float(ratios.mean()),
        "oracle_error": float(ratios.std(ddof=1) / np.sqrt(len(ratios))),
        **_estimate(sides, cell),
        "ksg": _ksg(*sides),
        "sklearn": _sklearn(*sides, bool(task.labels_x), bool(task.labels_y)),
    }


def _estimate(sides: tuple[Any, Any], cell: Cell) -> Row:
    """Return the estimate by a preset; `None` where the data are refused, with the message."""
    start = time.process_time()
    try:
        result = estimate(*sides, preset=cell["preset"], seed=cell["seed"], n_jobs=1)
    except (DataError, TrainingError) as error:
        nothing = dict.fromkeys(("estimate", "standard_error", "low", "high"))
        return {**nothing, "warnings": printable(error, 200), "cpu": None, "recipe": None}
    cpu = time.process_time() - start
    low, high = result.interval or (None, None)
    return {
        **measured(result),
        "low": low,
        "high": high,
        "warnings": " ".join(dict.fromkeys(w.code for w in result.warnings)),
        "cpu": round(cpu, 2),
        "recipe": result.recipe,
    }


def _columns(side: Any) -> int | None:
    """Return how many columns of numbers a side has; `None` if it is something else."""
    if not isinstance(side, np.ndarray) or side.dtype.kind not in "iuf" or side.ndim > 2:
        return None
    return 1 if side.ndim == 1 else side.shape[1]


def _ksg(x: Any, y: Any) -> float | None:
    columns = _columns(x), _columns(y)
    if None in columns or max(c or 0 for c in columns) > _KSG_COLUMNS or len(x) > _KSG_ROWS:
        return None
    return estimate(x, y, method="ksg").mi


def _sklearn(x: Any, y: Any, label_x: bool, label_y: bool) -> float | None:
    """Return scikit-learn's estimate for one column with another."""
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    if (_columns(x), _columns(y)) != (1, 1):
        return None
    x, y = _coded(x) if label_x else x.reshape(-1, 1), _coded(y)[:, 0] if label_y else y.ravel()
    information = mutual_info_classif if label_y else mutual_info_regression
    return float(information(x, y, discrete_features=label_x, random_state=0)[0])


def _coded(labels: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(labels, return_inverse=True)[1].reshape(-1, 1)


def _verdict(rows: Sequence[Row]) -> list[str]:
    """Return lines on the default recipe with marks, then lines on other presets without."""
    lines = []
    for (preset,), own in grouped(rows, "preset").items():
        found = _judge(own)
        lines += found if preset == _PRESETS[0] else without_marks(found, preset)
    return lines


def without_marks(lines: Sequence[str], preset: str) -> list[str]:
    """Return lines of a preset that nothing is claimed of."""
    return [f"     {preset}, {line[5:]}" for line in lines]


def _judge(rows: Sequence[Row]) -> list[str]:
    estimated = [row for row in rows if row.get("estimate") is not None]
    lines = [refusals(rows)]
    if not estimated:
        return lines
    halves = {half: own for (half,), own in grouped(estimated, "half").items()}
    if len(halves) > 1:
        halves["both halves"] = estimated
    lines += [_mean_error(half, own) for half, own in halves.items()]
    lines += [_worst(estimated), _overshoot(estimated), *_coverage(estimated)]
    return [*lines, *_width(estimated), *_false_alarms(estimated), median_cpu(estimated)]


def refusals(rows: Sequence[Row]) -> str:
    """Return a line on the rows that have no estimate."""
    refused = [row["task"] for row in rows if row.get("estimate") is None]
    names = ", ".join(dict.fromkeys(refused))
    return (
        f"{mark(not refused)} refused: {len(refused)} of {len(rows)} rows have no estimate (none)"
        + (f": {names}" if refused else "")
    )


def _relative(row: Row, key: str = "estimate") -> float:
    return float((row[key] - row["truth"]) / max(1.0, row["truth"]))


def _mean_absolute(rows: Sequence[Row], key: str = "estimate") -> float:
    return float(np.mean([abs(_relative(row, key)) for row in rows]))


def _mean_error(half: str, rows: Sequence[Row]) -> str:
    mean, perfect = _mean_absolute(rows), _mean_absolute(rows, "oracle")
    line = (
        f"{mark(mean <= _MEAN)} {half}: mean of |error| / max(1, truth) {mean:.4f} (at most "
        f"{_MEAN}), a perfect critic {perfect:.4f}, {len(rows)} rows"
    )
    for key in ("ksg", "sklearn"):
        both = [row for row in rows if row.get(key) is not None]
        if both:
            own, other = _mean_absolute(both), _mean_absolute(both, key)
            line += f"; {own:.4f} where {key} has {other:.4f}, {len(both)} rows"
    return line


def _worst(rows: Sequence[Row]) -> str:
    cells = grouped(rows, "task", "n")
    errors = {key: float(np.mean([_relative(r) for r in own])) for key, own in cells.items()}
    worst = max(errors, key=lambda key: abs(errors[key]))
    mean = float(np.mean([row["estimate"] for row in cells[worst]]))
    return (
        f"{mark(abs(errors[worst]) <= _WORST)} worst cell: {worst[0]} at n={worst[1]}, {mean:.3f} "
        f"for {cells[worst][0]['truth']:.3f} nats, {errors[worst]:+.3f} of max(1, truth) (at most "
        f"{_WORST}), {len(cells)} cells"
    )


def _overshoot(rows: Sequence[Row]) -> str:
    above = [row["estimate"] - 1.05 * row["truth"] - 3 * row["oracle_error"] for row in rows]
    highest = rows[int(np.argmax(above))]
    return (
        f"{mark(max(above) <= 0)} overshoot: {sum(a > 0 for a in above)} of {len(rows)} rows are "
        f"above the truth by more than 5% and 3 s.e. (none); highest {highest['task']}, seed "
        f"{highest['seed']}, {highest['estimate']:.3f} for {highest['truth']:.3f} nats"
    )


def _coverage(rows: Sequence[Row]) -> list[str]:
    """Return a line for each family, and for all, on intervals that hold the truth."""
    judged = [r for r in rows if r["n"] >= _LEAST_ROWS and r.get("low") is not None]
    families = {family: own for (family,), own in grouped(judged, "family").items()}
    if len(families) > 1:
        families["all families"] = judged
    lines = []
    for family, own in families.items():
        missed = [r["task"] for r in own if not r["low"] <= r["truth"] <= r["high"]]
        share = 1 - len(missed) / len(own)
        names = f", missed {', '.join(dict.fromkeys(missed))}" if missed else ""
        lines.append(
            f"{mark(share >= _COVERED)} interval, {family}: holds the truth in {share:.0%} (at "
            f"least {_COVERED:.0%}), {len(own)} rows" + (names if own is not judged else "")
        )
    return lines


def _width(rows: Sequence[Row]) -> list[str]:
    """Return a line on the widths of intervals, of rows whose log ratio is not constant."""
    ratios = [
        (r["high"] - r["low"]) / (3.92 * r["oracle_error"])
        for r in rows
        if r.get("low") is not None and r["oracle_error"] > 0
    ]
    if not ratios:
        return []
    median = float(np.median(ratios))
    return [
        f"{mark(median <= _WIDTH)} width: in the median intervals have {median:.2f} times the "
        f"width of the oracle's (at most {_WIDTH:g}), {len(ratios)} rows"
    ]


def _false_alarms(rows: Sequence[Row]) -> list[str]:
    """Return a line on warnings about the normaliser of critics that are good."""
    good = [r for r in rows if abs(r["estimate"] - r["oracle"]) <= max(_GOOD * r["truth"], _GOOD)]
    if not good:
        return []
    alarmed = [r["task"] for r in good if "normaliser" in (r.get("warnings") or "").split()]
    share = len(alarmed) / len(good)
    names = f", in {', '.join(dict.fromkeys(alarmed))}" if alarmed else ""
    return [
        f"{mark(share <= _ALARMS)} false alarms: {share:.1%} of estimates within {_GOOD:.0%} or "
        f"{_GOOD} nats of the oracle have the warning `normaliser` (at most {_ALARMS:.0%}), "
        f"{len(good)} rows{names}"
    ]


def median_cpu(rows: Sequence[Row]) -> str:
    """Return a line on the time of an estimate."""
    median = float(np.median([row["cpu"] for row in rows]))
    slowest = max(rows, key=lambda row: float(row["cpu"]))
    return (
        f"{mark(median <= _CPU)} time: {median:.1f} s of CPU in the median (at most {_CPU:.0f}), "
        f"slowest {slowest['task']} {slowest['cpu']:.1f} s, {len(rows)} rows"
    )


BENCHES = {
    "wild": Bench(
        "the default recipe is accurate off the public benchmark, without overestimates",
        _cells,
        _run,
        _verdict,
        runs=1,
    )
}
