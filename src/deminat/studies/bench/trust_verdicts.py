"""Verdicts of `bench trust`: how often each promise may be broken."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ...runtime.rowstore import Row
from .runner import grouped, mark

__all__ = ["trust_verdicts"]

_RANGE_GIVEN = (0.03, 0.08)
_RANGE = (0.021, 0.079)  # false alarms of 500 runs at 5% are outside once in 300 times


def trust_verdicts(rows: Sequence[Row]) -> list[str]:
    """Return a line for each promise and case of the rows: does it hold?"""
    promises = grouped(rows, "promise").items()
    return [line for (promise,), own in promises for line in _VERDICTS[promise](own)]


def _shares(rows: Sequence[Row], key: str = "rejected") -> dict[str, tuple[float, int]]:
    """Return the share of runs and their number, by case and n."""
    shares: dict[str, tuple[float, int]] = {}
    for (case, n), own in grouped(rows, "case", "n").items():
        runs = sum(r["runs"] for r in own)
        shares[f"{case}, n={n}"] = sum(r[key] for r in own) / runs, runs
    return shares


def _false_alarms(rows: Sequence[Row]) -> list[str]:
    low, high = _RANGE_GIVEN if rows[0]["promise"] == "given" else _RANGE
    return [
        f"{mark(low <= share <= high)} {rows[0]['promise']}, {name}: {share:.1%} false alarms at "
        f"5% ({low:.1%} to {high:.1%}), {runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]


def _series(rows: Sequence[Row]) -> list[str]:
    ((share, runs),) = _shares(rows).values()
    ((warned, _),) = _shares(rows, "warned").values()
    return [
        f"{mark(warned == 1)} series: {warned:.1%} have a warning without their order (100%), "
        f"{runs} runs",
        f"{mark(share <= 0.10)} series: {share:.1%} false alarms at 5% with their order (at most "
        f"10%), {runs} runs",
    ]


def _power(rows: Sequence[Row]) -> list[str]:
    ((share, runs),) = _shares(rows).values()
    return [f"{mark(share >= 0.95)} power: {share:.1%} found (at least 95%), {runs} runs"]


def _intervals(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"{mark(share <= 0.10)} interval, {name}: covers the truth in {1 - share:.0%} (at least "
        f"90%), {runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]
    alarmed, runs = (sum(r[key] for r in rows) for key in ("alarmed", "runs"))
    codes = Counter(code for r in rows for code in str(r.get("codes", "")).split())
    found = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    return [
        *lines,
        f"{mark(alarmed <= 0.05 * runs)} warnings: {alarmed / runs:.1%} of data in the validated "
        f"range have one (at most 5%), {runs} runs" + (f": {found}" if found else ""),
    ]


def _outside(rows: Sequence[Row]) -> list[str]:
    missed, warned = (sum(r[key] for r in rows) for key in ("rejected", "warned"))
    return [
        f"{mark(warned >= 0.95 * missed)} outside: {warned} of {missed} intervals that miss the "
        f"truth have a warning (at least 95%), {sum(r['runs'] for r in rows)} runs"
    ]


def _bounds(rows: Sequence[Row]) -> list[str]:
    return [
        f"{mark(share <= 0.05)} bound, {name}: {share:.1%} above the truth (at most 5%), "
        f"{runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]


def _time(rows: Sequence[Row]) -> list[str]:
    worst = max(rows, key=lambda r: float(r["ratio"]))
    mean = float(np.mean([r["ratio"] for r in rows]))
    return [
        f"{mark(worst['ratio'] <= 2)} time: {mean:.2f} times the bare estimate (at most 2), "
        f"at most {worst['ratio']:.2f} for {worst['case']}, {len(rows)} runs"
    ]


_VERDICTS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    **dict.fromkeys(("level", "copies", "groups", "given"), _false_alarms),
    "series": _series,
    "power": _power,
    "interval": _intervals,
    "outside": _outside,
    "bound": _bounds,
    "time": _time,
}
