"""Figures of results: the pairs with the most information, and methods side by side."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...results import MIResult, Unit, nats_to
from .pairs import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_concentration",
    "plot_methods",
    "plot_pointwise",
    "save_comparison",
    "save_information",
]

_POINTS = 20_000  # of a scatter plot, about
_SKEW = 20.0  # a maximum of more than so many medians makes an axis logarithmic


def plot_pointwise(ax: "Axes", x: Any, y: Any, result: MIResult) -> None:
    """Draw pairs x (n,) and y (n,), each coloured by its log ratio."""
    # Outliers, 1% a side, would leave one colour for all others.
    shown = np.clip(result.pointwise, *np.quantile(result.pointwise, [0.01, 0.99]))
    limit = max(abs(shown.min()), abs(shown.max()), 1e-9)
    points = ax.scatter(x, y, c=shown, cmap="coolwarm", vmin=-limit, vmax=limit, s=4, linewidths=0)
    beyond = np.abs(result.pointwise).max() > limit  # shown in the colours of the ends
    bar = ax.figure.colorbar(points, ax=ax, extend="both" if beyond else "neither")
    bar.set_label("log ratio of the pair (nats)")


def plot_concentration(ax: "Axes", result: MIResult) -> None:
    """Draw the share of the information in the most informative pairs, and mark a half."""
    total = np.append(0.0, np.cumsum(-np.sort(-result.pointwise)))
    ax.set_xlabel(
        "pairs, most informative first (%)\nwhere the curve falls, log ratios are negative"
    )
    ax.set_ylabel("share of the information (%)")
    if not total[-1] > 0:
        ax.text(0.5, 0.5, "there is none", ha="center", transform=ax.transAxes)
        return
    ax.plot(np.linspace(0, 100, len(total)), 100 * total / total[-1], color="tab:blue")
    ax.plot([0, 100], [0, 100], color="0.6", linestyle="--", linewidth=1)
    if result.half is not None:
        at = 100 * result.half
        ax.plot([at, at, 0], [0, 50, 50], color="black", linewidth=0.8)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
        ax.text(at + 3, 46, f"half in {result.half:.0%} of the pairs", va="top", bbox=box)
    ax.set_xlim(0, 100)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)


def save_information(
    path: Path | str,
    result: MIResult,
    pair: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    labels: tuple[str, str] = ("x", "y"),
    kind: str | None = None,
) -> None:
    """Save a figure of which pairs have the information.

    Args:
        path: The file.
        result: Of the pairs.
        pair: x (n,) and y (n,), if each is one column, for a scatter plot coloured by nats.
        labels: Of the axes of x and y.
        kind: png, svg or pdf; by default by the suffix of the path.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10 if pair else 5.2, 4.2), layout="constrained")
    *scatter, curve = figure.subplots(1, 2 if pair else 1, squeeze=False)[0]
    for ax in scatter:
        every = slice(None, None, max(1, result.n // _POINTS))
        x, y = (np.asarray(side)[every] for side in pair or ())
        plot_pointwise(ax, x, y, replace(result, pointwise=result.pointwise[every]))
        ax.set(xlabel=shorten(labels[0]), ylabel=shorten(labels[1]))
        ax.set(xscale=_scale(x), yscale=_scale(y), title="each pair, coloured by its log ratio")
    plot_concentration(curve, result)
    curve.set_title(f"{result.mi:.3f} nats a pair, {result.n:,} pairs ({result.method})")
    figure.savefig(path, dpi=150, format=kind)


def plot_methods(ax: "Axes", results: Sequence[MIResult], unit: Unit = "nats") -> None:
    """Draw the estimates of several methods, with intervals, or thin bars of 2 standard errors."""
    for place, r in enumerate(results):
        low, high = r.interval or (r.mi - 2 * r.standard_error, r.mi + 2 * r.standard_error)
        ends = [[max(0.0, r.mi - low)], [max(0.0, high - r.mi)]]
        ax.errorbar(
            nats_to(unit, r.mi),
            place,
            xerr=[[nats_to(unit, end) for end in side] for side in ends],
            fmt="o",
            capsize=4,
            color="black",
            elinewidth=1 if r.interval is None else 2.5,
        )
    ax.set_yticks(list(range(len(results))), [r.method for r in results])
    ax.invert_yaxis()
    ax.margins(y=0.3)
    bars = "bars: 2 standard errors over pairs"
    if any(r.interval for r in results):
        bars = "thick bars: 95% intervals\nthin bars: 2 standard errors over pairs"
    ax.set_xlabel(f"mutual information ({unit})\n{bars}")
    ax.grid(axis="x", alpha=0.3)


def save_comparison(
    path: Path | str, x: Any, y: Any, results: Sequence[MIResult], labels: tuple[str, str]
) -> None:
    """Save a figure: the pairs coloured by the first result, and the results side by side.

    Args:
        path: The file; its suffix sets the format.
        x: (n,).
        y: (n,).
        results: Of several methods.
        labels: Of the two axes.
    """
    from matplotlib.figure import Figure  # not pyplot, which has global state and needs a display

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    plot_pointwise(left, x, y, results[0])
    title = f"each pair, coloured by its log ratio ({results[0].method})"
    left.set(xlabel=labels[0], ylabel=labels[1], title=title)
    plot_methods(right, results)
    right.set_title(f"{results[0].n} pairs")
    figure.savefig(path, dpi=150)


def _scale(values: NDArray[np.float64]) -> str:
    """Return the scale of an axis: logarithmic if most of the values (n,) would be in a corner."""
    skew = values.min() > 0 and values.max() > _SKEW * np.median(values)
    return "log" if skew else "linear"
