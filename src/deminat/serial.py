r"""Are rows independent of each other as they come, or is each like the one before?

Of two series that wander slowly, chance alone makes long stretches rise together: $n$ rows of which
each is like the last $\tau$ count for some $n/\tau$. Whoever shuffles them finds dependence where
there is none. So rows that resemble their neighbours on both sides are told, and where the order in
time is given, rows are cut into blocks, with gaps between them of a few correlation times
$\tau = 1 + 2 \sum_k \rho_k$, the sum up to where pairs of terms turn negative, or that of all
correlations beyond chance if it is larger: also a series that swings to and fro remembers.

References:
    Geyer (1992), Practical Markov chain Monte Carlo: where the sum ends.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import norm, rankdata

from .results import Caution

__all__ = ["correlation_time", "gap_between", "serial_cautions"]

_COLUMNS = 32  # of a side that are looked at
_CHANCE = 1e-4  # of a false alarm, about
_TIMES = 3  # correlation times between two blocks
_LARGEST = 20  # at most so small a part of all rows
_NOISE = 4.0  # standard errors of a correlation that is no chance
_MEMORY = 4.0  # rows: what chance makes of few rows is shorter


def serial_cautions(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Caution, ...]:
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
