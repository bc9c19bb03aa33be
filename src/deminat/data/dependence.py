"""Dependent rows: groups, copies of one observation, and time series."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm, rankdata

from ..errors import DataError
from ..results import Caution
from .arrays import as_column, as_times

__all__ = [
    "correlation_time",
    "gap_between",
    "group_codes",
    "label_copies",
    "merge_labels",
    "serial_warnings",
    "tied_times_warnings",
    "time_ranks",
]


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


def time_ranks(order: Any, keep: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the place in time of each row that is kept, counted from 0."""
    if order is None or isinstance(order, bool | np.bool_):
        return np.arange(int(keep.sum())) if order else None
    times = as_times(as_column(order, keep, "order"))
    return np.argsort(np.argsort(times, kind="stable"), kind="stable").astype(np.int64)


def tied_times_warnings(order: Any, keep: NDArray[np.bool_]) -> tuple[Caution, ...]:
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


def merge_labels(
    groups: NDArray[np.int64] | None, copies: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Return labels that are equal for rows of one group, and for groups that share a copy."""
    if groups is None or copies is None:
        return copies if groups is None else groups
    rows, first = np.arange(len(groups)), groups.max() + 1
    size = int(first + copies.max() + 1)
    linked = coo_array((np.ones(len(rows)), (groups, first + copies)), shape=(size, size))
    return np.asarray(connected_components(linked)[1][groups], dtype=np.int64)


_ATOM = 20  # times the usual multiplicity: a value of its own, such as zero, and no copy
_FEWEST = 20  # different rows, below which all are values of a table


def label_copies(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64] | None, tuple[Caution, ...]]:
    """Label the rows that are copies of one another (None where none are); what to tell."""
    sides = _row_codes(x), _row_codes(y)
    labels = _row_codes(np.stack(sides, axis=1).astype(np.float64))
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    n, distinct = len(labels), len(first)
    atoms = counts > max(_ATOM * np.median(counts), 0.01 * n)
    apart = [np.bincount(side)[side[first]] > counts for side in sides]
    atoms |= (counts > 1) & apart[0] & apart[1]
    copied = n - distinct - int((counts[atoms] - 1).sum())
    if copied == 0 or distinct < max(_FEWEST, 0.02 * n):
        return None, ()
    telling = [a for a, c in zip((x, y), sides, strict=True) if _spread(c[first], n) >= 0.9]
    if not telling or any(map(_is_table, telling)):
        return None, ()
    alone = np.flatnonzero(atoms[labels])
    labels[alone] = distinct + np.arange(len(alone))
    if copied <= 0.01 * n:
        return labels, ()
    told = Caution(
        "duplicates",
        f"{copied} of {n} rows repeat another row exactly",
        "Trained methods keep copies together and never take them for unpaired, others count each; "
        "find out why they are there",
    )
    return labels, (told,)


def _row_codes(a: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return an integer per row, equal for equal rows."""
    flat = np.ascontiguousarray(a.reshape(len(a), -1) + 0.0)  # -0.0 equals 0.0
    rows = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)


def _spread(codes: NDArray[np.int64], n: int) -> float:
    """Return the share of different values, those that are found in over 1% of n rows set aside."""
    counts = np.bincount(codes)
    counts = counts[(counts > 0) & (counts <= max(1, 0.01 * n))]
    return len(counts) / counts.sum() if counts.sum() else 0.0


def _is_table(a: NDArray[np.float64]) -> bool:
    """Tell whether so few values are possible, evenly spaced, that chance repeats them."""
    log_cells = 0.0
    for column in a.reshape(len(a), -1).T:
        values = np.unique(column)
        if len(values) == 1:
            continue
        steps = (values[-1] - values[0]) / np.diff(values).min()
        if steps > 4 * len(values):
            return False
        log_cells += np.log(steps + 1)
    return bool(log_cells < 2 * np.log(len(a)))


_COLUMNS = 32  # of a side that are looked at
_CHANCE = 1e-4  # of a false alarm, about
_TIMES = 3  # correlation times between two blocks
_LARGEST = 20  # at most so small a part of all rows
_NOISE = 4.0  # standard errors of a correlation that is no chance
_MEMORY = 4.0  # rows: what chance makes of few rows is shorter


def serial_warnings(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Caution, ...]:
    """Return what to tell of pairs x (n, ...), y (n, ...) whose neighbours are alike."""
    sides = [_ranks(side) for side in (x, y)]
    alike = [max(_autocorrelations(r, 1)[1] for r in side.T) for side in sides]
    limits = [norm.isf(_CHANCE / side.shape[1]) / math.sqrt(len(side)) for side in sides]
    if any(a <= limit for a, limit in zip(alike, limits, strict=True)):
        return ()
    told = Caution(
        "autocorrelated",
        "each row is like the one before, on both sides (rank correlations "
        f"{alike[0]:.2f} and {alike[1]:.2f}), so that rows are not independent",
        "Pass order=True (--order rows) if rows are in the order of time, groups= (--groups) if "
        "they come in groups, order=False (--order none) if they were merely sorted",
    )
    return (told,)


def gap_between(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[int, tuple[Caution, ...]]:
    """Return how many rows to leave out between blocks of rows in time, and what to tell."""
    longest = max(correlation_time(r) for side in (x, y) for r in _ranks(side).T)
    wanted, most = 1 + math.ceil(_TIMES * (longest - 1)), max(1, len(x) // _LARGEST)
    if wanted <= most or longest < _MEMORY:
        return min(wanted, most), ()
    told = Caution(
        "slow",
        f"rows are alike over some {longest:.0f} rows, and {len(x)} are too few to leave gaps of "
        f"{wanted} between blocks",
        "Read p-values near 0.05 with care; collect a longer series",
    )
    return most, (told,)


def _ranks(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks of some columns (n, d), centred."""
    flat = a.reshape(len(a), -1)
    some = np.linspace(0, flat.shape[1] - 1, min(_COLUMNS, flat.shape[1])).round().astype(int)
    ranks = rankdata(flat[:, some], axis=0)
    return np.asarray(ranks - ranks.mean(axis=0))


def _autocorrelations(a: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    """Return those of centred values (n,) at lags 0 to `lags`; of a constant, all 0."""
    size = next_fast_len(len(a) + lags, real=True)
    products = irfft(np.abs(rfft(a, size)) ** 2, size)[: lags + 1]
    return np.asarray(products / products[0] if products[0] > 0 else np.zeros(lags + 1))


def correlation_time(a: NDArray[np.float64]) -> float:
    """Return how many neighbours of centred values (n,) count for one."""
    rho = _autocorrelations(a, max(1, len(a) // 4))[1:]
    pairs = rho[: 2 * (len(rho) // 2)].reshape(-1, 2).sum(axis=1)
    end = np.flatnonzero(np.append(pairs, 0) <= 0)[0]
    return float(1 + 2 * max(pairs[:end].sum(), _beyond_chance(np.abs(rho), len(a))))


def _beyond_chance(rho: NDArray[np.float64], n: int) -> float:
    """Return the sum of the correlations that are no chance, by Bartlett's formula."""
    least = _NOISE / math.sqrt(n)
    return float(rho[rho > least * min(_NOISE, 1 + (rho[rho > least] ** 2).sum())].sum())
