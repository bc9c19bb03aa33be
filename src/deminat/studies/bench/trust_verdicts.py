"""What `bench trust` must find: each promise, with how often it may be broken."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ...runtime.rowstore import Row
from .runner import mark

__all__ = ["trust_verdicts"]

_RANGE_GIVEN = (0.03, 0.08)
_RANGE = (0.021, 0.079)  # of 500 runs at a level of 5%, but for one time in three hundred


def trust_verdicts(rows: Sequence[Row]) -> list[str]:
    """Return a line for each promise and case of the rows: was it kept?"""
    lines = []
    for promise in dict.fromkeys(row["promise"] for row in rows):
        own = [row for row in rows if row["promise"] == promise]
        lines += _VERDICTS[promise](own)
    return lines


def _shares(rows: Sequence[Row], key: str = "rejected") -> dict[str, tuple[float, int]]:
    """Return the share of runs and their number, by case and n."""
    found: dict[str, tuple[float, int]] = {}
    for name in dict.fromkeys(f"{r['case']}, n={r['n']}" for r in rows):
        own = [r for r in rows if f"{r['case']}, n={r['n']}" == name]
        runs = sum(r["runs"] for r in own)
        found[name] = sum(r[key] for r in own) / runs, runs
    return found


def _false_alarms(rows: Sequence[Row]) -> list[str]:
    low, high = _RANGE_GIVEN if rows[0]["promise"] == "given" else _RANGE
    return [
        f"{mark(low <= share <= high)} {rows[0]['promise']}, {name}: {share:.1%} false alarms at "
        f"5% ({low:.1%} to {high:.1%}), {runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]


def _of_series(rows: Sequence[Row]) -> list[str]:
    ((share, runs),) = _shares(rows).values()
    ((warned, _),) = _shares(rows, "warned").values()
    return [
        f"{mark(warned == 1)} series: {warned:.1%} are warned of without their order (100%), "
        f"{runs} runs",
        f"{mark(share <= 0.10)} series: {share:.1%} false alarms at 5% with their order (at most "
        f"10%), {runs} runs",
    ]


def _of_power(rows: Sequence[Row]) -> list[str]:
    ((share, runs),) = _shares(rows).values()
    return [f"{mark(share >= 0.95)} power: {share:.1%} found (at least 95%), {runs} runs"]


def _of_intervals(rows: Sequence[Row]) -> list[str]:
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
        f"{mark(alarmed <= 0.05 * runs)} warnings: {alarmed / runs:.1%} of data that deserve none "
        f"have one (at most 5%), {runs} runs" + (f": {found}" if found else ""),
    ]


def _of_outside(rows: Sequence[Row]) -> list[str]:
    missed, warned = (sum(r[key] for r in rows) for key in ("rejected", "warned"))
    return [
        f"{mark(warned >= 0.95 * missed)} outside: {warned} of {missed} intervals that miss the "
        f"truth are warned of (at least 95%), {sum(r['runs'] for r in rows)} runs"
    ]


def _of_bounds(rows: Sequence[Row]) -> list[str]:
    return [
        f"{mark(share <= 0.05)} bound, {name}: {share:.1%} above the truth (at most 5%), "
        f"{runs} runs"
        for name, (share, runs) in _shares(rows).items()
    ]


def _of_time(rows: Sequence[Row]) -> list[str]:
    worst = max(rows, key=lambda r: float(r["ratio"]))
    mean = float(np.mean([r["ratio"] for r in rows]))
    return [
        f"{mark(worst['ratio'] <= 2)} time: {mean:.2f} times the bare estimate (at most 2), "
        f"at most {worst['ratio']:.2f} for {worst['case']}, {len(rows)} runs"
    ]


_VERDICTS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    **dict.fromkeys(("level", "copies", "groups", "given"), _false_alarms),
    "series": _of_series,
    "power": _of_power,
    "interval": _of_intervals,
    "outside": _of_outside,
    "bound": _of_bounds,
    "time": _of_time,
}
