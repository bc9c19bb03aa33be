"""Tables in Markdown and LaTeX: a title, a line for each method, a column for each truth or t."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...runtime.rowstore import Row

__all__ = ["Table", "entry", "grid", "latex", "markdown", "spread"]


@dataclass(frozen=True)
class Table:
    """What to show.

    Args:
        title: What it is of.
        corner: What the first column holds.
        columns: Heads of the others.
        lines: A name and its entries each.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]


def spread(
    rows: Sequence[Row], title: str, across: str, head: Callable[[Row], str], value: str
) -> Table:
    """Return mean and standard deviation of a value over draws, by method and by `across`.

    Args:
        rows: With `method`, `across` and `value`.
        title: Of the table.
        across: Key whose values are the columns.
        head: Name of the column of a row.
        value: Key of the value.
    """
    heads = {row[across]: head(row) for row in sorted(rows, key=lambda r: r[across])}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for method in methods:
        own = [[r[value] for r in rows if (r["method"], r[across]) == (method, c)] for c in heads]
        lines.append((method, tuple(map(entry, own))))
    return Table(title, "method", tuple(heads.values()), tuple(lines))


def entry(values: Sequence[float]) -> str:
    """Return a mean, with the standard deviation if there are several values."""
    if not values:
        return ""
    mean = f"{np.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.2f}"


def markdown(tables: Sequence[Table]) -> str:
    """Return tables as Markdown."""
    return "\n\n".join(_markdown(table) for table in tables) + "\n"


def _markdown(table: Table) -> str:
    lines = ([name, *entries] for name, entries in table.lines)
    return f"### {table.title}\n\n{grid([table.corner, *table.columns], lines)}"


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown: its head and its lines."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def latex(tables: Sequence[Table]) -> str:
    r"""Return tables as LaTeX, each a `table` with a `tabular` and a `\caption`."""
    return "\n\n".join(_latex(table) for table in tables) + "\n"


def _latex(table: Table) -> str:
    lines = [[table.corner, *table.columns], *([name, *entries] for name, entries in table.lines)]
    head, *body = [" & ".join(map(_escaped, line)) + r" \\" for line in lines]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escaped(table.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\hline",
            head,
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _escaped(text: str) -> str:
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}", "±": r"$\pm$"}
    return "".join(special.get(c, c) for c in text)
