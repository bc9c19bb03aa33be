r"""The log ratio of each pair, as a table.

The mutual information is the mean over pairs of $\log\frac{p(x, y)}{p(x)\,p(y)}$, so each row has
its own share. Above 0 the pair is more likely under the joint distribution than under independence,
below 0 less. Rows are numbered as in the file, from 0, also if others were dropped or not sampled.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ..results import MIResult

__all__ = ["table"]

_COLUMNS = 20  # of x and y together; more are not written


def table(results: Sequence[MIResult], sides: Sequence[Any] = ()) -> pl.DataFrame:
    """Return a row for each pair: its number, its x and y if they are few columns, its log ratio.

    Args:
        results: Of the same pairs; several have a column each, named by its method.
        sides: Frames or arrays (n, d) of these pairs.
    """
    n, rows = results[0].n, results[0].rows
    columns: dict[str, Any] = {"row": np.arange(n) if rows is None else rows}
    named = [(name, _columns(side, name)) for side, name in zip(sides, "xy", strict=False)]
    if all(side for _, side in named) and sum(len(side) for _, side in named) <= _COLUMNS:
        for name, side in named:
            for column, values in side.items():
                columns[column if column not in columns else f"{name}: {column}"] = values
    for result in results:
        name = "pointwise" if len(results) == 1 else f"pointwise {result.method}"
        columns[name if name not in columns else f"{name} (nats)"] = result.pointwise
    return pl.DataFrame(columns)


def _columns(side: Any, name: str) -> dict[str, Any]:
    """Return the columns of a side by name; none of an array of more axes or too many columns."""
    if isinstance(side, pl.DataFrame):
        return {column.name: column.alias("") for column in side}
    array = np.asarray(side)
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] > _COLUMNS):
        return {}
    parts = array.reshape(len(array), -1).T
    return {name if len(parts) == 1 else f"{name}{j}": part for j, part in enumerate(parts)}
