"""Rows that know of each other: groups, places in time, and copies among groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .arrays import as_column, as_times
from .errors import DataError
from .results import Caution

__all__ = ["group_codes", "joined", "places", "tied"]


def group_codes(groups: Any, keep: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return an integer for each row that is kept, equal within a group."""
    if groups is None:
        return None
    names = as_column(groups, keep, "groups")
    if any(v is None or type(v).__name__ == "NAType" or v != v for v in names):
        raise DataError(
            "groups has missing values; name a group in every row (a new name for one that belongs "
            "to no other), or delete these rows: nan='omit' (--nan omit) looks at x and y alone"
        )
    texts = np.array([str(v) for v in names]) if names.dtype == object else names
    codes = np.unique(texts, return_inverse=True)[1].astype(np.int64)
    if codes.max() == 0:
        raise DataError("all rows are of one group: nothing can be held out; leave groups out")
    return codes


def places(order: Any, keep: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the place in time of each row that is kept, counted from 0."""
    if order is None or isinstance(order, bool | np.bool_):
        return np.arange(int(keep.sum())) if order else None
    times = as_times(as_column(order, keep, "order"))
    return np.argsort(np.argsort(times, kind="stable"), kind="stable").astype(np.int64)


def tied(order: Any, keep: NDArray[np.bool_]) -> tuple[Caution, ...]:
    """Say so where several rows have one time."""
    if order is None or isinstance(order, bool | np.bool_):
        return ()
    times = as_column(order, keep, "order")
    repeated = len(times) - len(np.unique(times.astype(str) if times.dtype == object else times))
    if repeated == 0:
        return ()
    told = Caution(
        "tied_times",
        f"{repeated} of {len(times)} rows have the time of another and were taken as they come",
        "If these are several series, pass groups= instead of order=",
    )
    return (told,)


def joined(
    groups: NDArray[np.int64] | None, copies: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Return labels that are equal for rows of one group, and for groups that share a copy."""
    if groups is None or copies is None:
        return copies if groups is None else groups
    rows, first = np.arange(len(groups)), groups.max() + 1
    size = int(first + copies.max() + 1)
    linked = coo_array((np.ones(len(rows)), (groups, first + copies)), shape=(size, size))
    return np.asarray(connected_components(linked)[1][groups], dtype=np.int64)
