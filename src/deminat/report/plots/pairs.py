"""Figures of all pairs of columns: a heat map and a network."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["save_heat_map", "save_network", "shorten"]

_LARGEST = 36.0  # inches of a figure, besides names
_LETTER = 0.09  # inches
_SMALLEST = 6.0  # points from one name to the next
_UPRIGHT = 24  # horizontal names around a circle that do not overlap
_LONGEST = 24  # letters of a name


def shorten(name: str) -> str:
    """Return a name that fits beside a figure, with the $ of formulas escaped."""
    text = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return text.replace("$", r"\$")


def save_heat_map(
    path: Path, names: tuple[Sequence[str], Sequence[str]], nats: NDArray[np.float64]
) -> None:
    """Save mutual information (lines, columns) in nats; NaN stays blank.

    Many names are written smaller and, where that would be too small to read, only some of them.
    """
    from matplotlib.figure import Figure

    lines, columns = ([shorten(name) for name in side] for side in names)
    height, width = _extent(len(lines)), _extent(len(columns))
    beside, below = (_LETTER * max(map(len, side)) for side in (lines, columns))
    figure = Figure(figsize=(beside + width + 1.4, below + height + 0.4), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(nats, cmap="viridis", vmin=0, aspect="auto")
    if nats.size <= 400 and width / len(columns) >= 0.3:  # inches that a value takes
        _write_values(ax, nats, min(7.0, 50 * height / len(lines)))
    _name(ax.xaxis, columns, width, rotation=90)
    _name(ax.yaxis, lines, height)
    shrink = min(1.0, 5 / height)
    shape: dict[str, Any] = {"shrink": shrink, "aspect": 3.5 * shrink * height, "pad": 0.15 / width}
    figure.colorbar(image, ax=ax, anchor=(0, 1), label="mutual information (nats)", **shape)
    figure.savefig(path, dpi=150)


def _extent(count: int) -> float:
    """Return the inches of `count` lines, which are narrower if they are many."""
    each = 0.45 if count <= 20 else max(0.18, 9 / count)
    return min(_LARGEST, max(2.2, each * count))


def _write_values(ax: "Axes", nats: NDArray[np.float64], size: float) -> None:
    middle = np.nanmax(nats, initial=0.0) / 2
    for (i, j), value in np.ndenumerate(nats):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            text = f"{value + 0.0:.2f}".lstrip("0") or "0"
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=size)


def _name(axis: "Axis", names: Sequence[str], extent: float, **how: Any) -> None:
    """Write names along an axis of `extent` inches, as many as can be read."""
    points = 72 * extent / len(names)
    every = math.ceil(_SMALLEST / points)
    places = range(0, len(names), every)
    size = min(10.0, 0.75 * every * points)
    axis.set_ticks(places, [names[place] for place in places], fontsize=size, **how)


def save_network(
    path: Path, names: Sequence[str], edges: Sequence[tuple[str, str, float]], title: str
) -> None:
    """Save columns around a circle, with a line for each edge; columns without one are left out."""
    from matplotlib.figure import Figure

    ends = {end for *pair, _ in edges for end in pair}
    joined = [name for name in names if name in ends]
    size = min(_LARGEST, max(7.0, 4.5 + 0.17 * len(joined) / np.pi))
    figure = Figure(figsize=(size, size), layout="constrained")
    ax = figure.subplots()
    angles = np.linspace(0, 2 * np.pi, len(joined), endpoint=False)
    places = dict(zip(joined, np.column_stack([np.cos(angles), np.sin(angles)]), strict=True))
    _draw_edges(ax, places, edges)
    _draw_nodes(ax, places, min(10.0, 130 * size / max(1, len(joined))))
    if not edges:
        ax.text(0, 0, "there are none", ha="center")
    alone = len(names) - len(joined)
    figure.suptitle(title + f"\n{alone} of {len(names)} columns are in none" * (alone > 0))
    ax.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
    ax.set_axis_off()
    figure.savefig(path, dpi=150)


def _draw_edges(
    ax: "Axes", places: Mapping[str, Any], edges: Sequence[tuple[str, str, float]]
) -> None:
    """Draw a line for each pair, the wider the more nats."""
    most = max((nats for *_, nats in edges), default=1.0)
    for a, b, nats in sorted(edges, key=lambda edge: edge[2]):
        share = max(0.0, nats / most)
        ax.plot(*zip(places[a], places[b], strict=True), color="tab:blue", zorder=1)
        ax.lines[-1].set(linewidth=0.5 + 5 * share, alpha=0.2 + 0.7 * share)


def _draw_nodes(ax: "Axes", places: Mapping[str, Any], size: float) -> None:
    """Draw names around a circle, along its radii if they are too many to be horizontal."""
    for name, (x, y) in places.items():
        ax.plot(x, y, "o", color="black", markersize=min(6.0, 0.6 * size), zorder=2)
        side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
        turn = 0.0
        if len(places) > _UPRIGHT:
            turn = math.degrees(math.atan2(y, x))
            side = "left" if abs(turn) <= 90 else "right"
            turn = turn if abs(turn) <= 90 else turn - 180
        how: dict[str, Any] = {"ha": side, "va": "center", "rotation": turn}
        how["rotation_mode"] = "anchor" if turn else "default"
        ax.text(1.06 * x, 1.06 * y, shorten(name), fontsize=size, **how)
