"""Figures. matplotlib is an extra: `pip install 'deminat[plot]'`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .results import MIResult, Unit, nats_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_methods", "plot_pointwise", "save_comparison"]


def plot_pointwise(ax: "Axes", x: Any, y: Any, result: MIResult) -> None:
    """Draw pairs (n,) and (n,), each coloured by its own log ratio: where the information is."""
    shown = _clipped(result.pointwise)
    limit = max(abs(shown.min()), abs(shown.max()), 1e-9)
    points = ax.scatter(x, y, c=shown, cmap="coolwarm", vmin=-limit, vmax=limit, s=4, linewidths=0)
    bar = ax.figure.colorbar(points, ax=ax)
    bar.set_label("log ratio of the pair (nats)")


def plot_methods(ax: "Axes", results: Sequence[MIResult], unit: Unit = "nats") -> None:
    """Draw the estimates of several methods with two standard errors either way."""
    places = range(len(results))
    ax.errorbar(
        [nats_to(unit, r.mi) for r in results],
        places,
        xerr=[2 * nats_to(unit, r.standard_error) for r in results],
        fmt="o",
        capsize=4,
        color="black",
    )
    ax.set_yticks(list(places), [r.method for r in results])
    ax.invert_yaxis()
    ax.margins(y=0.3)
    ax.set_xlabel(f"mutual information ({unit})\nbars: 2 standard errors over pairs")
    ax.grid(axis="x", alpha=0.3)


def save_comparison(
    path: Path | str, x: Any, y: Any, results: Sequence[MIResult], labels: tuple[str, str]
) -> None:
    """Save a figure: the pairs coloured by the first result, and the results side by side.

    Args:
        path: Where to; the suffix chooses the format.
        x: (n,).
        y: (n,).
        results: Of several methods.
        labels: What to write at the two axes.
    """
    # A figure of its own, without pyplot: nothing global is touched and no display is needed.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    plot_pointwise(left, x, y, results[0])
    left.set_xlabel(labels[0])
    left.set_ylabel(labels[1])
    left.set_title(f"each pair, coloured by its log ratio ({results[0].method})")
    plot_methods(right, results)
    right.set_title(f"{results[0].n} pairs")
    figure.savefig(path, dpi=150)


def _clipped(pointwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values with the outer 1% a side brought in, so that colours tell."""
    return np.clip(pointwise, *np.quantile(pointwise, [0.01, 0.99]))
