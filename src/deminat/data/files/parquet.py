"""Parquet: the schema and the number of rows first, then only the chosen columns.

Of a table from which rows are drawn, the file is read in slices, so that of what is not drawn no
more is in memory than a slice, or the row groups that it touches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import DataError
from .columns import Side, categories, floats, quote, quote_for_shell, split_groups
from .guards import check_memory, parsing, show_path

__all__ = ["ParquetTable", "open_parquet"]

# A value in memory: as read, as Float64, and in the array that is returned.
_BYTES_PER_VALUE = 24
_SLICE = 1 << 20  # values
_LEAST = 1 << 16  # rows of a slice


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose schema and number of rows are known and whose values are not read."""

    path: Path
    label: str
    names: list[str]
    schema: dict[str, pl.DataType]
    rows: int
    note: str = ""

    def pick(
        self,
        groups: Sequence[list[str]],
        categorical: Collection[str],
        rows: NDArray[np.int64] | None = None,
    ) -> list[Side]:
        """Return one side for each group of columns."""
        wanted = {name for group in groups for name in group}
        labels = self._labels(wanted, categorical)
        check_memory(
            self.path, (self.rows if rows is None else len(rows)) * len(wanted) * _BYTES_PER_VALUE
        )
        with parsing(self.path, "Parquet"):
            frame = self._all(wanted) if rows is None else self._some(wanted, rows)
            return split_groups(self._values(frame, labels, rows), groups)

    def pieces(self, group: list[str], categorical: Collection[str]) -> Iterator[Side]:
        """Yield columns of all rows, a slice at a time."""
        labels = self._labels(set(group), categorical)
        with parsing(self.path, "Parquet"):
            for start, frame in self._slices(set(group)):
                numbers = np.arange(start, start + frame.height)
                yield split_groups(self._values(frame, labels, numbers), [group])[0]

    def _labels(self, wanted: set[str], categorical: Collection[str]) -> set[str]:
        """Return which columns are categories; refuse those that are of no use."""
        labels = {name for name in wanted if name in categorical or _is_label(self.schema[name])}
        for name in wanted:
            self._check_type(name, name in labels)
        return labels

    def _all(self, wanted: set[str]) -> pl.DataFrame:
        # By number: a column called ^.*$ would be taken for a pattern.
        numbers = [number for number, name in enumerate(self.names) if name in wanted]
        frame = pl.read_parquet(self.path.absolute(), columns=numbers, glob=False)
        self._check_height(frame.height)
        return frame

    def _some(self, wanted: set[str], rows: NDArray[np.int64]) -> pl.DataFrame:
        """Return the rows that were drawn."""
        frames, end = [], 0
        for start, frame in self._slices(wanted):
            end = start + frame.height
            first, last = np.searchsorted(rows, [start, end])
            frames.append(frame[rows[first:last] - start])
        self._check_height(end)
        return pl.concat(frames)

    def _slices(self, wanted: set[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the rows of a file, some at a time, with the number of the first."""
        some = pl.scan_parquet(self.path.absolute(), glob=False).select(
            pl.nth([number for number, name in enumerate(self.names) if name in wanted])
        )
        step = max(_LEAST, _SLICE // len(wanted))
        for start in range(0, self.rows, step):
            yield start, some.slice(start, step).collect()

    def _check_height(self, height: int) -> None:
        if height != self.rows:
            raise DataError(
                f"{self.label} declares {self.rows} rows and holds {height}: write it again"
            )

    def _check_type(self, name: str, is_label: bool) -> None:
        """Refuse what is neither a number nor declared to be a category."""
        dtype = self.schema[name]
        where = f"{self.label}: column {quote(name)}"
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise DataError(f"{where} holds {dtype} values, not numbers: unpack or drop it")
        if is_label or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null, pl.String):
            return
        raise DataError(f"{where} holds dates or times ({dtype}): turn them into numbers first")

    def _values(
        self, frame: pl.DataFrame, labels: Collection[str], rows: NDArray[np.int64] | None
    ) -> dict[str, pl.Series]:
        """Return the columns as Float64 or Enum."""
        columns = {column.name: column.alias("") for column in frame}
        return {
            name: categories(column) if name in labels else self._numbers(name, column, rows)
            for name, column in columns.items()
        }

    def _numbers(self, name: str, column: pl.Series, rows: NDArray[np.int64] | None) -> pl.Series:
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


def open_parquet(path: Path) -> ParquetTable:
    """Return the table at `path`; its values are not read yet."""
    with parsing(path, "Parquet"):
        file = pl.scan_parquet(path.absolute(), glob=False)
        schema = dict(file.collect_schema())
        rows = int(file.select(pl.len()).collect().item())
    if not schema or not rows:
        raise DataError(
            f"{show_path(path)} holds {rows} rows of {len(schema)} columns: nothing to read"
        )
    return ParquetTable(path, show_path(path), list(schema), schema, rows)


def _is_label(dtype: pl.DataType) -> bool:
    """Return whether the file itself says that a column is categorical."""
    return dtype in (pl.Categorical, pl.Enum)
