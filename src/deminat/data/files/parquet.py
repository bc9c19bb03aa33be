"""Parquet: the schema and the number of rows are read first, then only the chosen columns.

Selected rows are read slice by slice, so that no more than a slice, or the row groups that it
touches, is in memory besides them.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ...errors import DataError
from ..source import Rows
from .columns import HEAD, Side, categories, floats, quote, quote_for_shell
from .dialect import NA_WORDS
from .guards import check_memory, parsing, show_path

__all__ = ["open_parquet"]

_BYTES_PER_VALUE = 24  # as stored, as Float64, and in the frame that is returned
_SLICE_VALUES = 1 << 20
_MIN_SLICE_ROWS = 1 << 16
_LABELS = pl.Categorical, pl.Enum


def open_parquet(path: Path) -> "ParquetTable":
    """Return the table at `path`; no values are read."""
    with parsing(path, "Parquet"):
        file = pl.scan_parquet(path.absolute(), glob=False)
        schema = dict(file.collect_schema())
        rows = int(file.select(pl.len()).collect().item())
    if not schema or not rows:
        raise DataError(
            f"{show_path(path)} holds {rows} rows of {len(schema)} columns: nothing to read"
        )
    return ParquetTable(path, show_path(path), list(schema), schema, rows)


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose schema and number of rows are known."""

    path: Path
    label: str
    names: list[str]
    schema: dict[str, pl.DataType]
    rows: int
    note: str = ""

    @property
    def text_columns(self) -> list[str]:
        """The columns that hold text."""
        return [name for name, dtype in self.schema.items() if dtype in (pl.String, *_LABELS)]

    @property
    def date_columns(self) -> list[str]:
        """The columns that hold dates, with or without times."""
        return [name for name, dtype in self.schema.items() if dtype in (pl.Date, pl.Datetime)]

    def word_columns(self, names: list[str]) -> set[str]:
        """Return the columns of text of which not all first values are numbers."""
        texts = [name for name in names if self.schema[name] == pl.String]
        if not texts:
            return set()
        with parsing(self.path, "Parquet"):
            file = pl.scan_parquet(self.path.absolute(), glob=False)
            head = file.select(pl.nth(self._numbers(texts))).head(HEAD).collect()
        return {column.name for column in head if _holds_words(column.alias(""))}

    def pick(self, names: list[str], labels: Collection[str], rows: Rows | None = None) -> Side:
        """Return columns as a frame of Float64 and Enum."""
        labels = self._labels(names, labels)
        count = self.rows if rows is None else len(rows)
        check_memory(self.path, count * len(names) * _BYTES_PER_VALUE)
        with parsing(self.path, "Parquet"):
            return self._values(self._read(names, rows), names, labels, rows)

    def pieces(self, names: list[str], labels: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, a slice at a time."""
        labels = self._labels(names, labels)
        with parsing(self.path, "Parquet"):
            for start, frame in self._slices(names):
                rows = np.arange(start, start + frame.height)
                yield self._values(frame, names, labels, rows)

    def _labels(self, names: list[str], declared: Collection[str]) -> set[str]:
        """Return the columns that are categorical, declared or by type; refuse unusable types."""
        labels = {name for name in names if name in declared or self.schema[name] in _LABELS}
        for name in names:
            dtype, where = self.schema[name], f"{self.label}: column {quote(name)}"
            if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
                raise DataError(f"{where} holds {dtype} values, not numbers: unpack or drop it")
            numeric = dtype.is_numeric() or dtype in (pl.Boolean, pl.Null, pl.String)
            if not numeric and name not in labels:  # text is checked later
                raise DataError(
                    f"{where} holds dates or times ({dtype}): turn them into numbers first"
                )
        return labels

    def _numbers(self, names: list[str]) -> list[int]:
        """Return the numbers of columns: polars reads a name such as ^.*$ as a pattern."""
        chosen = set(names)
        return [number for number, name in enumerate(self.names) if name in chosen]

    def _read(self, names: list[str], rows: Rows | None) -> pl.DataFrame:
        """Return columns of some rows, or of all."""
        if rows is None:
            frame = pl.read_parquet(self.path.absolute(), columns=self._numbers(names), glob=False)
            height = frame.height
        else:
            frames, height = [], 0
            for start, part in self._slices(names):
                height = start + part.height
                first, last = np.searchsorted(rows, [start, height])
                frames.append(part[rows[first:last] - start])
            frame = pl.concat(frames)
        if height != self.rows:
            raise DataError(
                f"{self.label} declares {self.rows} rows and holds {height}: write it again"
            )
        return frame

    def _slices(self, names: list[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield columns of all rows, slice by slice, with the number of the first row."""
        file = pl.scan_parquet(self.path.absolute(), glob=False)
        columns = file.select(pl.nth(self._numbers(names)))
        step = max(_MIN_SLICE_ROWS, _SLICE_VALUES // len(names))
        for start in range(0, self.rows, step):
            yield start, columns.slice(start, step).collect()

    def _values(
        self, frame: pl.DataFrame, names: list[str], labels: Collection[str], rows: Rows | None
    ) -> pl.DataFrame:
        """Return the columns as Float64 or Enum, in the order of `names`."""
        columns = {column.name: column.alias("") for column in frame}
        for name, column in columns.items():
            is_label = name in labels
            columns[name] = categories(column) if is_label else self._floats(name, column, rows)
        return pl.DataFrame({name: columns[name] for name in names})

    def _floats(self, name: str, column: pl.Series, rows: Rows | None) -> pl.Series:
        """Return a column as Float64; text is refused."""
        if column.dtype != pl.String or column.null_count() == len(column):
            return floats(column)
        row = column.is_not_null().arg_max() or 0
        number = row if rows is None else int(rows[row])
        raise DataError(
            f"{self.label}: column {quote(name)} is text ({quote(column[row])} in row "
            f"{number + 1}): declare it with --categorical {quote_for_shell(name)}, or store "
            "numbers"
        )


def _holds_words(column: pl.Series) -> bool:
    """Return whether a value is neither a number nor a word that means missing."""
    cells = column.str.strip_chars()
    numbers = cells.cast(pl.Float64, strict=False).is_not_null()
    return not (numbers | cells.is_in(NA_WORDS) | cells.is_null()).all()
