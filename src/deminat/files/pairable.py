"""Columns of a table of which each may be paired with each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from deminat.errors import DataError
from deminat.files.columns import Table, named, resolve

__all__ = ["pairable"]


def pairable(
    table: Table,
    x: str | None,
    y: str | None,
    categorical: Sequence[str],
    apart: Sequence[str],
) -> tuple[pl.DataFrame, list[str], list[str] | None, list[str]]:
    """Return a frame, the names of x and y, and those that nobody named and cannot be read.

    Args:
        table: Where columns are.
        x: Columns, separated by commas, with the wildcards of file names; all that can be read as
            numbers or labels if None.
        y: Columns to pair those with; `None` for each other.
        categorical: Columns that hold labels rather than quantities.
        apart: Columns that are no side unless named.
    """
    labels = {resolve(table, name) for name in categorical}
    own = {resolve(table, name) for name in apart}
    xs = [name for name in table.names if name not in own] if x is None else named(table, x)
    ys = None if y is None else named(table, y)
    try:
        frame = _frame(table, [*xs, *(ys or [])], labels)
    except DataError:
        xs = _readable(table, xs, labels) if x is None and _is_sound(table) else []
        if not xs:
            raise
        frame = _frame(table, [*xs, *(ys or [])], labels)
    left_out = [n for n in table.names if n not in {*frame.columns, *own}] if x is None else []
    return frame, xs, ys, left_out


def _frame(table: Table, names: Sequence[str], labels: set[str]) -> pl.DataFrame:
    wanted = list(dict.fromkeys(names))
    (side,) = table.pick([wanted], labels)
    return pl.DataFrame(side, schema=wanted) if isinstance(side, np.ndarray) else side


def _is_sound(table: Table) -> bool:
    """Tell whether a table can be read at all: anything can be read as labels."""
    try:
        table.pick([table.names[:1]], set(table.names[:1]))
    except DataError:
        return False
    return True


def _readable(table: Table, names: list[str], labels: set[str]) -> list[str]:
    """Return the columns that can be read: of many in few readings, if few of them cannot."""
    try:
        table.pick([names], labels)
    except DataError:
        half = len(names) // 2
        parts = (names[:half], names[half:]) if half else ()
        return [name for part in parts for name in _readable(table, part, labels)]
    return names
