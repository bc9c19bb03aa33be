"""A bar chart of a ranking, with intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["save_bars"]

_SHOWN = 40  # bars that can be read
_LONGEST = 30  # letters of a name
_LEVEL = 0.05


def save_bars(path: Path, target: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Save what columns tell about a target, the largest on top.

    Args:
        path: The figure.
        target: Its name.
        rows: `column`, `mi`, `low`, `high` and `q_value` of each, the largest first.
    """
    from matplotlib.figure import Figure

    shown = rows[:_SHOWN]
    names = [_shorten(str(row["column"])) for row in shown]
    figure = Figure(figsize=(7, 1.2 + 0.26 * len(shown)), layout="constrained")
    ax = figure.subplots()
    nats = [row["mi"] for row in shown]
    below = [max(0.0, row["mi"] - row["low"]) for row in shown]
    above = [max(0.0, row["high"] - row["mi"]) for row in shown]
    colours = ["#4c78a8" if row["q_value"] <= _LEVEL else "#c3cad3" for row in shown]
    ax.barh(range(len(shown)), nats, color=colours)
    places = range(len(shown))
    ends = [below, above]
    ax.errorbar(nats, places, xerr=ends, fmt="none", ecolor="#333", elinewidth=1, capsize=2)
    ax.set_yticks(range(len(shown)), names)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.margins(y=0.01)
    ax.set_xlabel("mutual information (nats), with 95% intervals")
    more = f", the first {_SHOWN} of {len(rows)}" if len(rows) > _SHOWN else ""
    title = f"What columns tell about {_shorten(target)}{more}"
    if any(colour != colours[0] for colour in colours) or shown[0]["q_value"] > _LEVEL:
        title += f"\n(pale: q above {_LEVEL:g})"
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
