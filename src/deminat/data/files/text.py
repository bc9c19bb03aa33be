"""Text tables in memory, such as CSV: all lines are checked before a column is parsed.

Every line must have as many fields as the first. Files without quotes, by far the most, are
checked and parsed as raw bytes. Files with quotes go through the csv module, which both divides and
parses them, so that the two steps cannot disagree.
"""

import io
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import itemgetter
from pathlib import Path

import polars as pl

from ...errors import DataError
from ..source import Rows
from .columns import HEAD, Side, categories, quote, quote_for_shell
from .dialect import NA_WORDS, Dialect, decoded, squeeze
from .guards import check_memory, parsing, show_path

__all__ = ["TextTable", "as_table", "parse", "read_text"]

_DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?$|^\d{1,2}:\d{2}(:\d{2}.*)?$"
_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*$"
_GROUPED = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
_IN_NUMBERS = r"[\s,_'%$€£]"  # may stand in a number, as people write it
_GLANCE = 10  # rows
_HEXADECIMAL = r"^0[xX][0-9a-fA-F]+$"
_BLOCK = 1 << 22  # bytes that are decoded together
_COPIES = 4  # of a file in memory: as read, as decoded, as strings, as numbers


def read_text(path: Path) -> "TextTable":
    """Return the table at `path` after checking that all its rows have the same width."""
    with parsing(path, "CSV"):
        check_memory(path, path.stat().st_size * _COPIES)
        data = b"".join(decoded(path, _BLOCK)).rstrip(b"\n ")
        dialect = Dialect.guess(show_path(path), data, quotes=b'"' in data)
        data = squeeze(data, dialect.separator, dialect.quotes)
        if dialect.header > data.count(b"\n"):
            raise dialect.no_rows_error()
        if not dialect.quotes:
            dialect.check_regular(data)
        return as_table(dialect, data)


def as_table(dialect: Dialect, data: bytes, numbers: Rows | None = None) -> "TextTable":
    """Return the table of some text; `numbers` are those of its rows in the file."""
    if not dialect.quotes and len(dialect.names) > 1:
        start = data.index(b"\n") + 1 if dialect.header else 0
        data = dialect.number_columns(memoryview(data)[start:])
    return TextTable(dialect.label, dialect.names, dialect.note, dialect, data, numbers)


def parse(
    data: bytes, separator: str, chosen: list[int], numeric: Collection[int] = ()
) -> pl.DataFrame:
    """Return columns, by number, of lines without quotes, as text or those in `numeric` as Float64.

    The lines are below a header of numbers. Other text in a numeric column is a ComputeError.
    """
    return pl.read_csv(
        data,
        columns=[str(number) for number in chosen],
        separator=separator,
        quote_char=None,
        infer_schema_length=0,
        schema_overrides={str(number): pl.Float64 for number in numeric},
    )


@dataclass(frozen=True)
class TextTable:
    """A text table in memory; values are parsed on request.

    `data` are lines of UTF-8; several columns without quotes have a header of numbers. `numbers`
    are those of the rows in the file, if they are not all.
    """

    label: str
    names: list[str]
    note: str
    dialect: Dialect
    data: bytes = field(repr=False)
    numbers: Rows | None = field(default=None, repr=False)

    @property
    def text_columns(self) -> list[str]:
        """The columns that may hold text: all."""
        return self.names

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        if self.dialect.quotes:
            with parsing(self.label, "CSV"):
                return sum(1 for _ in self._records())
        header = self.dialect.header if len(self.names) == 1 else 1
        return self.data.count(b"\n") + 1 - header

    def word_columns(self, names: list[str]) -> set[str]:
        """Return the columns in whose first rows no value is a number, a date or a time."""
        columns: dict[str, pl.Series] = {}
        with parsing(self.label, "CSV"):
            for count in (_GLANCE, HEAD):  # few rows show most columns of numbers
                columns = dict(zip(names, self._parse(names, (), count), strict=True))
                names = [name for name, cells in columns.items() if not _holds_numbers(cells)]
                if not names:
                    return set()
            return {name for name in names if _holds_words(columns[name])}

    def pick(self, names: list[str], labels: Collection[str], rows: Rows | None = None) -> Side:
        """Return columns as a frame of Float64 and Enum."""
        labels = frozenset(labels)
        with parsing(self.label, "CSV"):
            columns = dict(zip(names, self._parse(names, labels), strict=True))
            texts = [c for n, c in columns.items() if n not in labels and c.dtype == pl.String]
            comma = self._decimal_comma(texts)
            for name, cells in columns.items():
                is_label = name in labels
                values = categories(_tidy(cells)) if is_label else self._floats(name, cells, comma)
                columns[name] = values if rows is None else values.gather(rows)
            return pl.DataFrame(columns)

    def pieces(self, names: list[str], labels: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, which are few enough to be one piece."""
        yield self.pick(names, labels)

    def _decimal_comma(self, texts: list[pl.Series]) -> bool:
        """Return whether commas in the cells are decimal.

        Between semicolons 1,234 is 1.234; between tabs it may as well be a thousand.
        """
        separator, dots = self.dialect.separator, self.dialect.dots
        commas = [cells.filter(cells.str.contains(",", literal=True)) for cells in texts]
        dots = dots or any(cells.str.contains(".", literal=True).any() for cells in texts)
        thousands = all(cells.str.contains(_THOUSANDS).all() for cells in commas)
        return not dots and (separator == ";" or (separator != "," and not thousands))

    def _parse(
        self, names: list[str], labels: Collection[str], count: int | None = None
    ) -> list[pl.Series]:
        """Return the columns, of the first `count` rows or all, as strings or, numbers, Float64."""
        numbers = {name: number for number, name in enumerate(self.names)}
        chosen = [numbers[name] for name in names]
        if self.dialect.quotes or len(self.names) == 1:
            return self._parse_records(chosen, count)
        data = self.data
        if count is not None:
            data = b"".join(islice(io.BytesIO(data), count + 1))
        try:
            numeric = [numbers[name] for name in names if name not in labels]
            frame = parse(data, self.dialect.separator, chosen, numeric)
        except pl.exceptions.ComputeError:
            frame = parse(data, self.dialect.separator, chosen)
        return [frame.get_column(str(number)) for number in chosen]

    def _parse_records(self, chosen: list[int], count: int | None) -> list[pl.Series]:
        """Parse the first `count` records, or all, with the csv module."""
        rows = list(map(itemgetter(*chosen), islice(self._records(), count)))
        columns = [rows] if len(chosen) == 1 else zip(*rows, strict=True)
        return [pl.Series("", cells, pl.String) for cells in columns]

    def _records(self) -> Iterator[list[str]]:
        """Yield the fields of each record below the header."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8", newline="\n")
        return self.dialect.records(lines)

    def _floats(self, name: str, column: pl.Series, comma: bool) -> pl.Series:
        """Return a column as Float64; missing values become NaN."""
        if column.dtype != pl.String:
            return column.fill_null(float("nan"))
        cells = _tidy(column)
        plain = cells.str.replace(",", ".", literal=True) if comma else cells
        values = plain.cast(pl.Float64, strict=False)
        wrong = values.is_null() & cells.is_not_null()
        if wrong.any():
            words = cells.str.to_lowercase()
            if not words.drop_nulls().is_in(["true", "false"]).all():
                raise self._not_numeric_error(name, cells, int(wrong.arg_max() or 0))
            values = (words == "true").cast(pl.Float64)
        return values.fill_null(float("nan"))

    def _not_numeric_error(self, name: str, cells: pl.Series, row: int) -> DataError:
        """Return the error for a column whose value in `row` is not a number."""
        where = f"{self.label}: column {quote(name)}"
        number = row if self.numbers is None else int(self.numbers[row])
        found = f"{quote(cells[row])} in row {number + 1}"
        if re.match(_DATE, cells[row]):
            why = f"holds dates or times ({found}): turn them into numbers first"
        elif "," in cells[row] and _has_thousands(cells):
            why = f"holds numbers with commas ({found}): remove the thousands separators"
        else:
            declare = f"declare it with --categorical {quote_for_shell(name)}"
            why = f"is not all numbers ({found}): {declare}, or choose another"
        return DataError(f"{where} {why}")


def _holds_numbers(cells: pl.Series) -> bool:
    """Return whether a cell is a number, a date or a time, also one that is not read."""
    if cells.dtype != pl.String:
        return bool(cells.is_not_nan().any())
    present = _tidy(cells)
    numbers = present.str.replace_all(_IN_NUMBERS, "").cast(pl.Float64, strict=False)
    others = present.str.contains(f"{_DATE}|{_HEXADECIMAL}")
    return bool(numbers.is_not_null().any() or others.any())


def _holds_words(cells: pl.Series) -> bool:
    """Return whether a cell of a column without numbers is neither missing, true nor false."""
    if cells.dtype != pl.String:
        return False
    words = _tidy(cells).drop_nulls().str.to_lowercase()
    return not words.is_in(["true", "false"]).all()


def _has_thousands(cells: pl.Series) -> bool:
    """Return whether most cells are numbers, some of them with commas between thousands."""
    present = cells.drop_nulls()
    numbers = present.cast(pl.Float64, strict=False).is_not_null()
    grouped = present.str.contains(_GROUPED)
    return bool(grouped.any()) and 2 * int((numbers | grouped).sum()) > len(present)


def _tidy(cells: pl.Series) -> pl.Series:
    """Return cells without outer spaces, and null for the words that mean missing."""
    cells = cells.str.strip_chars()
    return cells.set(cells.is_in(NA_WORDS), None)
