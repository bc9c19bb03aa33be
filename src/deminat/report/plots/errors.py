"""Figures of benchmarks: errors by task, and shares of the true value."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_errors", "plot_shares", "save_errors", "save_shares"]

Rows = Sequence[Mapping[str, Any]]


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
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(r["task"] for r in rows))
    sizes = sorted({r["n"] for r in rows})
    figure = Figure(figsize=(4 + 3.6 * len(sizes), 1.8 + 0.2 * len(tasks)), layout="constrained")
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
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(r["family"] for r in rows))
    columns = min(2, len(families))
    lines = -(-len(families) // columns)
    figure = Figure(figsize=(6.5 * columns, 3.2 * lines), layout="constrained")
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
