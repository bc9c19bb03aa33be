"""Columns of a table: which ones a user means, and their values as numbers or categories.

They stay in their file until rows of them are read. Users choose them by a list separated by
commas. Each part is a name, a number counted from 0 if no column has it as its name, or a pattern
with the wildcards of file names (`gene_*`).

Functions here work on polars series without a name. Polars reads some names as patterns: a column
called `*` or `^.*$` would stand for all columns, even in an operation of a series on itself.
"""

import csv
import difflib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError, printable
from ..arrays import FREE_TEXT
from ..source import Rows, Source

__all__ = [
    "HEAD",
    "MICROSECONDS",
    "Columns",
    "Series",
    "Side",
    "Table",
    "categories",
    "check_recurring",
    "choose_columns",
    "find_columns",
    "find_labels",
    "find_names",
    "floats",
    "format_names",
    "is_missing",
    "pairable_columns",
    "parse_names",
    "quote",
    "quote_for_shell",
    "resolve",
    "unknown_name_error",
]

Side: TypeAlias = NDArray[Any] | pl.DataFrame

MICROSECONDS = 86_400_000_000  # of a day
HEAD = 1000  # rows that decide whether a column holds words

_WILDCARDS = "*?["
_SHOWN = 12  # names in a message
_COMPARED = 1000  # names that a misspelt one is compared with
_DATE = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z?)?$"
_CHECKED = 1_000_000  # distinct values after which no more rows are read


class Table(Protocol):
    """A file of columns."""

    @property
    def label(self) -> str:
        """The path, for messages."""

    @property
    def names(self) -> list[str]:
        """The columns, all different."""

    @property
    def text_columns(self) -> Sequence[str]:
        """The columns that may hold text."""

    @property
    def note(self) -> str:
        """What a message adds when a column is not found; may be empty."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def word_columns(self, names: list[str]) -> Collection[str]:
        """Return those of some columns that hold words in their first rows, not numbers."""

    def pick(self, names: list[str], labels: Collection[str], rows: Rows | None = None) -> Side:
        """Return d columns (n, d) of some rows or of all; those in `labels` as categories."""

    def pieces(self, names: list[str], labels: Collection[str]) -> Iterator[Side]:
        """Yield d columns of all rows, some rows at a time."""


@dataclass(frozen=True)
class Columns:
    """Some columns of a table."""

    table: Table = field(repr=False)
    names: list[str]
    categorical: frozenset[str] = frozenset()

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return len(self.names)

    def __len__(self) -> int:
        return self.table.rows

    def take(self, rows: Rows | None = None) -> Side:
        """Return the columns of some rows, or of all."""
        return self.table.pick(self.names, self.categorical, rows)

    def pieces(self) -> Iterator[Side]:
        """Yield the columns of all rows, some rows at a time."""
        yield from self.table.pieces(self.names, self.categorical)


@dataclass(frozen=True)
class Series:
    """One column as an array (n,).

    Attributes:
        side: The column.
        fallback: The same column as text, used where `side` cannot be read as numbers.
    """

    side: Source
    fallback: Source

    @property
    def row_width(self) -> int:
        """Number of values per row."""
        return self.side.row_width

    def __len__(self) -> int:
        return len(self.side)

    def take(self, rows: Rows | None = None) -> NDArray[Any]:
        """Return the values in some rows, or in all."""
        try:
            return _flat(self.side.take(rows))
        except DataError:
            return _flat(self.fallback.take(rows))

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield the values in all rows, some rows at a time."""
        try:
            self.side.take(np.arange(1))
        except DataError:
            yield from map(_flat, self.fallback.pieces())
        else:
            yield from map(_flat, self.side.pieces())


def choose_columns(
    table: Table, x: str | None, y: str | None, given: str | None, categorical: Sequence[str]
) -> tuple[list[list[str]], frozenset[str]]:
    """Return the columns of x, of y and, if chosen, of `given`; and the categorical columns.

    Those are the ones in `categorical`, and chosen columns of words.
    """
    if x is None or y is None:
        raise DataError(
            f"{table.label}: choose the columns of x and y with --x NAME --y NAME (separate "
            f"several by commas); it has {format_names(table.names)}"
        )
    sides = [find_columns(table, side) for side in (x, y, given) if side is not None]
    both = sorted(set(sides[0]) & set(sides[1]))
    if both:
        raise DataError(
            f"{table.label}: column {quote(both[0])} is on both sides, so x and y share a copy of "
            "it: remove it from x or from y"
        )
    repeated = [name for name, count in Counter(chain(*sides)).items() if count > 1]
    if repeated:
        raise DataError(f"{table.label}: column {quote(repeated[0])} is named twice: name it once")
    return sides, find_labels(table, list(chain(*sides)), categorical)


def find_columns(table: Table, chosen: str) -> list[str]:
    """Return the columns in a list of names, numbers and patterns separated by commas."""
    parts = parse_names(chosen)
    if not parts or "" in parts:
        raise DataError(
            f"{quote(chosen)} has an empty name between commas; {table.label} has "
            f"{format_names(table.names)}"
        )
    if chosen.strip() in table.names and any(is_missing(table, part) for part in parts):
        raise DataError(
            f"{table.label}: put a name that contains a comma in double quotes, and those in "
            f"single quotes: {quote_for_shell(chosen.strip())}"
        )
    return [name for part in parts for name in _matches(table, part)]


def find_names(names: Sequence[str], chosen: str) -> list[str]:
    """Return those of some names that a list separated by commas names or matches."""
    found: list[str] = []
    for part in parse_names(chosen):
        matched = [name for name in names if name == part or fnmatchcase(name, part)]
        if not matched:
            raise DataError(f"no column matches {quote(part)}; there are {format_names(names)}")
        found += matched
    return list(dict.fromkeys(found))


def find_labels(table: Table, names: list[str], declared: Collection[str]) -> frozenset[str]:
    """Return the categorical columns: those declared, and those among `names` that hold words."""
    labels = frozenset(resolve(table, name) for name in declared)
    return labels.union(table.word_columns([name for name in names if name not in labels]))


def pairable_columns(
    table: Table, x: str | None, y: str | None, categorical: Sequence[str], apart: Sequence[str]
) -> tuple[pl.DataFrame, list[str], list[str] | None, list[str]]:
    """Read columns of which any two may be paired.

    Args:
        table: The table.
        x: Columns, as of `find_columns`; None for all that can be read as numbers or categories.
            Text of which hardly any is repeated cannot.
        y: Columns to pair those with; None to pair the columns of x with each other.
        categorical: Columns that hold categories.
        apart: Columns that are in x only if named there.

    Returns:
        A frame, the names of x, those of y, and those that were skipped as unreadable. Dates are
        numbers of days.
    """
    excluded = {resolve(table, name) for name in apart}
    candidates = [name for name in table.names if name not in excluded]
    xs = candidates if x is None else find_columns(table, x)
    ys = None if y is None else find_columns(table, y)
    chosen = list(dict.fromkeys([*xs, *(ys or [])]))
    declared = {resolve(table, name) for name in categorical}
    days = _days(table, [name for name in chosen if name not in declared])
    plain = [name for name in chosen if name not in days]
    labels = find_labels(table, plain, categorical)
    unique = _unique_columns(Columns(table, plain, labels))
    named = set(chosen) if x is not None else {*(ys or []), *declared}
    xs = [name for name in xs if name in named or name not in unique]
    for name, error in unique.items():
        if name in named or not xs:
            raise error
    try:
        frame = _with_days(table, [*xs, *(ys or [])], labels, days)
    except DataError:
        xs = _readable(table, xs, labels, days) if x is None and _is_sound(table) else []
        if not xs:
            raise
        frame = _with_days(table, [*xs, *(ys or [])], labels, days)
    used = set(frame.columns)
    skipped = [name for name in candidates if name not in used] if x is None else []
    return frame, xs, ys, skipped


def parse_names(chosen: str) -> list[str]:
    """Return the names in a list separated by commas; names in double quotes may contain commas."""
    try:
        rows = list(csv.reader([chosen], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(f"{quote(chosen)} is not a list of columns ({error})") from error
    return [name.strip() for row in rows for name in row]


def is_missing(table: Table, name: str) -> bool:
    """Return whether a table has no column of that name or number."""
    return _position(table, name) is None


def resolve(table: Table, name: str) -> str:
    """Return the column with the name `name` or, if there is none, with that number."""
    position = _position(table, name)
    if position is None:
        raise unknown_name_error(table.label, "column", name, table.names, table.note)
    return table.names[position]


def quote(name: object) -> str:
    """Return a name in quotes, for messages."""
    return f"'{printable(name)}'"


def quote_for_shell(name: str) -> str:
    """Return a name as to be typed in a shell, in a list separated by commas."""
    return quote(f'"{name}"' if "," in name else name)


def unknown_name_error(
    label: str,
    kind: str,
    name: str,
    names: Sequence[str],
    note: str = "",
    show: Callable[[str], str] = quote,
    others: Sequence[str] = (),
) -> DataError:
    """Return the error for an unknown name of some kind, with similar and existing ones.

    Suggested names are written by `show`; `others` are further suggestions, as they are.
    """
    similar = {known.casefold(): known for known in names[:_COMPARED] if len(known) <= 100}
    close = difflib.get_close_matches(name.casefold()[:100], similar, n=3)
    suggested = " or ".join([*(show(similar[key]) for key in close), *others])
    question = f", did you mean {suggested}?" if suggested else ":"
    return DataError(
        f"{label} has no {kind} {quote(name)}{question} it has {format_names(names)}{note}"
    )


def format_names(names: Sequence[str]) -> str:
    """Return the first names and, if there are more, their number."""
    shown = ", ".join(printable(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, … ({len(names)} in all)"


def categories(column: pl.Series) -> pl.Series:
    """Return the values as an Enum of the sorted distinct values; NaN becomes null."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    text = column.cast(pl.String)
    return text.cast(pl.Enum(text.drop_nulls().unique().sort()))


def floats(column: pl.Series) -> pl.Series:
    """Return numbers and booleans as Float64; null becomes NaN."""
    return column.cast(pl.Float64).fill_null(float("nan"))


def check_recurring(side: Columns) -> None:
    """Refuse a categorical column of which hardly any value is repeated."""
    for error in _unique_columns(side).values():
        raise error


def _unique_columns(side: Columns) -> dict[str, DataError]:
    """Return the categorical columns of which hardly any value is repeated, each with its error.

    Most columns repeat values in their first rows, and then no more is read.
    """
    names = [name for name in side.names if name in side.categorical]
    seen: dict[str, set[str]] = {name: set() for name in names}
    rows = 0
    for piece in side.table.pieces(names, names) if names else ():
        frame = pl.DataFrame(piece)
        rows += frame.height
        for name, cells in zip(names, frame, strict=True):
            if name in seen:
                seen[name].update(cells.drop_nulls().unique().to_list())
                if len(seen[name]) <= rows // 2:
                    del seen[name]
        if not seen or max(map(len, seen.values())) > _CHECKED:
            break
    return {
        name: DataError(
            f"{side.table.label}: hardly any value of column {quote(name)} is repeated "
            f"({len(values):,} kinds in {rows:,} rows): is it an identifier, or free text? Leave "
            "it out, or turn it into numbers or into fewer kinds"
        )
        for name, values in seen.items()
        if len(values) > FREE_TEXT
    }


def _matches(table: Table, part: str) -> list[str]:
    """Return the columns that match a pattern, or the one with that name or number."""
    if part in table.names or not any(c in part for c in _WILDCARDS):
        if is_missing(table, part):
            # A folder beside the table is given with a slash at its end.
            folder = [f"the folder {printable(part)}/"] if os.path.isdir(part) else []
            raise unknown_name_error(
                table.label, "column", part, table.names, table.note, quote_for_shell, folder
            )
        return [resolve(table, part)]
    found = [name for name in table.names if fnmatchcase(name, part)]
    if not found:
        raise DataError(
            f"{table.label}: no column matches {quote(part)}; it has {format_names(table.names)}"
        )
    return found


def _position(table: Table, name: str) -> int | None:
    """Return the position of the column with that name or number."""
    if name in table.names:
        return table.names.index(name)
    number = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else None
    return number if number is not None and number < len(table.names) else None


def _frame(table: Table, names: Sequence[str], labels: Collection[str]) -> pl.DataFrame:
    """Return columns as a frame, each once."""
    distinct = list(dict.fromkeys(names))
    side = table.pick(distinct, labels)
    return pl.DataFrame(side, schema=distinct) if isinstance(side, np.ndarray) else side


def _with_days(
    table: Table, names: Sequence[str], labels: Collection[str], days: Mapping[str, pl.Series]
) -> pl.DataFrame:
    """Return columns as a frame, each once; those that are dates as days."""
    distinct = list(dict.fromkeys(names))
    others = [name for name in distinct if name not in days]
    frame = _frame(table, others, labels) if others else pl.DataFrame()
    return pl.DataFrame({n: days[n] if n in days else frame[n] for n in distinct})


def _days(table: Table, names: Sequence[str]) -> dict[str, pl.Series]:
    """Return the columns that hold dates, as numbers of days."""
    typed = set(getattr(table, "date_columns", ()))
    head = np.arange(min(HEAD, table.rows))
    found = {}
    for name in [n for n in names if n in typed or n in table.text_columns]:
        try:
            first = table.pick([name], {name}, head)
            days = _as_days(pl.DataFrame(first).to_series())
            if days is not None and table.rows > len(head):
                days = _as_days(pl.DataFrame(table.pick([name], {name})).to_series())
        except DataError:  # it cannot be read at all, which is told later
            continue
        if days is not None:
            found[name] = days
    return found


def _as_days(column: pl.Series) -> pl.Series | None:
    """Return dates as days, NaN where missing; None if a value is no date."""
    text = column.cast(pl.String)
    if text.null_count() == len(text) or not text.str.contains(_DATE).fill_null(True).all():
        return None
    times = text.str.replace("T", " ").str.replace(r"Z$", "")
    whole = pl.when(times.str.len_chars() == len("2024-05-31")).then(times + " 00:00")
    padded = pl.select(whole.otherwise(times)).to_series()
    formats = "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"
    parsed = pl.select(
        pl.coalesce(
            pl.lit(padded).str.to_datetime(f, strict=False, time_unit="us") for f in formats
        )
    ).to_series()
    if parsed.null_count() > text.null_count():
        return None
    return floats(parsed.dt.timestamp("us") / MICROSECONDS)


def _is_sound(table: Table) -> bool:
    """Return whether a table can be read at all: as categories, any column can."""
    try:
        table.pick(table.names[:1], set(table.names[:1]))
    except DataError:
        return False
    return True


def _readable(
    table: Table, names: list[str], labels: Collection[str], known: Collection[str]
) -> list[str]:
    """Return the readable columns by bisection: few reads if few columns are unreadable."""
    try:
        others = [name for name in names if name not in known]
        if others:
            table.pick(others, labels)
    except DataError:
        half = len(names) // 2
        parts = (names[:half], names[half:]) if half else ()
        return [name for part in parts for name in _readable(table, part, labels, known)]
    return names


def _flat(side: Side) -> NDArray[Any]:
    """Return the values (n,) of one column."""
    if isinstance(side, np.ndarray):
        return side[:, 0] if side.ndim == 2 and side.shape[1] == 1 else side
    return side.to_series().to_numpy(allow_copy=True)
