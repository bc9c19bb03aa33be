"""Text tables that are longer than memory should be: read block by block, again and again.

The first pass finds out that every line has as many fields as the first, and how many lines there
are. Each later one keeps of every block the rows and columns that were asked for, as text: a short
table in the same dialect, which `text` reads as if it were the file. What is not asked for is not
parsed: a word among numbers goes unnoticed in a row that is not drawn.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from .columns import Side
from .dialect import encoding_of, head, no_text, refuse_binary, separator_of, squeeze
from .guards import check_memory, parsing, show_path
from .text import Dialect, TextTable, check_regular, dialect_of, no_rows, read_text, records

__all__ = ["LONG", "LongTable", "open_text"]

LONG = 1 << 26  # bytes, up to which a file is read whole
BLOCK = 1 << 22  # bytes that are looked at together: as bytes, as text, as lines
_LONGEST_LINE = 1 << 28  # bytes
_PIECE = 100_000  # records with quotes
_BYTES_PER_VALUE = 48  # as text, as a string, as a number


def open_text(path: Path) -> TextTable | LongTable:
    """Return the table at `path` after checking that its rows are all of one length."""
    if path.stat().st_size <= LONG:
        return read_text(path)
    with parsing(path, "CSV"):
        first = next(_blocks(path), None)
        if first is None:
            raise DataError(f"{show_path(path)} is empty: give a file with rows")
        separator = separator_of(head(first))
        quotes = any(b'"' in block for block in _blocks(path))
        first = squeeze(first, quotes) if separator == " " else first
        table = LongTable(path, dialect_of(show_path(path), first, separator), quotes, 0)
        rows = table.count()
        if rows < 1:
            raise no_rows(table.dialect)
        return replace(table, rows=rows)


@dataclass(frozen=True)
class LongTable:
    """A text table that stays in its file."""

    path: Path
    dialect: Dialect
    quotes: bool
    rows: int

    @property
    def label(self) -> str:
        """The path, fit for a message."""
        return self.dialect.label

    @property
    def names(self) -> list[str]:
        """The columns, all different."""
        return self.dialect.names

    @property
    def note(self) -> str:
        """What else to say when a column is not found."""
        return self.dialect.note

    def count(self) -> int:
        """Return how many rows there are, each checked to have as many fields as the first."""
        if self.quotes:
            return sum(1 for _ in self._records())
        lines, width = 0, len(self.names)
        for block in self._bodies():
            above = lines + self.dialect.header
            check_regular(self.label, block, self.dialect.separator, width, above)
            lines += block.count(b"\n") + 1
        return lines

    def pick(
        self,
        groups: Sequence[list[str]],
        categorical: Collection[str],
        rows: NDArray[np.int64] | None = None,
    ) -> list[Side]:
        """Return one side for each group of columns."""
        wanted = [name for group in groups for name in group]
        count = self.rows if rows is None else len(rows)
        check_memory(self.path, count * len(wanted) * _BYTES_PER_VALUE)
        with parsing(self.path, "CSV"):
            short = self._kept_records if self.quotes else self._kept_lines
            return self._table(wanted, short(self._places(wanted), rows), rows).pick(
                groups, categorical
            )

    def pieces(self, group: list[str], categorical: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, a block at a time."""
        places, first = self._places(group), 0
        with parsing(self.path, "CSV"):
            for data, count in self._shortened(places):
                numbers = np.arange(first, first + count)
                yield from self._table(group, data, numbers).pick([group], categorical)
                first += count

    def _places(self, wanted: Sequence[str]) -> list[int]:
        return [self.names.index(name) for name in wanted]

    def _table(
        self, wanted: list[str], data: bytes, numbers: NDArray[np.int64] | None
    ) -> TextTable:
        """Return the table of some columns, whose text is `data`."""
        return replace(self.dialect, names=wanted, header=0).table(data, self.quotes, numbers)

    def _shortened(self, places: list[int]) -> Iterator[tuple[bytes, int]]:
        """Yield some columns of all rows, some rows at a time, with the number of rows."""
        if not self.quotes:
            for block in self._bodies():
                yield self._columns(block, places), block.count(b"\n") + 1
            return
        rows: list[list[str]] = []
        for row in self._records():
            rows.append([row[place] for place in places])
            if len(rows) == _PIECE:
                yield self._written(rows), len(rows)
                rows = []
        if rows:
            yield self._written(rows), len(rows)

    def _kept_lines(self, places: list[int], rows: NDArray[np.int64] | None) -> bytes:
        """Return some rows and columns as text without quotes."""
        kept, first = [], 0
        for block in self._bodies():
            count = block.count(b"\n") + 1
            lines = block if rows is None else _lines(block, _within(rows, first, count))
            if rows is None or lines:
                kept.append(self._columns(lines, places))
            first += count
        return b"\n".join(kept)

    def _kept_records(self, places: list[int], rows: NDArray[np.int64] | None) -> bytes:
        """Return some rows and columns as text with quotes."""
        drawn = None if rows is None else set(rows.tolist())
        found = (
            [row[place] for place in places]
            for number, row in enumerate(self._records())
            if drawn is None or number in drawn
        )
        return self._written(found)

    def _columns(self, lines: bytes, places: list[int]) -> bytes:
        """Return some columns of lines without quotes."""
        if len(self.names) == 1:
            return lines
        separator = self.dialect.separator
        numbers = separator.join(str(number) for number in range(len(self.names)))
        frame = pl.read_csv(
            b"".join([numbers.encode(), b"\n", lines]),
            columns=sorted(places),
            separator=separator,
            quote_char=None,
            infer_schema_length=0,
        ).select(str(place) for place in places)
        kept = frame.write_csv(include_header=False, separator=separator, quote_style="never")
        return kept.encode().removesuffix(b"\n")

    def _written(self, rows: Iterator[list[str]] | list[list[str]]) -> bytes:
        """Return records as text, every field in quotes."""
        out = io.StringIO()
        writer = csv.writer(
            out,
            delimiter=self.dialect.separator,
            quoting=csv.QUOTE_ALL,
            lineterminator="\n",
        )
        writer.writerows(rows)
        return out.getvalue().encode().removesuffix(b"\n")

    def _bodies(self) -> Iterator[bytes]:
        """Yield lines below the header, in blocks without a line end at their end."""
        spaces = self.dialect.separator == " "
        for number, block in enumerate(_blocks(self.path)):
            lines = squeeze(block, self.quotes) if spaces else block
            if number == 0 and self.dialect.header:
                _, below, lines = lines.partition(b"\n")
                if not below:
                    continue
            yield lines

    def _records(self) -> Iterator[list[str]]:
        """Yield the fields of each record below the header."""
        spaces = self.dialect.separator == " "
        blocks = (squeeze(b, True) if spaces else b for b in _blocks(self.path))
        lines = (f"{line}\n" for block in blocks for line in block.decode().split("\n"))
        dialect = self.dialect
        return records(lines, self.label, dialect.separator, len(self.names), dialect.header)


def _within(rows: NDArray[np.int64], first: int, count: int) -> NDArray[np.int64]:
    """Return the places among `count` rows from `first` on of those that were drawn."""
    start, end = np.searchsorted(rows, [first, first + count])
    return rows[start:end] - first


def _lines(block: bytes, places: NDArray[np.int64]) -> bytes:
    """Return some of the lines of a block."""
    ends = np.append(np.flatnonzero(np.frombuffer(block, np.uint8) == 10), len(block))
    starts = np.append(0, ends[:-1] + 1)
    spans = zip(starts[places].tolist(), ends[places].tolist(), strict=True)
    return b"\n".join(block[start:end] for start, end in spans)


def _blocks(path: Path) -> Iterator[bytes]:
    r"""Yield whole lines as UTF-8 with `\n` between them; blank ones at the end are left out."""
    rest = b""
    for text in _decoded(path):
        rest += text
        cut = rest.rfind(b"\n", 0, len(rest.rstrip(b"\n ")))
        if cut >= 0:
            yield rest[:cut]
            rest = rest[cut + 1 :]
        elif len(rest) > _LONGEST_LINE:
            raise DataError(f"{show_path(path)} has a line of over 268 MB: is it a table?")
    if rest := rest.rstrip(b"\n "):
        yield rest


def _decoded(path: Path) -> Iterator[bytes]:
    r"""Yield the text of a file as UTF-8 without mark, with `\n` at the end of lines."""
    with path.open("rb") as stream:
        encoding, mark = encoding_of(stream.read(4))
        stream.seek(len(mark))
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), True)
        position = len(mark)
        while True:
            chunk = stream.read(BLOCK)
            held = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk).encode()
            except UnicodeError as fault:
                at = getattr(fault, "start", 0) - held
                byte = chunk[at] if 0 <= at < len(chunk) else 0
                raise no_text(path, encoding, byte, position + at) from fault
            refuse_binary(text, path)
            position += len(chunk)
            yield text
            if not chunk:
                return
