"""The dialect of a text table, found by looking: encoding, separator, header, decimal sign."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import Path

from ...errors import DataError
from .guards import show_path

__all__ = [
    "DOT_NUMBER",
    "NA_WORDS",
    "check_comment",
    "encoding_of",
    "first_record",
    "has_header",
    "head",
    "no_text",
    "plain_text",
    "refuse_binary",
    "rows_of",
    "separator_of",
    "squeeze",
]

NA_WORDS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"),
    *("#N/A", "#NA", "<NA>", ".", "?", "-"),  # of spreadsheets, pandas, statistics packages
)
DOT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", re.A)

# The mark of UTF-32-LE begins with that of UTF-16-LE, so the longer ones come first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|infinity)", re.I | re.A)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?", re.A)
_SAMPLE_BYTES = 1 << 20
_SAMPLE_LINES = 200


def plain_text(path: Path) -> bytes:
    r"""Return the text of a file as UTF-8 without mark, with `\n` between lines and none after."""
    data = _utf8(path.read_bytes(), path)
    refuse_binary(data, path)
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip(b"\n ")
    if not data:
        raise DataError(f"{show_path(path)} is empty: give a file with rows")
    return data


def refuse_binary(data: bytes, path: Path) -> None:
    """Refuse what no text holds."""
    if b"\0" in data:
        raise DataError(
            f"{show_path(path)} is binary, or UTF-16 without a byte order mark: save it as UTF-8 "
            "text"
        )


def _utf8(data: bytes, path: Path) -> bytes:
    """Return text in any encoding that says what it is as UTF-8."""
    encoding, mark = encoding_of(data)
    data = data.removeprefix(mark)
    if encoding == "utf-8" and data.isascii():
        return data
    try:
        text = data.decode(encoding)
        return data if encoding == "utf-8" else text.encode()
    except UnicodeError as fault:
        at = getattr(fault, "start", 0)
        raise no_text(path, encoding, data[at], at + len(mark)) from fault


def encoding_of(data: bytes) -> tuple[str, bytes]:
    """Return the encoding that a text says it has, and the mark that says so."""
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    return _MARKS.get(mark, "utf-8"), mark


def no_text(path: Path, encoding: str, byte: int, position: int) -> DataError:
    """Return the error for a byte that is no text."""
    return DataError(
        f"{show_path(path)} is not {encoding.upper()} text (byte {byte:#04x} at position "
        f"{position}): save it as UTF-8, e.g. iconv -f latin1 -t utf-8"
    )


def head(data: bytes) -> list[str]:
    """Return the first lines, enough to judge by."""
    lines = data[:_SAMPLE_BYTES].decode("utf-8", "ignore").split("\n")
    if len(data) > _SAMPLE_BYTES and len(lines) > 1:
        lines.pop()
    return lines[:_SAMPLE_LINES]


def rows_of(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the fields of each record; none if there can be no such fields."""
    spaces = separator == " "
    texts = (line.strip(" ") if spaces else line for line in lines)
    try:
        rows = list(csv.reader(texts, delimiter=separator, skipinitialspace=spaces))
    except csv.Error:
        return []
    # A quoted field may run on beyond the sample.
    cut = len(rows) > 20 and any('"' in line for line in lines)
    return rows[:-1] if cut else rows


def separator_of(lines: Sequence[str]) -> str:
    """Return the separator; a comma if there is a single column.

    One that gives all rows the same number of fields beats one that does not, then one that
    makes more of the fields numbers. Spaces count only if they make all fields numbers or
    if nothing else separates anything: text is full of them. So are comments above a table,
    which have no say.
    """
    lines = list(dropwhile(_is_comment, lines)) or lines
    tables = {mark: rows_of(lines, mark) for mark in "\t;|, "}
    spaced = tables.pop(" ")
    tables = {mark: rows for mark, rows in tables.items() if any(len(row) > 1 for row in rows)}
    regular = {mark: _share_numeric(rows, mark) for mark, rows in tables.items() if _regular(rows)}
    if _regular(spaced) and (not tables or _share_numeric(spaced, " ") == 1):
        regular[" "] = _share_numeric(spaced, " ")
    if regular:
        return max(regular, key=lambda mark: regular[mark])
    return max(tables, key=lambda mark: _agreement(tables[mark]), default=",")


def _is_comment(line: str) -> bool:
    return line.startswith("#")


def check_comment(label: str, first: Sequence[str], below: Sequence[Sequence[str]]) -> None:
    """Refuse a comment above a table, which is known by its sign and its number of fields."""
    row = next((row for row in below if row and not _is_comment(row[0])), first)
    if _is_comment(first[0]) and len(first) != len(row):
        has = "1 field" if len(first) == 1 else f"{len(first)} fields"
        raise DataError(
            f"{label}: line 1 begins with '#' and has {has} where a row has {len(row)}: delete "
            "the comments above the table, and the '#' if it stands before the header"
        )


def _regular(rows: list[list[str]]) -> bool:
    """Return whether all rows have the same number of fields, and more than one."""
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths.pop() > 1


def _agreement(rows: list[list[str]]) -> int:
    """Return how many rows have the commonest number of fields above one."""
    widths = [len(row) for row in rows if len(row) > 1]
    return max(widths.count(width) for width in set(widths))


def _share_numeric(rows: list[list[str]], separator: str) -> float:
    """Return the share of fields that are numbers, the first row aside."""
    fields = [field.strip() for row in rows[1:] or rows for field in row]
    numbers = [field for field in fields if _is_number(field, separator) or field in NA_WORDS]
    return len(numbers) / len(fields)


def _is_number(field: str, separator: str) -> bool:
    """Return whether a field is a number, with a decimal comma unless commas separate."""
    if _NUMBER.fullmatch(field):
        return True
    return separator != "," and bool(_COMMA_NUMBER.fullmatch(field))


def has_header(first: Sequence[str], below: Sequence[Sequence[str]], separator: str) -> bool:
    """Return whether the first row holds names: not all numbers, or numbers as pandas writes."""
    numbers = [_is_number(field, separator) for field in first]
    plain = all(number or field in NA_WORDS for number, field in zip(numbers, first, strict=True))
    if not plain or not any(numbers):
        return True
    return _counts_columns(first, below) or _follows_index(first, below)


def _counts_columns(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is 0, 1, 2, ...; if it is just 0, 1, that may be data."""
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


def squeeze(data: bytes, quoted: bool) -> bytes:
    """Return lines without outer spaces and, unless quotes may protect some, without doubles."""
    if not quoted:
        data = re.sub(rb" +", b" ", data)
    return b"\n".join(line.strip(b" ") for line in data.split(b"\n"))


def first_record(data: bytes, separator: str) -> tuple[list[str], int]:
    """Return the fields of the first record and how many lines it takes."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ")
    first = next(reader)
    return [field.strip() for field in first], reader.line_num
