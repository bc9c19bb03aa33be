r"""Dependent rows: groups, copies of one observation, and time series.

**Groups.** Rows of one group, such as the visits of a patient, are dependent. Splits keep them
together.

**Copies.** A copy of a pair on the other side of a split leaks the answer, and a copy among the
unpaired samples is a joint pair in disguise, which biases the estimate down. Yet equal rows are
natural where values are discrete. Equal rows count as copies if, apart from the repeats, nearly all
values of one side are distinct, and these are not the few, evenly spaced values of a discrete
variable. A row that is repeated far more often than others, such as (0, 0) of clipped data, is an
atom of the distribution and not a copy. Neither is a row whose two values also occur in other rows:
if zeros are frequent on both sides, independent variables have them together, and to merge such
rows would make x and y dependent.

**Time series.** $n$ rows with correlation time $\tau$ hold about $n/\tau$ independent ones, so two
slow series rise together over long stretches by chance, and a permutation test finds dependence
where there is none. Here $\tau = 1 + 2 \sum_k \rho_k$, with the autocorrelations $\rho_k$ summed
until a pair of adjacent terms is negative (Geyer), or over all terms that exceed their sampling
noise (Bartlett) if that sum is larger, as for periodic series. Adjacent rows that are similar on
both sides cause a warning. If the order in time is known, rows are split into blocks, with gaps of
a few correlation times between them.

References:
    Bartlett (1946), On the theoretical specification and sampling properties of autocorrelated
        time-series.
    Geyer (1992), Practical Markov chain Monte Carlo.
"""

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
from .source import Rows

__all__ = [
    "correlation_time",
    "gap_between",
    "group_codes",
    "label_copies",
    "merge_labels",
    "serial_warnings",
    "time_ranks",
]

Array = NDArray[np.float64]

# Copies
_ATOM = 20  # times the median number of repeats: a row repeated so often is not a copy
_COMMON = 0.01  # share of all rows beyond which a value is frequent
_FEW_COPIES = 0.01  # share of all rows up to which there is no warning
_MIN_DISTINCT = 20  # rows; with fewer, all values are discrete
_MIN_DISTINCT_SHARE = 0.02  # of all rows
_CONTINUOUS = 0.9  # share of distinct values on a side without repeats

# Time series
_COLUMNS = 32  # of a side that are tested
_FALSE_ALARMS = 1e-4  # rate at which independent rows cause a warning, about
_GAP_TIMES = 3  # correlation times between two blocks
_GAP_FRACTION = 20  # a gap is at most one 20th of all rows
_NOISE = 4.0  # standard errors of an autocorrelation that exceeds sampling noise
_SHORT_TIME = 4.0  # rows; sampling noise in a few rows gives correlation times below it


def group_codes(groups: Any, keep: NDArray[np.bool_]) -> Rows | None:
    """Return an integer for each row in `keep`, equal within a group."""
    if groups is None:
        return None
    names = as_column(groups, keep, "groups")
    if any(v is None or type(v).__name__ == "NAType" or v != v for v in names):
        raise DataError(
            "groups has missing values: name a group in every row (a new name for a row on its "
            "own), or delete these rows; nan='omit' (--nan omit) applies to x and y only"
        )
    texts = np.array([str(v) for v in names]) if names.dtype == object else names
    codes = np.unique(texts, return_inverse=True)[1].astype(np.int64)
    if codes.max() == 0:
        raise DataError("all rows are of one group: none can be held out; leave groups out")
    return codes


def merge_labels(groups: Rows | None, copies: Rows | None) -> Rows | None:
    """Return labels that are equal for rows of one group, and for groups that share a copy."""
    if groups is None or copies is None:
        return copies if groups is None else groups
    first = groups.max() + 1
    size = int(first + copies.max() + 1)
    links = coo_array((np.ones(len(groups)), (groups, first + copies)), shape=(size, size))
    return np.asarray(connected_components(links)[1][groups], dtype=np.int64)


def label_copies(x: Array, y: Array) -> tuple[Rows | None, tuple[Caution, ...]]:
    """Return labels (n,) that are equal for copies, or None without copies, and warnings."""
    codes = _row_codes(x), _row_codes(y)
    labels = _row_codes(np.stack(codes, axis=1).astype(np.float64))
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    n, distinct = len(labels), len(first)
    atoms = counts > max(_ATOM * np.median(counts), _COMMON * n)
    apart = [np.bincount(code)[code[first]] > counts for code in codes]
    atoms |= (counts > 1) & apart[0] & apart[1]
    copied = n - distinct - int((counts[atoms] - 1).sum())
    if copied == 0 or distinct < max(_MIN_DISTINCT, _MIN_DISTINCT_SHARE * n):
        return None, ()
    sides = zip((x, y), codes, strict=True)
    continuous = [side for side, code in sides if _distinct_share(code[first], n) >= _CONTINUOUS]
    if not continuous or any(map(_is_discrete, continuous)):
        return None, ()
    single = np.flatnonzero(atoms[labels])
    labels[single] = distinct + np.arange(len(single))
    if copied <= _FEW_COPIES * n:
        return labels, ()
    caution = Caution(
        "duplicates",
        f"{copied} of {n} rows repeat another row exactly",
        "Trained methods keep copies in one fold and never pair them as unpaired samples; other "
        "methods count each copy. Find out why they are there",
    )
    return labels, (caution,)


def time_ranks(order: Any, keep: NDArray[np.bool_]) -> tuple[Rows | None, tuple[Caution, ...]]:
    """Return the rank in time of each row in `keep`, counted from 0; warn of equal times."""
    if order is None or isinstance(order, bool | np.bool_):
        return np.arange(int(keep.sum())) if order else None, ()
    times = as_column(order, keep, "order")
    ranks = np.argsort(np.argsort(as_times(times), kind="stable"), kind="stable").astype(np.int64)
    repeated = len(times) - len(np.unique(times.astype(str) if times.dtype == object else times))
    if repeated == 0:
        return ranks, ()
    message = f"{repeated} of {len(times)} rows have the same time as another and stay as they come"
    advice = "If these are several series, pass groups= instead of order="
    return ranks, (Caution("tied_times", message, advice),)


def serial_warnings(x: Array, y: Array) -> tuple[Caution, ...]:
    """Return a warning if adjacent rows of x (n, ...) and y (n, ...) are similar on both sides."""
    sides = [_ranks(side) for side in (x, y)]
    largest = [max(_autocorrelations(r, 1)[1] for r in side.T) for side in sides]
    limits = [norm.isf(_FALSE_ALARMS / side.shape[1]) / math.sqrt(len(side)) for side in sides]
    if any(a <= limit for a, limit in zip(largest, limits, strict=True)):
        return ()
    caution = Caution(
        "autocorrelated",
        "adjacent rows are similar on both sides (rank autocorrelations "
        f"{largest[0]:.2f} and {largest[1]:.2f}), so rows are not independent",
        "Pass order=True (--order rows) if rows are in the order of time, groups= (--groups) if "
        "they come in groups, order=False (--order none) if they were only sorted",
    )
    return (caution,)


def gap_between(x: Array, y: Array) -> tuple[int, tuple[Caution, ...]]:
    """Return the number of rows to leave out between blocks of a time series, and warnings."""
    longest = max(correlation_time(r) for side in (x, y) for r in _ranks(side).T)
    wanted, most = 1 + math.ceil(_GAP_TIMES * (longest - 1)), max(1, len(x) // _GAP_FRACTION)
    if wanted <= most or longest < _SHORT_TIME:
        return min(wanted, most), ()
    caution = Caution(
        "short_series",
        f"rows are correlated over about {longest:.0f} rows, and {len(x)} are too few to leave "
        f"gaps of {wanted} between blocks",
        "Read p-values near 0.05 with care; collect a longer series",
    )
    return most, (caution,)


def correlation_time(a: Array) -> float:
    """Return how many adjacent values of a centred series (n,) count as one."""
    rho = _autocorrelations(a, max(1, len(a) // 4))[1:]
    pairs = rho[: 2 * (len(rho) // 2)].reshape(-1, 2).sum(axis=1)
    end = np.flatnonzero(np.append(pairs, 0) <= 0)[0]
    return float(1 + 2 * max(pairs[:end].sum(), _beyond_noise(np.abs(rho), len(a))))


def _row_codes(a: Array) -> Rows:
    """Return an integer per row, equal for equal rows."""
    flat = np.ascontiguousarray(a.reshape(len(a), -1) + 0.0)  # -0.0 equals 0.0
    rows = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)


def _distinct_share(codes: Rows, n: int) -> float:
    """Return the share of distinct values, without those that are frequent among n rows."""
    counts = np.bincount(codes)
    counts = counts[(counts > 0) & (counts <= max(1, _COMMON * n))]
    return len(counts) / counts.sum() if counts.sum() else 0.0


def _is_discrete(a: Array) -> bool:
    """Return whether values are evenly spaced and so few that equal rows occur by chance."""
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


def _ranks(a: Array) -> Array:
    """Return the centred ranks (n, d) of some columns."""
    flat = a.reshape(len(a), -1)
    some = np.linspace(0, flat.shape[1] - 1, min(_COLUMNS, flat.shape[1])).round().astype(int)
    ranks = rankdata(flat[:, some], axis=0)
    return np.asarray(ranks - ranks.mean(axis=0))


def _autocorrelations(a: Array, lags: int) -> Array:
    """Return the autocorrelations of a centred series (n,) at lags 0 to `lags`; 0 if constant."""
    size = next_fast_len(len(a) + lags, real=True)
    products = irfft(np.abs(rfft(a, size)) ** 2, size)[: lags + 1]
    return np.asarray(products / products[0] if products[0] > 0 else np.zeros(lags + 1))


def _beyond_noise(rho: Array, n: int) -> float:
    """Return the sum of the autocorrelations that exceed their noise by Bartlett's formula."""
    least = _NOISE / math.sqrt(n)
    return float(rho[rho > least * min(_NOISE, 1 + (rho[rho > least] ** 2).sum())].sum())
