"""Text tables that are too long for memory: read block by block, once per request.

The first pass checks that every line has as many fields as the first, and counts the lines. Later
passes copy the chosen rows and columns of every block as text. The result is a short table in the
same dialect, which `text` parses as if it were the file. The rest of the file is not parsed: a
word among numbers goes unnoticed in a row that is not chosen.
"""

import csv
import io
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from ...errors import DataError
from ..source import Rows
from .columns import HEAD, Side
from .dialect import Dialect, decoded, squeeze
from .guards import check_memory, parsing, show_path
from .text import TextTable, as_table, parse, read_text

__all__ = ["LONG", "open_text"]

LONG = 1 << 26  # bytes; shorter files are read whole
BLOCK = 1 << 22  # bytes that are decoded together
_LONGEST_LINE = 1 << 28  # bytes
_RECORDS_PER_PIECE = 100_000  # of a table with quotes
_BYTES_PER_VALUE = 48  # as text, as a string, as a number


def open_text(path: Path) -> "TextTable | LongTable":
    """Return the table at `path` after checking that all its rows have the same width."""
    if path.stat().st_size <= LONG:
        return read_text(path)
    with parsing(path, "CSV"):
        quotes = any(b'"' in block for block in _blocks(path))
        dialect = Dialect.guess(show_path(path), next(_blocks(path), b""), quotes)
        table = LongTable(dialect.label, dialect.names, dialect.note, dialect, path)
        rows = table.count()
        if rows < 1:
            raise dialect.no_rows_error()
        return replace(table, rows=rows)


@dataclass(frozen=True)
class LongTable:
    """A text table that stays in its file."""

    label: str
    names: list[str]
    note: str
    dialect: Dialect
    path: Path
    rows: int = 0

    @property
    def text_columns(self) -> list[str]:
        """The columns that may hold text: all."""
        return self.names

    def count(self) -> int:
        """Return the number of rows after checking that each has as many fields as the first."""
        if self.dialect.quotes:
            return sum(1 for _ in self._records())
        lines = 0
        for block in self._bodies():
            self.dialect.check_regular(block, lines + self.dialect.header)
            lines += block.count(b"\n") + 1
        return lines

    def word_columns(self, names: list[str]) -> set[str]:
        """Return the columns in whose first rows no value is a number, a date or a time."""
        if not names:
            return set()
        texts, rows = [], 0
        with parsing(self.path, "CSV"):
            for text, count in self._extract(names):
                texts.append(text)
                rows += count
                if rows >= HEAD:
                    break
            return self._table(names, b"\n".join(texts), None).word_columns(names)

    def pick(self, names: list[str], labels: Collection[str], rows: Rows | None = None) -> Side:
        """Return columns as a frame of Float64 and Enum."""
        count = self.rows if rows is None else len(rows)
        check_memory(self.path, count * len(names) * _BYTES_PER_VALUE)
        with parsing(self.path, "CSV"):
            data = b"\n".join(text for text, _ in self._extract(names, rows))
            return self._table(names, data, rows).pick(names, labels)

    def pieces(self, names: list[str], labels: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, a block at a time."""
        first = 0
        with parsing(self.path, "CSV"):
            for text, count in self._extract(names):
                rows = np.arange(first, first + count)
                yield self._table(names, text, rows).pick(names, labels)
                first += count

    def _table(self, names: list[str], data: bytes, rows: Rows | None) -> TextTable:
        """Return the table of some rows and columns, of which `data` is the text."""
        # A single column whose last value is missing ends in a blank line, which needs its end.
        return as_table(replace(self.dialect, names=names, header=0), data + b"\n", rows)

    def _extract(self, names: list[str], rows: Rows | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield the text of some columns of some rows, or of all, and its number of rows."""
        places = [self.names.index(name) for name in names]
        if self.dialect.quotes:
            chosen = None if rows is None else set(rows.tolist())
            records = (
                [record[place] for place in places]
                for number, record in enumerate(self._records())
                if chosen is None or number in chosen
            )
            while piece := list(islice(records, _RECORDS_PER_PIECE)):
                yield self._write(piece), len(piece)
            return
        first = 0
        for block in self._bodies():
            count = block.count(b"\n") + 1
            if rows is None:
                yield self._columns(block, places), count
            else:
                start, end = np.searchsorted(rows, [first, first + count])
                if end > start:
                    lines = _lines(block, rows[start:end] - first)
                    yield self._columns(lines, places), int(end - start)
            first += count

    def _columns(self, lines: bytes, places: list[int]) -> bytes:
        """Return some columns of lines without quotes."""
        if len(self.names) == 1:
            return lines
        separator = self.dialect.separator
        frame = parse(self.dialect.number_columns(lines), separator, places)
        frame = frame.select(str(place) for place in places)
        text = frame.write_csv(include_header=False, separator=separator, quote_style="never")
        return text.encode().removesuffix(b"\n")

    def _write(self, records: Iterable[list[str]]) -> bytes:
        """Return records as text, every field in quotes."""
        out, separator = io.StringIO(), self.dialect.separator
        writer = csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerows(records)
        return out.getvalue().encode().removesuffix(b"\n")

    def _bodies(self) -> Iterator[bytes]:
        """Yield the lines below the header, in blocks without a newline at their end."""
        for number, lines in enumerate(self._squeezed()):
            if number == 0 and self.dialect.header:
                _, below, lines = lines.partition(b"\n")
                if not below:
                    continue
            yield lines

    def _records(self) -> Iterator[list[str]]:
        """Yield the fields of each record below the header."""
        blocks = (block.decode().split("\n") for block in self._squeezed())
        return self.dialect.records(f"{line}\n" for lines in blocks for line in lines)

    def _squeezed(self) -> Iterator[bytes]:
        """Yield whole lines, of spaces only those that separate."""
        for block in _blocks(self.path):
            yield squeeze(block, self.dialect.separator, self.dialect.quotes)


def _lines(block: bytes, places: Rows) -> bytes:
    """Return some of the lines of a block."""
    ends = np.append(np.flatnonzero(np.frombuffer(block, np.uint8) == 10), len(block))
    starts = np.append(0, ends[:-1] + 1)
    spans = zip(starts[places].tolist(), ends[places].tolist(), strict=True)
    return b"\n".join(block[start:end] for start, end in spans)


def _blocks(path: Path) -> Iterator[bytes]:
    r"""Yield whole lines as UTF-8 with `\n` between them; blank lines at the end are left out."""
    rest = b""
    for text in decoded(path, BLOCK):
        rest += text
        cut = rest.rfind(b"\n", 0, len(rest.rstrip(b"\n ")))
        if cut >= 0:
            yield rest[:cut]
            rest = rest[cut + 1 :]
        elif len(rest) > _LONGEST_LINE:
            raise DataError(f"{show_path(path)} has a line of over 268 MB: is it a table?")
    if rest := rest.rstrip(b"\n "):
        yield rest
