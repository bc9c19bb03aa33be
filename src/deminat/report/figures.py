"""Figures as marks at positions between 0 and 100 per cent of an axis.

The template draws them with SVG lines that stretch and text that does not, so that they fit every
width. A figure without finite numbers is `None`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..results import MIResult, Unit, nats_to

__all__ = ["Axis", "Bar", "Plot", "Whisker", "calibration", "comparison", "learning", "log_ratios"]

_BINS = 40
_OUTER = 0.002  # share of the pairs on each side that the outermost bars of a histogram include
_SHOWN_RISE = 0.01  # nats: the smallest range of losses that a panel shows
_TICKS = 6
_TITLES = {
    None: "training",
    "norms": "norms of the rows",
    "related": "related columns",
    "all": "all columns",
    "pairs": "x and y concatenated",
}


@dataclass(frozen=True)
class Axis:
    """An axis of numbers.

    Args:
        low: Its lower end.
        high: Its upper end.
        label: What it measures, with the unit.
        percent: Whether to write shares as per cent.
    """

    low: float
    high: float
    label: str
    percent: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value, in per cent of the axis."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers along the axis: their positions and texts."""
        step = _round_step((self.high - self.low) / _TICKS)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [i * step for i in range(first, last + 1)]
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        fewer = max(0, digits - 2)  # a share of 0.05 is 5%
        texts = [f"{v:.{fewer}%}" if self.percent else f"{v + 0.0:.{digits}f}" for v in values]
        return [(self.at(v), text) for v, text in zip(values, texts, strict=True)]


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram: its left edge and size in per cent, and if its values are below 0."""

    left: float
    width: float
    height: float
    below: bool


@dataclass(frozen=True)
class Plot:
    """Lines, dots and bars between two axes.

    Args:
        title: What it shows.
        x: The horizontal axis.
        y: The vertical axis.
        lines: Each a list of positions (x, y) in per cent, y counted from the top as SVG does.
        dots: Positions.
        bars: Of a histogram.
        rules: Dashed lines to compare with.
    """

    title: str
    x: Axis
    y: Axis
    lines: tuple[list[tuple[float, float]], ...] = ()
    dots: tuple[tuple[float, float], ...] = ()
    bars: tuple[Bar, ...] = ()
    rules: tuple[list[tuple[float, float]], ...] = ()


@dataclass(frozen=True)
class Whisker:
    """One estimate on the common axis: positions in per cent.

    Args:
        method: Its method.
        text: The estimate with its unit.
        estimate: Its position.
        span: Left end and width of its interval, or of two standard errors a side.
        certain: Whether the span is an interval.
        bound: Position of its lower bound.
    """

    method: str
    text: str
    estimate: float
    span: tuple[float, float]
    certain: bool
    bound: float | None


def comparison(results: Sequence[MIResult], unit: Unit) -> tuple[Axis, list[Whisker]] | None:
    """Return the finite estimates on one axis, with intervals and lower bounds."""
    shown = [r for r in results if math.isfinite(r.mi)]
    if not shown:
        return None
    nats = [v for r in shown for v in (r.mi, *_ends(r), r.lower_bound)]
    marks = [nats_to(unit, v) for v in _finite(nats)]
    axis = _roomy([0.0, *marks], f"mutual information ({unit})")
    return axis, [_whisker(r, axis, unit) for r in shown]


def learning(result: MIResult, unit: Unit) -> list[Plot]:
    """Return a panel for each stage of training: the held-out loss of each fold."""
    stages: dict[str, list[list[float]]] = {}
    for curve in (curve for fold in result.diagnostics.learning or () for curve in fold):
        changes = [nats_to(unit, loss - curve.held_out[0]) for loss in curve.held_out]
        title = _TITLES[curve.stage.kind if curve.stage else None]
        stages.setdefault(title, []).append(changes)
    deepest = min((v for curves in stages.values() for c in curves for v in _finite(c)), default=0)
    reach = max(-deepest, nats_to(unit, _SHOWN_RISE))
    change = Axis(-1.08 * reach, 0.6 * reach, f"change of the held-out loss ({unit})")
    return [_panel(title, curves, change) for title, curves in stages.items()]


def calibration(result: MIResult) -> Plot | None:
    """Return the share of joint pairs, by the probability that the classifier predicts."""
    x = Axis(0, 1, "predicted probability of a joint pair", percent=True)
    y = Axis(0, 1, "observed share of joint pairs", percent=True)
    bins = result.diagnostics.calibration or ()
    places = [(x.at(b.predicted), 100 - y.at(b.observed)) for b in bins]
    if not places:
        return None
    rules = ([(0.0, 100.0), (100.0, 0.0)],)
    return Plot("Calibration", x, y, lines=(places,), dots=tuple(places), rules=rules)


def log_ratios(result: MIResult, unit: Unit) -> Plot | None:
    """Return a histogram of the log ratio of each pair."""
    values = np.array([nats_to(unit, 1.0)]) * result.pointwise
    values = values[np.isfinite(values)]
    if len(values) == 0 or np.ptp(values) == 0:
        return None
    low, high = np.quantile(values, [_OUTER, 1 - _OUTER])
    if low == high:
        low, high = values.min(), values.max()
    shares, edges = np.histogram(np.clip(values, low, high), _BINS, (low, high))
    shares = shares / len(values)
    x = _roomy([float(low), float(high)], f"log ratio of a pair ({unit})")
    y = Axis(0, 1.08 * float(shares.max()), "share of the pairs", percent=True)
    width = round(x.at(edges[1]) - x.at(edges[0]), 2)
    bars = tuple(
        Bar(x.at(a), width, y.at(share), below=a + b < 0)
        for (a, b), share in zip(pairwise(edges.tolist()), shares.tolist(), strict=True)
        if share > 0
    )
    mean = x.at(nats_to(unit, result.mi)) if math.isfinite(result.mi) else math.nan
    rules = ([(mean, 0.0), (mean, 100.0)],) if 0 <= mean <= 100 else ()
    return Plot("Log ratio of each pair", x, y, bars=bars, rules=rules)


def _whisker(result: MIResult, axis: Axis, unit: Unit) -> Whisker:
    low, high = (axis.at(nats_to(unit, v)) for v in _ends(result) or (result.mi, result.mi))
    bounds = [axis.at(nats_to(unit, v)) for v in _finite([result.lower_bound])]
    return Whisker(
        result.method,
        f"{nats_to(unit, result.mi):.3f} {unit}",
        axis.at(nats_to(unit, result.mi)),
        (low, round(high - low, 2)),
        result.interval is not None,
        bounds[0] if bounds else None,
    )


def _ends(result: MIResult) -> list[float]:
    """Return the ends of the interval, or of two standard errors a side, in nats; or nothing."""
    error = 2 * result.standard_error
    ends = result.interval or (result.mi - error, result.mi + error)
    return list(ends) if all(map(math.isfinite, ends)) else []


def _panel(title: str, curves: Sequence[Sequence[float]], change: Axis) -> Plot:
    x = Axis(0, max(4, *(len(c) - 1 for c in curves)), "evaluations on held-out pairs")
    lines = tuple(
        [(x.at(i), round(100 - change.at(v), 2)) for i, v in enumerate(c) if math.isfinite(v)]
        for c in curves
    )
    zero = 100 - change.at(0)
    return Plot(title, x, change, lines=lines, rules=([(0, zero), (100, zero)],))


def _roomy(values: Sequence[float], label: str) -> Axis:
    """Return an axis with a little room beyond its values."""
    low, high = min(values), max(values)
    room = 0.04 * (high - low) or 1.0
    return Axis(low - room, high + room, label)


def _round_step(about: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least `about`."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= about * (1 - 1e-9))


def _finite(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]
