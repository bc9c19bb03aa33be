"""Parquet: the schema and the number of rows first, then only the chosen columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deminat.errors import DataError
from deminat.files.checks import check_room, foreign, shown
from deminat.files.columns import Side, categories, floats, quoted, split

__all__ = ["ParquetTable", "open_parquet"]

# A value in memory: as read, as Float64, and in the array that is returned.
_BYTES_PER_VALUE = 24


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose schema and number of rows are known and whose values are not read."""

    path: Path
    label: str
    names: list[str]
    schema: dict[str, pl.DataType]
    rows: int
    note: str = ""

    def pick(self, groups: Sequence[list[str]], categorical: Collection[str]) -> list[Side]:
        """Return one side for each group of columns."""
        wanted = {name for group in groups for name in group}
        labels = {name for name in wanted if name in categorical or _is_label(self.schema[name])}
        for name in wanted:
            self._check_type(name, name in labels)
        check_room(self.path, self.rows * len(wanted) * _BYTES_PER_VALUE)
        with foreign(self.path, "Parquet"):
            # By number: a column called ^.*$ would be taken for a pattern.
            numbers = [number for number, name in enumerate(self.names) if name in wanted]
            frame = pl.read_parquet(self.path.absolute(), columns=numbers, glob=False)
            return split(self._values(frame, labels), groups)

    def _check_type(self, name: str, is_label: bool) -> None:
        """Refuse what is neither a number nor declared to be a category."""
        dtype = self.schema[name]
        where = f"{self.label}: column {quoted(name)}"
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise DataError(f"{where} holds {dtype} values, not numbers: unpack or drop it")
        if is_label or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null, pl.String):
            return
        raise DataError(f"{where} holds dates or times ({dtype}): turn them into numbers first")

    def _values(self, frame: pl.DataFrame, labels: Collection[str]) -> dict[str, pl.Series]:
        """Return the columns as Float64 or Enum."""
        if frame.height != self.rows:
            raise DataError(
                f"{self.label} declares {self.rows} rows and holds {frame.height}: write it again"
            )
        columns = {column.name: column.alias("") for column in frame}
        return {
            name: categories(column) if name in labels else self._numbers(name, column)
            for name, column in columns.items()
        }

    def _numbers(self, name: str, column: pl.Series) -> pl.Series:
        """Return a column as Float64; text is refused."""
        if column.dtype != pl.String or column.null_count() == len(column):
            return floats(column)
        row = column.is_not_null().arg_max() or 0
        raise DataError(
            f"{self.label}: column {quoted(name)} is text ({quoted(column[row])} in row "
            f"{row + 1}): declare it with --categorical {quoted(name)}, or store numbers"
        )


def open_parquet(path: Path) -> ParquetTable:
    """Return the table at `path`; its values are not read yet."""
    with foreign(path, "Parquet"):
        file = pl.scan_parquet(path.absolute(), glob=False)
        schema = dict(file.collect_schema())
        rows = int(file.select(pl.len()).collect().item())
    if not schema or not rows:
        raise DataError(
            f"{shown(path)} holds {rows} rows of {len(schema)} columns: nothing to read"
        )
    return ParquetTable(path, shown(path), list(schema), schema, rows)


def _is_label(dtype: pl.DataType) -> bool:
    """Return whether the file itself says that a column is categorical."""
    return dtype in (pl.Categorical, pl.Enum)
