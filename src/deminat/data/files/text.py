"""CSV and its kin: every row is checked before any column is read.

Files without quotes, by far the most, are counted and parsed as raw bytes. Files with quotes
go through the csv module once, which both counts and parses, so the two cannot disagree.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from .columns import Side, categories, format_names, quote, quote_for_shell, split_groups
from .dialect import (
    DOT_NUMBER,
    NA_WORDS,
    check_comment,
    first_record,
    has_header,
    head,
    plain_text,
    rows_of,
    separator_of,
    squeeze,
)
from .guards import check_memory, parsing, show_path

__all__ = ["Dialect", "TextTable", "check_regular", "dialect_of", "no_rows", "read_text", "records"]

_DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?$|^\d{1,2}:\d{2}(:\d{2}.*)?$"
_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*$"
_GROUPED = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
_HEADERLESS = " (there is no header: the first row is all numbers, so columns go by number)"
# The bytes as read, as decoded, as strings: what a text may take up before it is numbers.
_BYTES_PER_BYTE = 4


@dataclass(frozen=True)
class TextTable:
    """A text table whose dialect is known and whose values are not parsed yet.

    Attributes:
        label: The path, fit for a message.
        names: The columns, all different.
        note: What else to say when a column is not found.
        data: UTF-8 lines; the first holds the numbers of the columns if there are no quotes.
        separator: One character between fields.
        header: How many lines to leave out.
        quotes: Whether there are any.
        dots: Whether a decimal point was seen anywhere, so that a comma cannot be one.
        numbers: Which rows of the file these are, if they are not all.
    """

    label: str
    names: list[str]
    note: str
    data: bytes = field(repr=False)
    separator: str
    header: int
    quotes: bool
    dots: bool
    numbers: NDArray[np.int64] | None = field(default=None, repr=False)

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        if self.quotes:
            with parsing(self.label, "CSV"):
                return sum(1 for _ in self._records())
        return self.data.count(b"\n") + 1 - (self.header if len(self.names) == 1 else 1)

    def pick(
        self,
        groups: Sequence[list[str]],
        categorical: Collection[str],
        rows: NDArray[np.int64] | None = None,
    ) -> list[Side]:
        """Return one side for each group of columns."""
        wanted = [name for group in groups for name in group]
        with parsing(self.label, "CSV"):
            columns = self._values(wanted, set(categorical))
            if rows is not None:
                columns = {name: column.gather(rows) for name, column in columns.items()}
            return split_groups(columns, groups)

    def pieces(self, group: list[str], categorical: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, which are few enough to be one piece."""
        yield from self.pick([group], categorical)

    def _values(self, wanted: list[str], labels: set[str]) -> dict[str, pl.Series]:
        """Return the columns as Float64 or Enum."""
        columns = dict(zip(wanted, self._parse(wanted, labels), strict=True))
        texts = [c for name, c in columns.items() if name not in labels and c.dtype == pl.String]
        comma = self._decimal_comma(texts)
        return {
            name: categories(_tidy(cells)) if name in labels else self._numbers(name, cells, comma)
            for name, cells in columns.items()
        }

    def _decimal_comma(self, texts: list[pl.Series]) -> bool:
        """Return whether commas in the cells are decimal, as far as can be told.

        Between semicolons 1,234 is 1.234; between tabs it is as likely to be a thousand.
        """
        commas = [cells.filter(cells.str.contains(",", literal=True)) for cells in texts]
        dots = self.dots or any(cells.str.contains(".", literal=True).any() for cells in texts)
        thousands = all(cells.str.contains(_THOUSANDS).all() for cells in commas)
        return not dots and (self.separator == ";" or (self.separator != "," and not thousands))

    def _parse(self, wanted: list[str], labels: set[str]) -> list[pl.Series]:
        """Return the columns as strings or, those that are plain numbers, as Float64."""
        numbers = {name: number for number, name in enumerate(self.names)}
        chosen = [numbers[name] for name in wanted]
        if self.quotes or len(self.names) == 1:
            return self._parse_records(chosen)
        try:
            return self._parse_bytes(chosen, [numbers[n] for n in wanted if n not in labels])
        except pl.exceptions.ComputeError:
            return self._parse_bytes(chosen, [])

    def _parse_bytes(self, chosen: list[int], numeric: list[int]) -> list[pl.Series]:
        """Parse lines without quotes; a number that is not plain is a ComputeError."""
        frame = pl.read_csv(
            self.data,
            columns=[str(number) for number in chosen],
            separator=self.separator,
            quote_char=None,
            infer_schema_length=0,
            schema_overrides={str(number): pl.Float64 for number in numeric},
        )
        return [frame.get_column(str(number)) for number in chosen]

    def _parse_records(self, chosen: list[int]) -> list[pl.Series]:
        """Parse records by the csv module."""
        take = itemgetter(*chosen)
        rows = [take(row) for row in self._records()]
        columns = [rows] if len(chosen) == 1 else zip(*rows, strict=True)
        return [pl.Series("", cells, pl.String) for cells in columns]

    def _records(self) -> Iterator[list[str]]:
        """Yield the fields of each record; there are as many as in the first."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8", newline="\n")
        return records(lines, self.label, self.separator, len(self.names), self.header)

    def _numbers(self, name: str, column: pl.Series, comma: bool) -> pl.Series:
        """Return a column as Float64 with NaN for what is missing."""
        if column.dtype != pl.String:
            return column.fill_null(float("nan"))
        cells = _tidy(column)
        plain = cells.str.replace(",", ".", literal=True) if comma else cells
        values = plain.cast(pl.Float64, strict=False)
        wrong = values.is_null() & cells.is_not_null()
        if wrong.any():
            words = cells.str.to_lowercase()
            if not words.drop_nulls().is_in(["true", "false"]).all():
                raise self._not_numbers(name, cells, int(wrong.arg_max() or 0))
            values = (words == "true").cast(pl.Float64)
        return values.fill_null(float("nan"))

    def _not_numbers(self, name: str, cells: pl.Series, row: int) -> DataError:
        """Return the error for a column whose value in `row` is no number."""
        where = f"{self.label}: column {quote(name)}"
        number = row if self.numbers is None else int(self.numbers[row])
        found = f"{quote(cells[row])} in row {number + 1}"
        if re.match(_DATE, cells[row]):
            return DataError(
                f"{where} holds dates or times ({found}): turn them into numbers first"
            )
        if "," in cells[row] and _grouped(cells):
            return DataError(
                f"{where} holds numbers with commas ({found}): remove the thousands separators"
            )
        return DataError(
            f"{where} is not all numbers ({found}): declare it with "
            f"--categorical {quote_for_shell(name)}, or choose another"
        )


def read_text(path: Path) -> TextTable:
    """Return the table at `path` after checking that its rows are all of one length."""
    with parsing(path, "CSV"):
        check_memory(path, path.stat().st_size * _BYTES_PER_BYTE)
        data = plain_text(path)
        separator, quotes = separator_of(head(data)), b'"' in data
        data = squeeze(data, quotes) if separator == " " else data
        return _table(show_path(path), data, separator, quotes)


@dataclass(frozen=True)
class Dialect:
    """What the beginning of a text tells of all of it.

    Attributes:
        label: The path, fit for a message.
        separator: One character between fields.
        names: The columns, all different.
        header: How many lines the names take; 0 if there are none.
        dots: Whether a decimal point was seen.
    """

    label: str
    separator: str
    names: list[str]
    header: int
    dots: bool

    @property
    def note(self) -> str:
        """What to say when a column is not found."""
        return "" if self.header else _HEADERLESS

    def table(
        self, data: bytes, quotes: bool, numbers: NDArray[np.int64] | None = None
    ) -> TextTable:
        """Return the table of some text in this dialect."""
        plain = quotes or len(self.names) == 1
        return TextTable(
            self.label,
            self.names,
            self.note,
            data if plain else _numbered(data, self.separator, self.header, len(self.names)),
            self.separator,
            self.header,
            quotes,
            self.dots,
            numbers,
        )


def dialect_of(label: str, data: bytes, separator: str) -> Dialect:
    """Return the dialect of a text, or of its beginning."""
    first, lines = first_record(data, separator)
    if not first:
        raise DataError(f"{label}: line 1 is blank: begin with the header or the first row")
    sample = rows_of(head(data), separator)
    check_comment(label, first, sample[1:])
    header = lines if has_header(first, sample[1:], separator) else 0
    names = _unique(label, first) if header else [str(number) for number in range(len(first))]
    body = sample[bool(header) :]
    dots = any(DOT_NUMBER.fullmatch(field.strip()) for row in body for field in row)
    return Dialect(label, separator, names, header, dots)


def _table(label: str, data: bytes, separator: str, quotes: bool) -> TextTable:
    """Return the table in `data`."""
    dialect = dialect_of(label, data, separator)
    if dialect.header > data.count(b"\n"):
        raise no_rows(dialect)
    if not quotes:
        check_regular(label, data, separator, len(dialect.names))
    return dialect.table(data, quotes)


def no_rows(dialect: Dialect) -> DataError:
    """Return the error for a header above nothing."""
    has = f"has a header ({format_names(dialect.names)}) and no rows"
    return DataError(f"{dialect.label} {has}: nothing to read")


def _unique(label: str, first: list[str]) -> list[str]:
    """Return the names in a header, with pandas' names for those left empty."""
    names = [name or f"Unnamed: {number}" for number, name in enumerate(first)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{label} has several columns called {format_names(twice)}: give each its own name"
        )
    return names


def _numbered(data: bytes, separator: str, header: int, width: int) -> bytes:
    """Return the lines under a header of numbers.

    Whatever the file begins with, polars then sees digits: it takes a text that begins
    with the bytes of a compressed file (`x^` is enough) for one, and unpacks it.
    """
    start = data.index(b"\n") + 1 if header else 0
    numbers = separator.join(str(number) for number in range(width))
    return b"".join([numbers.encode(), b"\n", memoryview(data)[start:]])


def _grouped(cells: pl.Series) -> bool:
    """Return whether most cells are numbers, some of which have commas between thousands."""
    there = cells.drop_nulls()
    numbers = there.cast(pl.Float64, strict=False).is_not_null()
    grouped = there.str.contains(_GROUPED)
    return bool(grouped.any()) and 2 * int((numbers | grouped).sum()) > len(there)


def _tidy(cells: pl.Series) -> pl.Series:
    """Return cells without outer spaces, and null for the words that mean missing."""
    cells = cells.str.strip_chars()
    return cells.set(cells.is_in(NA_WORDS), None)


def records(
    lines: Iterable[str], label: str, separator: str, width: int, header: int
) -> Iterator[list[str]]:
    """Yield the fields of each record below the header; there must be `width` in all."""
    spaces = separator == " "
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=spaces, strict=True)
    try:
        for row in reader:
            fields = row or [""]
            if len(fields) != width:
                raise _ragged(label, reader.line_num, len(fields), width)
            if reader.line_num > header:
                yield fields
    except csv.Error as fault:
        raise DataError(
            f"{label}: line {reader.line_num} cannot be divided into fields ({fault}): "
            "check that all quotes are closed"
        ) from fault


def check_regular(label: str, data: bytes, separator: str, width: int, above: int = 0) -> None:
    """Refuse lines that do not have `width` fields, by the order of separators and line ends."""
    mark = separator.encode()
    others = bytes(set(range(256)) - {10, *mark})
    found = data.translate(None, others) + b"\n"
    expected = (mark * (width - 1) + b"\n") * found.count(b"\n")
    if found == expected:
        return
    common = min(len(found), len(expected))
    differ = np.frombuffer(found, "u1", common) != np.frombuffer(expected, "u1", common)
    line = int(differ.argmax()) // width
    fields = data.split(b"\n", line + 1)[line].count(mark) + 1
    raise _ragged(label, above + line + 1, fields, width)


def _ragged(label: str, line: int, fields: int, width: int) -> DataError:
    """Return the error for a line that is too long or too short."""
    has = "is blank or has 1 field" if fields == 1 else f"has {fields} fields"
    return DataError(
        f"{label}: line {line} {has} where the first line has {width}: correct it "
        "(a field that holds the separator needs double quotes)"
    )
