r"""Which rows carry the information: the log ratio of each pair, as a table.

The mutual information is the mean over pairs of $\log\frac{p(x, y)}{p(x)\,p(y)}$, so that each row
has its own share in it: above 0 the pair is more likely together than apart, below 0 less.
Rows go by their number in the file, counted from 0, also where others were dropped or not drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import DataError, printable
from ..results import MIResult
from ..runtime.atomic import check_writable, write_atomically

__all__ = ["check_path", "save", "table"]

_COLUMNS = 20  # of x and y together, up to which they are written along
_SUFFIXES = (".parquet", ".csv")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


def check_path(path: Path) -> Path:
    """Return where the table goes, or refuse at once a place where it cannot be written."""
    return check_writable(path, _SUFFIXES, "a table of rows")


def table(results: Sequence[MIResult], sides: Sequence[Any] = ()) -> pl.DataFrame:
    """Return a row for each pair: its number, its x and y if they are few columns, its log ratio.

    Args:
        results: Of the same pairs; of several, each has a column called after its method.
        sides: Frames or arrays (n, d) of these pairs.
    """
    n, rows = results[0].n, results[0].rows
    columns: dict[str, Any] = {"row": np.arange(n) if rows is None else rows}
    told = [_columns(side, name) for side, name in zip(sides, "xy", strict=False)]
    if all(told) and sum(map(len, told)) <= _COLUMNS:
        for side, name in zip(told, "xy", strict=False):
            for column, values in side.items():
                columns[column if column not in columns else f"{name}: {column}"] = values
    for result in results:
        name = "pointwise" if len(results) == 1 else f"pointwise {result.method}"
        columns[name if name not in columns else f"{name} (nats)"] = result.pointwise
    return pl.DataFrame(columns)


def save(path: Path, frame: pl.DataFrame) -> None:
    """Write the table; one that is there already stays until the new one is whole."""
    is_csv = path.suffix.lower() == ".csv"
    frame = _inert(frame) if is_csv else frame
    try:
        write_atomically(
            path, lambda draft: (frame.write_csv if is_csv else frame.write_parquet)(draft)
        )
    except pl.exceptions.PolarsError as error:  # a full disk, among others
        raise DataError(f"cannot write {printable(path, 300)}: {printable(error, 200)}") from error


def _columns(side: Any, name: str) -> dict[str, Any]:
    """Return the columns of a side by name; none if it has too many or no columns."""
    if isinstance(side, pl.DataFrame):
        return {column.name: column.alias("") for column in side}
    array = np.asarray(side)
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] > _COLUMNS):
        return {}
    parts = array.reshape(len(array), -1).T
    return {name if len(parts) == 1 else f"{name}{j}": part for j, part in enumerate(parts)}


def _inert(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose names and words no spreadsheet takes for formulas."""
    columns = {}
    for column in frame:
        name = f"'{column.name}" if column.name.startswith(_FORMULAS) else column.name
        words = column.alias("")
        if not words.dtype.is_numeric() and words.dtype != pl.Boolean:
            words = words.cast(pl.String)
            risky = words.str.contains(r"^[=+\-@\t\r]").fill_null(False)
            words = pl.select(pl.when(risky).then(pl.lit("'") + words).otherwise(words)).to_series()
        if name in columns:
            raise DataError(f"two columns would be called {name!r}: write .parquet instead")
        columns[name] = words
    return pl.DataFrame(columns)
