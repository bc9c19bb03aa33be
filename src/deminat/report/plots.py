"""Figures of results, of benchmarks and of all pairs of columns.

matplotlib is an extra: `pip install 'deminat[plot]'`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..results import MIResult, Unit, nats_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "plot_concentration",
    "plot_errors",
    "plot_methods",
    "plot_pointwise",
    "plot_shares",
    "save_comparison",
    "save_errors",
    "save_heat_map",
    "save_information",
    "save_network",
    "save_shares",
]

Rows = Sequence[Mapping[str, Any]]

_POINTS = 20_000  # of a scatter plot, about
_SKEW = 20.0  # a maximum of more than so many medians makes an axis logarithmic
_LARGEST = 36.0  # inches of a figure of pairs of columns, besides names
_LETTER = 0.09  # inches
_SMALLEST = 6.0  # points from one name to the next
_UPRIGHT = 24  # horizontal names around a circle that do not overlap
_LONGEST = 24  # letters of a name


def _figure(width: float, height: float) -> "Figure":
    """Return a figure of some inches; pyplot would have global state and need a display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


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
    across = "pairs, most informative first (%)\nwhere the curve falls, log ratios are negative"
    ax.set(xlabel=across, ylabel="share of the information (%)")
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
    ax.set(xlim=(0, 100), ylim=(0, None))
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
    figure = _figure(10 if pair else 5.2, 4.2)
    *scatter, curve = figure.subplots(1, 2 if pair else 1, squeeze=False)[0]
    for ax in scatter:
        every = slice(None, None, max(1, result.n // _POINTS))
        x, y = (np.asarray(side)[every] for side in pair or ())
        plot_pointwise(ax, x, y, replace(result, pointwise=result.pointwise[every]))
        ax.set(xlabel=_shorten(labels[0]), ylabel=_shorten(labels[1]))
        ax.set(xscale=_scale(x), yscale=_scale(y), title="each pair, coloured by its log ratio")
    plot_concentration(curve, result)
    curve.set_title(f"{result.mi:.3f} nats a pair, {result.n:,} pairs ({result.method})")
    figure.savefig(path, dpi=150, format=kind)


def plot_methods(ax: "Axes", results: Sequence[MIResult], unit: Unit = "nats") -> None:
    """Draw the estimates of several methods, with intervals, or thin bars of 2 standard errors."""
    for place, r in enumerate(results):
        ends = r.interval or (r.mi - 2 * r.standard_error, r.mi + 2 * r.standard_error)
        mi, low, high = (nats_to(unit, nats) for nats in (r.mi, *ends))
        reach = [[max(0.0, mi - low)], [max(0.0, high - mi)]]
        width = 1 if r.interval is None else 2.5
        ax.errorbar(mi, place, xerr=reach, fmt="o", capsize=4, color="black", elinewidth=width)
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
    figure = _figure(10, 4.2)
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


def plot_errors(ax: "Axes", rows: Rows, tasks: Sequence[str]) -> None:
    """Draw estimate - truth of each row by task, the oracle's in grey.

    Args:
        ax: The axes.
        rows: With `task`, `preset`, `estimate`, `truth` and `oracle`.
        tasks: From top to bottom.
    """
    place = {task: i for i, task in enumerate(tasks)}
    ax.axvline(0, color="black", linewidth=0.8)
    errors, at = [r["oracle"] - r["truth"] for r in rows], [place[r["task"]] for r in rows]
    ax.scatter(errors, at, marker="|", color="0.6", label="true log ratio of the same pairs")
    for preset, colour, shift in (("auto", "tab:blue", -0.15), ("paper", "tab:orange", 0.15)):
        own = [r for r in rows if r["preset"] == preset]
        errors = [r["estimate"] - r["truth"] for r in own]
        heights = [place[r["task"]] + shift for r in own]
        if own:
            ax.scatter(errors, heights, s=12, color=colour, label=f"preset {preset}")
    ax.set_yticks(range(len(tasks)), tasks)
    ax.set_ylim(len(tasks) - 0.5, -0.5)
    ax.grid(alpha=0.3)


def save_errors(path: Path | str, rows: Rows) -> None:
    """Save a figure of the error of every row by task, a panel for each number of pairs."""
    tasks = list(dict.fromkeys(r["task"] for r in rows))
    sizes = sorted({r["n"] for r in rows})
    figure = _figure(4 + 3.6 * len(sizes), 1.8 + 0.2 * len(tasks))
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    farthest = max(abs(r["estimate"] - r["truth"]) for r in rows)
    for ax, n in zip(panels, sizes, strict=True):
        plot_errors(ax, [r for r in rows if r["n"] == n], tasks)
        _magnify(ax, farthest)
        ax.set_title(f"{n:,} pairs")
    figure.supxlabel("estimate - truth (nats), logarithmic beyond 0.1")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    figure.savefig(path, dpi=150)


def _magnify(ax: "Axes", farthest: float) -> None:
    """Make the axis linear up to 0.1 and logarithmic beyond, so that an outlier hides no others."""
    ax.set_xscale("symlog", linthresh=0.1)
    end = 1.2 * max(farthest, 0.1)
    ticks = [t for t in (0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0) if t <= end]
    signed = [*(-t for t in ticks[::-1]), 0.0, *ticks]
    ax.set_xticks(signed, [f"{t:g}" for t in signed], fontsize="small")
    ax.set_xlim(-end, end)
    ax.minorticks_off()


def plot_shares(ax: "Axes", rows: Rows) -> None:
    """Draw estimate / truth against the truth, with a colour for each kind of task.

    Where the truth is 0, the estimates themselves are drawn, side by side.

    Args:
        ax: The axes.
        rows: With `task`, `n`, `estimate` and `truth`.
    """
    no_truth = all(r["truth"] == 0 for r in rows)
    ax.axhline(0 if no_truth else 1, color="black", linewidth=0.8)
    labels = _labels(rows)
    middle = (len(set(labels)) - 1) / 2
    for i, label in enumerate(dict.fromkeys(labels)):
        own = [r for r, of in zip(rows, labels, strict=True) if of == label]
        # Side by side, 3% apart, so that colours of one truth do not hide each other.
        across = [i if no_truth else r["truth"] * 1.03 ** (i - middle) for r in own]
        ax.scatter(across, [r["estimate"] / (r["truth"] or 1) for r in own], s=18, label=label)
    # At least this range is shown, so that a small scatter looks small.
    (bottom, top), (low, high) = ax.get_ylim(), (-0.02, 0.02) if no_truth else (0.9, 1.1)
    ax.set_ylim(min(bottom, low), max(top, high))
    if no_truth:
        ax.set(xticks=[], ylabel="estimate (nats), truth 0")
    else:
        truths = sorted({round(r["truth"]) for r in rows})
        ax.set_xscale("log")
        ax.set_xticks(truths, [str(t) for t in truths])
        ax.minorticks_off()
        ax.set(xlabel="truth (nats), colours side by side", ylabel="estimate / truth")
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    ax.grid(alpha=0.3)


def save_shares(path: Path | str, rows: Rows) -> None:
    """Save a figure of estimate / truth of every row, a panel for each `family`."""
    families = list(dict.fromkeys(r["family"] for r in rows))
    columns = min(2, len(families))
    lines = -(-len(families) // columns)
    figure = _figure(6.5 * columns, 3.2 * lines)
    panels = iter(figure.subplots(lines, columns, squeeze=False).flat)
    for family, ax in zip(families, panels, strict=False):
        plot_shares(ax, [r for r in rows if r["family"] == family])
        ax.set_title(family)
    for ax in panels:  # the unused ones
        ax.set_axis_off()
    figure.savefig(path, dpi=150)


def _labels(rows: Rows) -> list[str]:
    """Return the kind of each row's task or, if all are of one kind, its dimension and pairs."""
    kinds = [re.sub(r"-\d+d-.+nats(-a-component)?", "", r["task"]) for r in rows]
    if len(set(kinds)) > 1:
        return kinds
    dims = [re.sub(r"(.*\d+d).*", r"\1", r["task"]) for r in rows]
    return [f"{dim}, {r['n']:,} pairs" for dim, r in zip(dims, rows, strict=True)]


def _shorten(name: str) -> str:
    """Return a name that fits beside a figure, with the $ of formulas escaped."""
    text = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return text.replace("$", r"\$")


def save_heat_map(
    path: Path, names: tuple[Sequence[str], Sequence[str]], nats: NDArray[np.float64]
) -> None:
    """Save mutual information (lines, columns) in nats; NaN stays blank.

    Many names are written smaller and, where that would be too small to read, only some of them.
    """
    lines, columns = ([_shorten(name) for name in side] for side in names)
    height, width = _extent(len(lines)), _extent(len(columns))
    beside, below = (_LETTER * max(map(len, side)) for side in (lines, columns))
    figure = _figure(beside + width + 1.4, below + height + 0.4)
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
    ends = {end for *pair, _ in edges for end in pair}
    joined = [name for name in names if name in ends]
    size = min(_LARGEST, max(7.0, 4.5 + 0.17 * len(joined) / np.pi))
    figure = _figure(size, size)
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
            side, turn = "left", math.degrees(math.atan2(y, x))
            if abs(turn) > 90:
                side, turn = "right", turn - 180
        how: dict[str, Any] = {"ha": side, "va": "center", "rotation": turn}
        how["rotation_mode"] = "anchor" if turn else "default"
        ax.text(1.06 * x, 1.06 * y, _shorten(name), fontsize=size, **how)
