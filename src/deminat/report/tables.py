"""Tables: in files that no spreadsheet takes for formulas, as text, and in notebooks."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import DataError, printable
from ..runtime.atomic import write_atomically

__all__ = ["MOST_LINES", "html_table", "save_table", "text_table"]

MOST_LINES = 20  # of a printed table
_LONGEST = 40  # letters of a name
_WIDEST = 8  # of a bar, in the height of a letter
_FORMULA = r"^[=+\-@\t\r]"  # text that a spreadsheet would compute


def save_table(path: Path, frame: pl.DataFrame) -> None:
    """Write the table; an existing file is replaced only when the new one is complete."""
    is_csv = path.suffix.lower() == ".csv"
    try:
        write_atomically(path, _escaped(frame).write_csv if is_csv else frame.write_parquet)
    except pl.exceptions.PolarsError as error:  # a full disk, among others
        raise DataError(f"cannot write {printable(path, 300)}: {printable(error, 200)}") from error


def text_table(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], count: int, what: str
) -> str:
    """Return estimates as lines of text.

    Args:
        rows: The first rows, with `mi`, `low`, `high` and `q_value`.
        names: Their columns that hold names.
        count: How many rows there are in all.
        what: What they are, for the last line.
    """
    cells = [[*names, "nats", "95% interval", "q"]]
    for row in rows[:MOST_LINES]:
        cells.append([*(printable(row[name], _LONGEST) for name in names), *_numbers(row)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{c:{w}}" for c, w in zip(r, widths, strict=True)).rstrip() for r in cells]
    if count > len(rows[:MOST_LINES]):
        lines.append(f"... {count:,} {what} in all")
    return "\n".join(lines)


def html_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str], caption: str) -> str:
    """Return estimates as a table with a bar for each, for notebooks; arguments as above."""
    most = max([1e-9, *(row["mi"] for row in rows)])
    lines = []
    for row in rows[:MOST_LINES]:
        width = max(0.0, _WIDEST * row["mi"] / most)
        bar = f'<div style="background:#4c78a8;height:.8em;width:{width:.2f}em"></div>'
        cells = [*(escape(str(row[name])) for name in names), bar, *_numbers(row)]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{h}</th>" for h in (*names, "", "nats", "95% interval", "q"))
    caption = f"<caption>{escape(caption)}</caption>"
    return f"<table>{caption}<tr>{head}</tr>{''.join(lines)}</table>"


def _numbers(row: Mapping[str, Any]) -> list[str]:
    low, high, q = row["low"], row["high"], row["q_value"]
    known = low is not None and high is not None
    return [
        f"{row['mi']:.3f}",
        f"[{low:.3f}, {high:.3f}]" if known else "",
        "" if q is None else f"{q:.2g}",
    ]


def _escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose names and texts no spreadsheet takes for formulas."""
    columns = {}
    for column in frame:
        name = f"'{column.name}" if re.match(_FORMULA, column.name) else column.name
        if name in columns:
            raise DataError(f"two columns would be called {name!r}: write .parquet instead")
        values = column.alias("")
        if not values.dtype.is_numeric() and values.dtype != pl.Boolean:
            values = values.cast(pl.String).str.replace(f"({_FORMULA})", "'$1")
        columns[name] = values
    return pl.DataFrame(columns)
