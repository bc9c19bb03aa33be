"""Figures of the paper's experiments, in the paper's layout where it has one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...runtime.rowstore import Row

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "NORMALISED",
    "draw_consistency",
    "draw_gaussian",
    "draw_infomax",
    "draw_longrun",
    "draw_notebook",
    "method_rank",
]

COLOURS = {  # of every method, in the order in which they are shown
    "demi": "tab:blue",
    "demi(alpha=0.25)": "tab:cyan",
    "demi(alpha=0.75)": "navy",
    "demi(alpha=0.9)": "slateblue",
    "demi(alpha=0.015625)": "deepskyblue",
    "demi(alpha=0.015625), normalised": "tab:cyan",
    "jsd": "tab:olive",
    "smile(tau=1)": "tab:orange",
    "smile(tau=5)": "tab:red",
    "smile(tau=inf)": "firebrick",
    "smile(tau=1, all pairs)": "moccasin",
    "smile(tau=5, all pairs)": "lightsalmon",
    "smile(tau=inf, all pairs)": "rosybrown",
    "mine": "tab:green",
    "mine(rate=0.001)": "limegreen",
    "dv": "darkgreen",
    "infonce": "tab:purple",
    "ccmi": "tab:brown",
    "gm": "tab:pink",
    "auto": "black",
    "gaussian": "0.4",
    "ksg(k=3)": "0.7",
    "supervised": "black",
}
NORMALISED = ", normalised"  # ends the names of methods whose scores are normalised
_STYLES = {"ccmi": "--", "jsd": "--", "auto": "--", "gaussian": ":"}  # they cover other lines
_TWINS = {  # not drawn for Gaussians, as in the paper, if the other method is there
    "ccmi": "smile(tau=inf)",  # the same number, whatever the scores
    "demi(alpha=0.25)": "demi",
    "demi(alpha=0.75)": "demi",
}
_HIGHEST, _LOWEST = 1.05, -0.5  # times the largest truth, between which errors are drawn
_SMOOTH = 0.02  # share of a curve that its smoothed version averages over
_TESTS = {
    "monotonicity": "monotonicity: I(X;Y_t) / I(X;Y_28)",
    "processing": "data processing: I([X,X];[Y_t,Y_t-3]) / I(X;Y_t)",
    "additivity": "additivity: I([X1,X2];[Y1_t,Y2_t]) / I(X;Y_t)",
}
_IDEAL = {"monotonicity": 1.0, "processing": 1.0, "additivity": 2.0}  # the first at t = 28
_ACCURACIES = "conv", "fc", "output"
_PANELS = {
    "conv": "probe on conv(256,4,4): accuracy (%)",
    "fc": "probe on fc(1024): accuracy (%)",
    "output": "probe on the 64-d output: accuracy (%)",
    "estimate": "mutual information on test images (nats)",
    "loss": "training loss, that of each objective",
}


def draw_gaussian(rows: Sequence[Row]) -> "Figure":
    """Draw error by true information: columns for normal and cubic, a line for each d and n."""
    methods = {r["method"] for r in rows}
    rows = [r for r in rows if _TWINS.get(r["method"]) not in methods]
    settings = sorted({(r["d"], -r["n"]) for r in rows})
    kinds = [kind for kind in ("normal", "cubic") if any(r["kind"] == kind for r in rows)]
    figure, panels = _panels(len(settings), len(kinds))
    for j, kind in enumerate(kinds):
        for i, (d, n) in enumerate(settings):
            own = [r for r in rows if (r["d"], -r["n"], r["kind"]) == (d, n, kind)]
            if own:
                lowest = panels[i][j]
                lowest.set_title(f"{kind}, {d} + {d} columns, {-n:,} pairs", fontsize="medium")
                _errors(lowest, own)
            else:  # a table that was not run, or is not in the paper
                panels[i][j].set_axis_off()
        lowest.set_xlabel("true information (nats)")
    _share_legend(figure, [ax for line in panels for ax in line])
    return figure


def _errors(ax: "Axes", rows: Sequence[Row]) -> None:
    ax.axhline(0, color="black", linewidth=0.8)
    _lines(ax, rows, "truth", "error")
    _mark_outliers(ax, rows)
    ax.set_ylabel("truth - estimate (nats)")
    ax.grid(alpha=0.3)


def _mark_outliers(ax: "Axes", rows: Sequence[Row]) -> None:
    """Limit the axis if some errors are far larger than others; mark them and name the largest."""
    truth = max(r["truth"] for r in rows)
    low, high = _LOWEST * truth, _HIGHEST * truth
    near = [r["error"] for r in rows if low <= r["error"] <= high]
    words = []
    if len(near) < len(rows):
        low = min([0.0, *near]) - 0.05 * truth
        ax.set_ylim(low, high)
    for method, colour in _colours(rows).items():
        beyond = [r for r in rows if r["method"] == method and not low <= r["error"] <= high]
        for r in beyond:
            edge, marker = (high, "^") if r["error"] > 0 else (low, "v")
            ax.plot(r["truth"], edge, marker, color=colour, clip_on=False)
        if beyond:
            far = max(beyond, key=lambda r: abs(r["error"]))
            words.append(f"{method} reads {far['truth'] - far['error']:,.0f} of {far['truth']:g}")
    if words:
        ax.text(
            *(0.03, 0.95, "\n".join(words)),
            transform=ax.transAxes,
            va="top",
            fontsize="small",
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},
            zorder=5,
        )


def _lines(
    ax: "Axes", rows: Sequence[Row], across: str, value: str, error: str | None = None
) -> None:
    """Draw a line for each method: means over draws with their standard deviation.

    Args:
        ax: Where to draw.
        rows: With `method` and the keys below.
        across: Key of the horizontal axis.
        value: Key of the vertical axis.
        error: Key of the error bar of a single draw; `None` draws none.
    """
    for method, colour in _colours(rows).items():
        points: dict[float, list[Row]] = {}
        for r in sorted((r for r in rows if r["method"] == method), key=lambda r: r[across]):
            points.setdefault(r[across], []).append(r)
        drawn = [[r[value] for r in own] for own in points.values()]
        alone = [own[0][error] if error else 0.0 for own in points.values()]
        bars = [
            np.std(values, ddof=1) if len(values) > 1 else bar
            for values, bar in zip(drawn, alone, strict=True)
        ]
        means, style = [np.mean(values) for values in drawn], _STYLES.get(method, "-")
        ax.errorbar(
            list(points), means, bars, fmt=f".{style}", label=method, color=colour, capsize=2
        )


def draw_notebook(rows: Sequence[Row]) -> "Figure":
    """Draw loss and estimate of each variant beside the values of the authors."""
    figure, ((losses, errors),) = _panels(1, 2)
    released = sorted({(r["truth"], r["truth"] - r["released"]) for r in rows})
    for variant in dict.fromkeys(r["variant"] for r in rows):
        own = [r for r in rows if r["variant"] == variant]
        for ax, values in (
            (losses, [r["loss"] / r["printed"] for r in own]),
            (errors, [r["error"] for r in own]),
        ):
            ax.plot([r["truth"] for r in own], values, ".", label=variant, alpha=0.7)
    losses.axhline(1, color="black", linewidth=0.8)
    losses.set_ylabel("loss of the last epoch / printed loss")
    errors.plot(*zip(*released, strict=True), "kx", label="released checkpoint")
    errors.axhline(0, color="black", linewidth=0.8)
    errors.set_ylabel("truth - estimate (nats)")
    for ax in (losses, errors):
        ax.set_xlabel("true information (nats)")
        ax.grid(alpha=0.3)
    errors.legend()
    return figure


def draw_longrun(rows: Sequence[Row]) -> "Figure":
    """Draw curves, raw and smoothed, against the truth: a line of panels for each truth."""
    truths = sorted({r["truth"] for r in rows})
    methods = list(dict.fromkeys(r["method"] for r in rows))
    figure, panels = _panels(len(truths), len(methods))
    for line, truth in zip(panels, truths, strict=True):
        own = [r for r in rows if r["truth"] == truth]
        top = min(2.5 * truth, max(1.6 * truth, *(max(r["estimate"]) for r in own)))
        for ax, method in zip(line, methods, strict=True):
            ax.axhline(truth, color="black", linewidth=1)
            for steps, curve in ((r["step"], r["estimate"]) for r in own if r["method"] == method):
                ax.plot(steps, curve, color="tab:blue", alpha=0.25, linewidth=0.5)
                ax.plot(_smoothed(steps), _smoothed(curve), color="tab:blue", linewidth=1.5)
            ax.set_title(f"{method}, {truth:g} nats")
            ax.set_ylim(0, top)
            ax.grid(alpha=0.3)
        line[0].set_ylabel("estimate (nats)")
    for ax in panels[-1]:
        ax.set_xlabel("step")
    return figure


def _smoothed(values: Sequence[float]) -> NDArray[np.float64]:
    """Return moving averages over complete windows."""
    size = max(1, round(_SMOOTH * len(values)))
    return np.convolve(values, np.full(size, 1 / size), mode="valid")


def draw_consistency(rows: Sequence[Row]) -> "Figure":
    """Draw the three ratios over t."""
    rows = [r for r in rows if r["ratio"] is not None]
    tests = [test for test in _TESTS if any(r["test"] == test for r in rows)]
    figure, panels = _panels(max(1, len(tests)), 1)
    for (ax,), test in zip(panels, tests, strict=False):
        own = [r for r in rows if r["test"] == test]
        _lines(ax, own, "t", "ratio", "ratio_error")
        ax.axhline(_IDEAL[test], color="black", linewidth=0.8)
        ax.set_xticks(sorted({r["t"] for r in own}))
        ax.set_title(_TESTS[test], fontsize="medium")
        ax.set_ylabel("ratio")
        ax.grid(alpha=0.3)
    panels[-1][0].set_xlabel("t, rows of the image that are not black")
    _share_legend(figure, [ax for line in panels for ax in line])
    return figure


def draw_infomax(rows: Sequence[Row]) -> "Figure":
    """Draw accuracy of probes, estimates and loss by epoch."""
    figure, panels = _panels(3, 2)
    *drawn_on, spare = [ax for line in panels for ax in line]
    spare.set_axis_off()
    for ax, (key, title) in zip(drawn_on, _PANELS.items(), strict=True):
        factor = 100 if key in _ACCURACIES else 1
        own = [{**r, key: factor * r[key]} for r in rows if _is_drawn(key, r)]
        _lines(ax, own, "epoch", key)
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel("epoch")
        ax.grid(alpha=0.3)
    _share_legend(figure, drawn_on)
    return figure


def _is_drawn(key: str, row: Row) -> bool:
    """Tell whether a panel shows a row.

    Objectives of one training share its probes and loss, which are drawn once. Before training, the
    probes of the encoder are drawn, but no critic and no classifier.
    """
    method = row["method"].removesuffix(NORMALISED)
    is_own = key == "estimate" or method in (row["training"], "supervised")
    is_trained = row["epoch"] > 0 or (key in _ACCURACIES and row["method"] != "supervised")
    return row[key] is not None and is_own and is_trained


def _panels(lines: int, columns: int) -> "tuple[Figure, list[list[Axes]]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 4.5 * columns, 0.5 + 2.8 * lines), layout="constrained")
    return figure, figure.subplots(lines, columns, squeeze=False).tolist()


def _colours(rows: Sequence[Row]) -> dict[str, str]:
    """Return the colour of each method."""
    return {r["method"]: list(COLOURS.values())[method_rank(r["method"])] for r in rows}


def method_rank(method: str) -> int:
    """Return the position of a method in `COLOURS`; of its name alone, if its settings are new."""
    names = list(COLOURS)
    return names.index(method if method in COLOURS else method.partition("(")[0])


def _share_legend(figure: "Figure", panels: "Sequence[Axes]") -> None:
    """Name each method once, beside the panels."""
    handles: dict[str, Artist] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = sorted(handles, key=method_rank)
    figure.legend([handles[name] for name in names], names, loc="outside right upper")
