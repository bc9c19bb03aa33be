"""Tables in Markdown and LaTeX, with a line for each method and a column for each truth or t."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...runtime.rowstore import Row

__all__ = ["Table", "entry", "grid", "latex", "markdown", "spread", "with_precision"]


@dataclass(frozen=True)
class Table:
    """A table of text: the heads of its columns, and lines of a name and its entries."""

    title: str
    corner: str  # head of the first column
    columns: tuple[str, ...]  # heads of the others
    lines: tuple[tuple[str, tuple[str, ...]], ...]


def spread(rows: Sequence[Row], title: str, across: str, value: str) -> Table:
    """Return mean and standard deviation of a value over draws, by method and by `across`.

    Args:
        rows: With `method`, `across` and `value`.
        title: Of the table.
        across: Key whose numbers are the columns.
        value: Key of the value.
    """
    heads = sorted({row[across] for row in rows})
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [[r[value] for r in rows if (r["method"], r[across]) == (method, c)] for c in heads]
        lines.append((method, tuple(map(entry, own))))
    return Table(title, "method", tuple(f"{head:g}" for head in heads), tuple(lines))


def entry(values: Sequence[float]) -> str:
    """Return a mean, with the standard deviation if there are several values."""
    if not values:
        return ""
    mean = f"{np.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.2f}"


def markdown(tables: Sequence[Table]) -> str:
    """Return tables as Markdown."""
    grids = [grid(*_lines(table)) for table in tables]
    each = (f"### {table.title}\n\n{text}" for table, text in zip(tables, grids, strict=True))
    return "\n\n".join(each) + "\n"


def _lines(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the head of a table and its lines."""
    return [table.corner, *table.columns], [[name, *entries] for name, entries in table.lines]


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def latex(tables: Sequence[Table]) -> str:
    r"""Return tables as LaTeX, each a `table` with a `tabular` and a `\caption`."""
    return "\n\n".join(_latex(table) for table in tables) + "\n"


def _latex(table: Table) -> str:
    head, lines = _lines(table)
    first, *body = [" & ".join(map(_escaped, line)) + r" \\" for line in (head, *lines)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escaped(table.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\hline",
            first,
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


def with_precision(rows: Sequence[Row]) -> list[Row]:
    """Return rows with methods whose names show the precision, if it is not the default."""
    names = (f"({r['precision']})" if r.get("precision") else "" for r in rows)
    return [{**r, "method": r["method"] + name} for r, name in zip(rows, names, strict=True)]
