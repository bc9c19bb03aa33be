"""Columns by name or number, and their values as numbers or categories.

Values are worked on as series without a name. To polars a name may be a pattern: it takes a
column called `*` or `^.*$` for all of them, even where a series does something to itself.
"""

import csv
import difflib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError, printable

__all__ = [
    "Side",
    "Table",
    "categories",
    "choose_columns",
    "find_columns",
    "floats",
    "format_names",
    "is_missing",
    "pairable_columns",
    "parse_names",
    "quote",
    "quote_for_shell",
    "resolve",
    "split_groups",
    "unknown_name_error",
]

Side: TypeAlias = NDArray[Any] | pl.DataFrame


class Table(Protocol):
    """A file of columns."""

    @property
    def label(self) -> str:
        """The path, fit for a message."""

    @property
    def names(self) -> list[str]:
        """The columns, all different."""

    @property
    def note(self) -> str:
        """What else to say when a column is not found."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def pick(
        self,
        groups: Sequence[list[str]],
        categorical: Collection[str],
        rows: NDArray[np.int64] | None = None,
    ) -> list[Side]:
        """Return one side (n, d) for each group of d columns, of some rows or of all."""

    def pieces(self, group: list[str], categorical: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, some rows at a time."""


def choose_columns(
    table: Table, x: str | None, y: str | None, given: str | None, categorical: Sequence[str]
) -> tuple[list[list[str]], set[str]]:
    """Return the columns `x` and `y` of a table, `given` if there are any, and the categories."""
    if x is None or y is None:
        raise DataError(
            f"{table.label}: say which columns are x and which are y with --x NAME --y NAME "
            f"(several with commas); it has {format_names(table.names)}"
        )
    groups = [find_columns(table, side) for side in (x, y, given) if side is not None]
    _check_distinct(table, groups)
    return groups, {resolve(table, name) for name in categorical}


def find_columns(table: Table, side: str) -> list[str]:
    """Return the columns in a list separated by commas, with the wildcards of file names."""
    parts = _listed(table, side)
    if side.strip() in table.names and any(is_missing(table, part) for part in parts):
        raise DataError(
            f"{table.label}: a name that holds a comma goes in double quotes, and these in single "
            f"ones: {quote_for_shell(side.strip())}"
        )
    return [name for part in parts for name in _matching(table, part)]


def _matching(table: Table, part: str) -> list[str]:
    """Return the columns that a pattern stands for, or the one that is called or numbered so."""
    if part in table.names or not any(c in part for c in "*?["):
        if is_missing(table, part):
            raise _unknown_part(table, part)
        return [resolve(table, part)]
    found = [name for name in table.names if fnmatchcase(name, part)]
    if not found:
        raise DataError(
            f"{table.label}: no column is like {quote(part)}; it has {format_names(table.names)}"
        )
    return found


def _unknown_part(table: Table, part: str) -> DataError:
    """Return the error for what is no column; it may be a folder, which ends in a slash."""
    folder = [f"the folder {printable(part)}/"] if os.path.isdir(part) else []
    return unknown_name_error(
        table.label, "column", part, table.names, table.note, quote_for_shell, folder
    )


def quote_for_shell(name: str) -> str:
    """Return a name as a shell and a list separated by commas take it."""
    return quote(f'"{name}"' if "," in name else name)


def parse_names(chosen: str) -> list[str]:
    """Return the names in a list separated by commas; those in double quotes may hold some."""
    try:
        rows = list(csv.reader([chosen], skipinitialspace=True, strict=True))
    except csv.Error as fault:
        raise DataError(f"{quote(chosen)} is not a list of columns ({fault})") from fault
    return [name.strip() for row in rows for name in row]


def _listed(table: Table, chosen: str) -> list[str]:
    """Return the names in a list, of which none may be empty."""
    names = parse_names(chosen)
    if not names or "" in names:
        raise DataError(
            f"{quote(chosen)} names no column between two commas; {table.label} has "
            f"{format_names(table.names)}"
        )
    return names


def _check_distinct(table: Table, groups: list[list[str]]) -> None:
    """Refuse a column that is chosen twice."""
    x, y, *known = groups
    both = sorted(set(x) & set(y))
    twice = [name for name, count in Counter(chain(x, y, *known)).items() if count > 1]
    if both:
        raise DataError(
            f"{table.label}: column {quote(both[0])} is on both sides, and a column tells "
            "everything about itself: remove it from x or from y"
        )
    if twice:
        raise DataError(f"{table.label}: column {quote(twice[0])} is named twice: name it once")


def _position(table: Table, name: str) -> int | None:
    """Return where the column called or numbered `name` is."""
    if name in table.names:
        return table.names.index(name)
    number = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else None
    return number if number is not None and number < len(table.names) else None


def is_missing(table: Table, name: str) -> bool:
    """Return whether a table has no column of that name or number."""
    return _position(table, name) is None


def resolve(table: Table, name: str) -> str:
    """Return the name of the column called or, if there is none, numbered `name`."""
    position = _position(table, name)
    if position is None:
        raise unknown_name_error(table.label, "column", name, table.names, table.note)
    return table.names[position]


def quote(name: object) -> str:
    """Return a name in quotes, fit for a message."""
    return f"'{printable(name)}'"


def unknown_name_error(
    label: str,
    kind: str,
    name: str,
    names: Sequence[str],
    note: str = "",
    show: Callable[[str], str] = quote,
    others: Sequence[str] = (),
) -> DataError:
    """Return the error for a name that is not there, with those that are.

    Args:
        label: Where it is not.
        kind: What it would be.
        name: What was asked for.
        names: What there is.
        note: What else to say.
        show: How a name is to be typed.
        others: What else may have been meant.
    """
    alike = {known.casefold(): known for known in names[:1000] if len(known) <= 100}
    close = difflib.get_close_matches(name.casefold()[:100], alike, n=3)
    meant = " or ".join([*(show(alike[key]) for key in close), *others])
    question = f", did you mean {meant}?" if meant else ":"
    return DataError(
        f"{label} has no {kind} {quote(name)}{question} it has {format_names(names)}{note}"
    )


def format_names(names: Sequence[str]) -> str:
    """Return the first dozen names and how many there are."""
    shown = ", ".join(printable(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown}, … ({len(names)} in all)"


def categories(column: pl.Series) -> pl.Series:
    """Return the values as an Enum of the sorted different values; NaN is null."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    text = column.cast(pl.String)
    return text.cast(pl.Enum(text.drop_nulls().unique().sort()))


def floats(column: pl.Series) -> pl.Series:
    """Return numbers and booleans as Float64; null is NaN."""
    return column.cast(pl.Float64).fill_null(float("nan"))


def split_groups(columns: Mapping[str, pl.Series], groups: Sequence[list[str]]) -> list[Side]:
    """Return the columns of each group as a frame, so that messages can name them."""
    return [pl.DataFrame({name: columns[name] for name in group}) for group in groups]


def pairable_columns(
    table: Table,
    x: str | None,
    y: str | None,
    categorical: Sequence[str],
    apart: Sequence[str],
) -> tuple[pl.DataFrame, list[str], list[str] | None, list[str]]:
    """Return a frame, the names of x and y, and those that nobody named and cannot be read.

    Args:
        table: Where columns are.
        x: Columns, separated by commas, with the wildcards of file names; all that can be read as
            numbers or labels if None.
        y: Columns to pair those with; `None` for each other.
        categorical: Columns that hold labels rather than quantities.
        apart: Columns that are no side unless named.
    """
    labels = {resolve(table, name) for name in categorical}
    own = {resolve(table, name) for name in apart}
    xs = [name for name in table.names if name not in own] if x is None else find_columns(table, x)
    ys = None if y is None else find_columns(table, y)
    try:
        frame = _frame(table, [*xs, *(ys or [])], labels)
    except DataError:
        xs = _readable(table, xs, labels) if x is None and _is_sound(table) else []
        if not xs:
            raise
        frame = _frame(table, [*xs, *(ys or [])], labels)
    left_out = [n for n in table.names if n not in {*frame.columns, *own}] if x is None else []
    return frame, xs, ys, left_out


def _frame(table: Table, names: Sequence[str], labels: set[str]) -> pl.DataFrame:
    wanted = list(dict.fromkeys(names))
    (side,) = table.pick([wanted], labels)
    return pl.DataFrame(side, schema=wanted) if isinstance(side, np.ndarray) else side


def _is_sound(table: Table) -> bool:
    """Tell whether a table can be read at all: anything can be read as labels."""
    try:
        table.pick([table.names[:1]], set(table.names[:1]))
    except DataError:
        return False
    return True


def _readable(table: Table, names: list[str], labels: set[str]) -> list[str]:
    """Return the columns that can be read: of many in few readings, if few of them cannot."""
    try:
        table.pick([names], labels)
    except DataError:
        half = len(names) // 2
        parts = (names[:half], names[half:]) if half else ()
        return [name for part in parts for name in _readable(table, part, labels)]
    return names
