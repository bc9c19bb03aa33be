"""The order of lines and columns of a heat map: alike beside each other, and not too many."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

__all__ = ["MOST_SHOWN", "clustered", "pairs_to_show"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_SHOWN = 150  # lines or columns that can be read


def clustered(lines: Sequence[str], columns: Sequence[str], nats: Array) -> tuple[Places, Places]:
    """Return which lines and columns to show, and in which order.

    If there are many these are the ones with the largest values. Those that share information
    are beside each other: the distance of two columns is the root of exp(-2 I), which for normal
    columns is the root of 1 - r^2. Where lines are not columns, those with similar values are.

    Args:
        lines: Names.
        columns: Names.
        nats: (lines, columns), NaN where there is none.
    """
    known = np.nan_to_num(nats)
    if list(lines) == list(columns):
        chosen = _strongest(known.max(axis=1))
        ordered = chosen[_by_distance(np.exp(-known[np.ix_(chosen, chosen)]))]
        return ordered, ordered
    rows, others = _strongest(known.max(axis=1)), _strongest(known.max(axis=0))
    some = known[np.ix_(rows, others)]
    return rows[_by_values(some)], others[_by_values(some.T)]


def pairs_to_show(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the pairs of the columns with the largest values, and the names of all columns.

    Args:
        table: Pairs `x` and `y`, the largest value first.
    """
    both = table.select(name=pl.concat_list("x", "y")).explode("name")
    every, xs, ys = (
        column.unique(maintain_order=True) for column in (both["name"], table["x"], table["y"])
    )
    if len(xs) + len(ys) > len(every):  # some columns are on both sides
        xs = ys = every
    first, second = (names.head(MOST_SHOWN).to_list() for names in (xs, ys))
    chosen = pl.col("x").is_in(first) & pl.col("y").is_in(second)
    return table.filter(chosen), every.to_list()


def _strongest(values: Array) -> Places:
    """Return the places of the largest values, in rising order."""
    return np.sort(np.argsort(-values, kind="stable")[:MOST_SHOWN])


def _by_distance(distances: Array) -> Places:
    if len(distances) < 3:
        return np.arange(len(distances))
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0)
    return np.asarray(leaves_list(linkage(squareform(distances, checks=False), "average")))


def _by_values(rows: Array) -> Places:
    return (
        np.asarray(leaves_list(linkage(rows, "average"))) if len(rows) > 2 else np.arange(len(rows))
    )
