r"""The dialect of a text table, guessed from its first lines.

Text is decoded by its byte order mark, UTF-8 without one, and every line end becomes `\n`. The
dialect is the separator, the names of the columns, and whether there is a header.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Self

import numpy as np

from ...errors import DataError
from .columns import format_names
from .guards import show_path

__all__ = ["NA_WORDS", "Dialect", "decoded", "squeeze"]

NA_WORDS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"),
    *("#N/A", "#NA", "<NA>", ".", "?", "-"),  # of spreadsheets, pandas, statistics packages
)
# Byte order marks. That of UTF-32-LE begins with that of UTF-16-LE, so it comes first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|infinity)", re.I | re.A)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?", re.A)
_DOT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", re.A)
_SAMPLE_BYTES = 1 << 20
_SAMPLE_LINES = 200
_NO_HEADER = " (there is no header: the first row is all numbers, so columns go by number)"


@dataclass(frozen=True)
class Dialect:
    """The form of a text table.

    Attributes:
        label: The path, for messages.
        names: The columns, all different.
        separator: One character between fields.
        quotes: Whether there are any quotes.
        header: The number of lines of the header; 0 if there is none.
        dots: Whether the first lines contain a decimal point.
    """

    label: str
    names: list[str]
    separator: str
    quotes: bool
    header: int
    dots: bool

    @classmethod
    def guess(cls, label: str, data: bytes, quotes: bool) -> Self:
        """Return the dialect of a text, or of its beginning; `quotes` are those of all of it."""
        if not data:
            raise DataError(f"{label} is empty: give a file with rows")
        separator = _separator_of(data)
        data = squeeze(data, separator, quotes)
        first, lines = _first_record(data, separator)
        if not first:
            raise DataError(f"{label}: line 1 is blank: begin with the header or the first row")
        sample = _sample_rows(_sample_lines(data), separator)
        _check_comment(label, first, sample[1:])
        header = lines if _has_header(first, sample[1:], separator) else 0
        # Pandas' names for columns without one.
        named = [name or f"Unnamed: {number}" for number, name in enumerate(first)]
        names = named if header else [str(number) for number in range(len(first))]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            shown = format_names(repeated)
            raise DataError(f"{label} has several columns called {shown}: give each its own name")
        body = sample[bool(header) :]
        dots = any(_DOT_NUMBER.fullmatch(field.strip()) for row in body for field in row)
        return cls(label, names, separator, quotes, header, dots)

    @property
    def note(self) -> str:
        """What a message adds when a column is not found."""
        return "" if self.header else _NO_HEADER

    def number_columns(self, lines: bytes | memoryview) -> bytes:
        """Return lines below a header 0, 1, 2, ... of as many numbers as there are columns.

        Polars decompresses a text that begins like a compressed file, and `x^` is enough for that.
        """
        numbers = self.separator.join(str(number) for number in range(len(self.names)))
        return b"".join([numbers.encode(), b"\n", lines])

    def records(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Yield the fields of each record below the header; refuse too many or too few."""
        spaces = self.separator == " "
        reader = csv.reader(lines, delimiter=self.separator, skipinitialspace=spaces, strict=True)
        try:
            for row in reader:
                fields = row or [""]
                if len(fields) != len(self.names):
                    raise self._width_error(reader.line_num, len(fields))
                if reader.line_num > self.header:
                    yield fields
        except csv.Error as error:
            raise DataError(
                f"{self.label}: line {reader.line_num} cannot be divided into fields ({error}): "
                "check that all quotes are closed"
            ) from error

    def check_regular(self, data: bytes, lines_above: int = 0) -> None:
        """Refuse lines without quotes that have too many or too few fields.

        With all other bytes removed, regular lines repeat one pattern of separators.
        """
        mark, width = self.separator.encode(), len(self.names)
        found = data.translate(None, bytes(set(range(256)) - {10, *mark})) + b"\n"
        expected = (mark * (width - 1) + b"\n") * found.count(b"\n")
        if found == expected:
            return
        common = min(len(found), len(expected))
        differ = np.frombuffer(found, "u1", common) != np.frombuffer(expected, "u1", common)
        line = int(differ.argmax()) // width
        fields = data.split(b"\n", line + 1)[line].count(mark) + 1
        raise self._width_error(lines_above + line + 1, fields)

    def _width_error(self, line: int, fields: int) -> DataError:
        """Return the error for a line with too many or too few fields."""
        has = "is blank or has 1 field" if fields == 1 else f"has {fields} fields"
        return DataError(
            f"{self.label}: line {line} {has} where the first line has {len(self.names)}: correct "
            "it (a field that contains the separator needs double quotes)"
        )

    def no_rows_error(self) -> DataError:
        """Return the error for a table that ends after its header."""
        names = format_names(self.names)
        return DataError(f"{self.label} has a header ({names}) and no rows: nothing to read")


def decoded(path: Path, block: int) -> Iterator[bytes]:
    r"""Yield text as UTF-8 without a byte order mark, with `\n` at line ends, by the block."""
    with path.open("rb") as stream:
        start = stream.read(4)
        mark = next((mark for mark in _MARKS if start.startswith(mark)), b"")
        encoding, position = _MARKS.get(mark, "utf-8"), len(mark)
        stream.seek(position)
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), True)
        while True:
            chunk = stream.read(block)
            pending = decoder.getstate()[0]
            try:
                text = decoder.decode(chunk, final=not chunk).encode()
            except UnicodeError as error:
                at = getattr(error, "start", 0)
                raise DataError(
                    f"{show_path(path)} is not {encoding.upper()} text (byte "
                    f"{(pending + chunk)[at]:#04x} at position {position - len(pending) + at}): "
                    "save it as UTF-8, e.g. iconv -f latin1 -t utf-8"
                ) from error
            if b"\0" in text:
                raise DataError(
                    f"{show_path(path)} is binary, or UTF-16 without a byte order mark: save it as "
                    "UTF-8 text"
                )
            position += len(chunk)
            yield text
            if not chunk:
                return


def _separator_of(data: bytes) -> str:
    """Return the separator; a comma if there is a single column.

    Separators that give all rows the same number of fields come first, then those that turn more
    of the fields into numbers. Since text is full of spaces, they count only if they make all
    fields numbers or nothing else separates anything. Comments above a table are ignored.
    """
    lines = _sample_lines(data)
    lines = list(dropwhile(lambda line: line.startswith("#"), lines)) or lines
    tables = {mark: _sample_rows(lines, mark) for mark in "\t;|, "}
    spaced = tables.pop(" ")
    tables = {mark: rows for mark, rows in tables.items() if any(len(row) > 1 for row in rows)}
    regular = {
        mark: _share_numeric(rows, mark) for mark, rows in tables.items() if _is_regular(rows)
    }
    if _is_regular(spaced) and (not tables or _share_numeric(spaced, " ") == 1):
        regular[" "] = _share_numeric(spaced, " ")
    if regular:
        return max(regular, key=lambda mark: regular[mark])
    return max(tables, key=lambda mark: _agreement(tables[mark]), default=",")


def squeeze(data: bytes, separator: str, quotes: bool) -> bytes:
    """Return lines separated by spaces without outer and, if there are no quotes, repeated ones."""
    if separator != " ":
        return data
    if not quotes:
        data = re.sub(rb" +", b" ", data)
    return b"\n".join(line.strip(b" ") for line in data.split(b"\n"))


def _sample_lines(data: bytes) -> list[str]:
    """Return the first lines, enough to judge by."""
    lines = data[:_SAMPLE_BYTES].decode("utf-8", "ignore").split("\n")
    if len(data) > _SAMPLE_BYTES and len(lines) > 1:
        lines.pop()
    return lines[:_SAMPLE_LINES]


def _sample_rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the fields of each record; none if the lines cannot be divided so."""
    spaces = separator == " "
    texts = (line.strip(" ") if spaces else line for line in lines)
    try:
        rows = list(csv.reader(texts, delimiter=separator, skipinitialspace=spaces))
    except csv.Error:
        return []
    # A quoted field may continue beyond the sample.
    is_cut = len(rows) > 20 and any('"' in line for line in lines)
    return rows[:-1] if is_cut else rows


def _check_comment(label: str, first: Sequence[str], below: Sequence[Sequence[str]]) -> None:
    """Refuse a comment above a table: a line with "#" and another number of fields."""
    row = next((row for row in below if row and not row[0].startswith("#")), first)
    if first[0].startswith("#") and len(first) != len(row):
        has = "1 field" if len(first) == 1 else f"{len(first)} fields"
        raise DataError(
            f"{label}: line 1 begins with '#' and has {has} where a row has {len(row)}: delete "
            "the comments above the table, and the '#' if it stands before the header"
        )


def _is_regular(rows: list[list[str]]) -> bool:
    """Return whether all rows have the same number of fields, and more than one."""
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths.pop() > 1


def _agreement(rows: list[list[str]]) -> int:
    """Return how many rows have the most frequent number of fields above one."""
    return max(Counter(len(row) for row in rows if len(row) > 1).values())


def _share_numeric(rows: list[list[str]], separator: str) -> float:
    """Return the share of numbers among the fields below the first row."""
    fields = [field.strip() for row in rows[1:] or rows for field in row]
    numbers = [field for field in fields if _is_number(field, separator) or field in NA_WORDS]
    return len(numbers) / len(fields)


def _is_number(field: str, separator: str) -> bool:
    """Return whether a field is a number, with a decimal comma unless commas separate."""
    comma = separator != "," and _COMMA_NUMBER.fullmatch(field)
    return bool(comma or _NUMBER.fullmatch(field))


def _has_header(first: Sequence[str], below: Sequence[Sequence[str]], separator: str) -> bool:
    """Return whether the first row is a header: not all numbers, or numbers as pandas writes."""
    numbers = [_is_number(field, separator) for field in first]
    plain = all(number or field in NA_WORDS for number, field in zip(numbers, first, strict=True))
    if not plain or not any(numbers):
        return True
    return _counts_columns(first, below) or _follows_index(first, below)


def _counts_columns(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is 0, 1, 2, ...; just 0, 1 may be data."""
    if len(first) < 2 or list(first) != [str(number) for number in range(len(first))]:
        return False
    return len(first) > 2 or not all(_all_integers(row) for row in below)


def _follows_index(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is an empty corner, then numbers, above a column of labels."""
    corner, *names = first
    label = below[0][0].strip() if below and below[0] else ""
    return corner == "" and _all_integers(names) and (label == "0" or not _is_number(label, ","))


def _all_integers(fields: Sequence[str]) -> bool:
    """Return whether all fields are whole numbers."""
    return all(field.strip().lstrip("+-").isdecimal() for field in fields)


def _first_record(data: bytes, separator: str) -> tuple[list[str], int]:
    """Return the fields of the first record and its number of lines."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ")
    first = next(reader)
    return [field.strip() for field in first], reader.line_num
