r"""All pairs of two blocks of columns: a p-value and an estimate of each, in microseconds.

P-values are those of `rank_test`. The coefficients of all pairs of a tile are one matrix product.
Estimates are those of `partition`; where the p-value is small, their cells are finer. Cells hardly
see weak dependence. So an estimate is not below two others, if the p-value is small:

- Normal scores with a correlation r share at least $-\log(1 - r^2) / 2$ nats, since normal columns
  share the least.
- Ranks with a density of $1 + \sum_{jk} \rho_{jk} f_j f_k$ share about
  $\log(1 + \sum_{jk} \rho_{jk}^2) / 2$ nats if that is little. The first coefficients count, less
  their sampling noise.

The interval adds to the sampling noise what cells may do wrong, some share of the estimate that
falls with the number of rows. It reaches up to what the first coefficients may be, and begins at 0
unless the p-value is small.

A label has no order, so it has indicators of its values beside its ranks. Their law is nearly that
of ranks, and not exact. Missing values are left out pair by pair.
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..estimators.partition import rank_information, table_information
from .rank_test import (
    LEAST_RANKED,
    Blocks,
    cosines,
    harmonic,
    label_blocks,
    number_blocks,
    permuted_harmonics,
    rank_p_values,
    ranks,
)

__all__ = ["Column", "Found", "tile"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_SMALL = 0.05
_AT_ONCE = 1_024  # pairs whose coefficients are in memory
_BINARY = 2  # values of a label whose order does not matter
_BINS = 8, 16, 32  # of a number beside a label; the first where the p-value is not small
_Z = 1.96
_SMOOTHED, _FALLS = 1.2, 0.3  # the share of the estimate that may be wrong: 1.2 n^-0.3
_HIDDEN = 6.5  # nats that pairs may hide, times their number: see `interval`
_FIRST = 4  # coefficients of a side
_WEAK = 0.5  # sum of their squares up to which they say how much there is


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: Its name.
        values: (n,) numbers, or codes of a label; NaN where missing.
        is_label: Whether the order of the values means nothing.
    """

    name: str
    values: Array
    is_label: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether no value is missing."""
        return not np.isnan(self.values).any()

    @property
    def varies(self) -> bool:
        """Whether it has two values."""
        return bool(np.nanmin(self.values) < np.nanmax(self.values))

    @property
    def is_unordered(self) -> bool:
        """Whether it is a label of more than two values."""
        return self.is_label and len(np.unique(self.values[~np.isnan(self.values)])) > _BINARY

    def rng(self, seed: int) -> np.random.Generator:
        """Return the generator that breaks its ties: the same in every tile."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode())])


@dataclass(frozen=True)
class Found:
    """What was found of pairs (m,); NaN where there are too few rows.

    Args:
        p_value: Of independence.
        mi: In nats.
        error: Its standard error.
        smooth: How many nats smooth dependence may have, by the first coefficients.
        n: Rows without missing values.
    """

    p_value: Array
    mi: Array
    error: Array
    smooth: Array
    n: Places

    def interval(self) -> tuple[Array, Array]:
        """Return the ends (m,) of 95% intervals."""
        rows = np.maximum(self.n, 1)
        share, noise = _SMOOTHED * rows**-_FALLS, _Z * self.error
        low = np.maximum(0, self.mi * (1 - share) - noise)
        low = np.where(self.p_value > _SMALL, 0.0, low)
        high = self.mi * (1 + share) + noise
        high = np.maximum(high, self.smooth * (1 + share))
        return low, np.where(low > 0, high, np.maximum(high, _HIDDEN / rows))


def tile(xs: Sequence[Column], ys: Sequence[Column], pairs: Places, seed: int) -> Found:
    """Return what is found of some pairs of columns.

    Args:
        xs: Columns of one side.
        ys: Columns of the other.
        pairs: (m, 2) places of columns in both.
        seed: Of the order in which ties are broken.
    """
    fast = _are_plain(xs)[pairs[:, 0]] & _are_plain(ys)[pairs[:, 1]]
    found = np.full((4, len(pairs)), np.nan)
    n = np.zeros(len(pairs), dtype=np.int64)
    if fast.any():
        found[:, fast] = _of_ranks(xs, ys, pairs[fast], seed)
        n[fast] = len(xs[0].values)
    for i in np.flatnonzero(~fast):
        x, y = xs[pairs[i, 0]], ys[pairs[i, 1]]
        known = ~np.isnan(x.values) & ~np.isnan(y.values)
        n[i] = known.sum()
        if n[i] >= LEAST_RANKED:
            found[:, i] = _one(x, y, known, seed)
    return Found(found[0], found[1], found[2], found[3], n)


def _are_plain(columns: Sequence[Column]) -> NDArray[np.bool_]:
    return np.array([c.is_whole and c.varies and not c.is_unordered for c in columns])


def _of_ranks(xs: Sequence[Column], ys: Sequence[Column], pairs: Places, seed: int) -> Array:
    """Return p-values, nats, errors and smooth nats (4, m) of columns without missing values."""
    x_used, x_at = np.unique(pairs[:, 0], return_inverse=True)
    y_used, y_at = np.unique(pairs[:, 1], return_inverse=True)
    x = np.array([ranks(xs[i].values, xs[i].rng(seed)) for i in x_used])
    y = np.array([ranks(ys[j].values, ys[j].rng(seed)) for j in y_used])
    n = x.shape[1]
    log_h, first = (table[x_at, y_at] for table in _harmonics(x, y))
    p = rank_p_values(log_h, n)
    r = (_normal_scores(n)[x] @ _normal_scores(n)[y].T)[x_at, y_at] / n
    nats, errors = np.empty(len(pairs)), np.empty(len(pairs))
    for is_weak, chosen in ((True, p > _SMALL), (False, p <= _SMALL)):
        if chosen.any():
            sides = x[x_at[chosen]], y[y_at[chosen]]
            nats[chosen], errors[chosen] = rank_information(*sides, is_weak)
    return np.array([p, *_not_too_low(p, nats, errors, r, first, n)])


@cache
def _normal_scores(n: int) -> Array:
    """Return the normal scores (n,) of ranks, of mean 0 and variance 1."""
    scores = ndtri((np.arange(n) + 0.5) / n)
    return np.asarray(scores / scores.std())


def _not_too_low(
    p: Array, nats: Array, errors: Array, r: Array, first: Array, n: int
) -> tuple[Array, Array, Array]:
    """Return nats and errors (m,) of all three estimates, and how many nats smooth dependence has.

    Args:
        p: p-values.
        nats: Estimates by cells.
        errors: Their standard errors.
        r: Correlations of normal scores.
        first: Sums of the first squared coefficients.
        n: Rows.
    """
    r = np.clip(r, -1 + 1 / n, 1 - 1 / n)
    normal = -np.log1p(-(r**2)) / 2 - 1 / (2 * n)
    of_normal = np.sqrt(r**2 / n + 1 / (2 * n**2))
    found = np.maximum(0, first - _FIRST**2 / n)
    noise = np.sqrt(4 * found / n + 2 * _FIRST**2 / n**2)
    weak = np.log1p(np.clip(found - noise, 0, _WEAK)) / 2
    for others, of_others in ((normal, of_normal), (weak, noise / 2)):
        larger = (p <= _SMALL) & (others > nats)
        nats, errors = np.where(larger, others, nats), np.where(larger, of_others, errors)
    return nats, errors, np.log1p(found + _Z * noise) / 2


def _harmonics(x: Places, y: Places) -> tuple[Array, Array]:
    """Return log H (a, b) of ranks (a, n) and (b, n), and sums of the first coefficients."""
    n = x.shape[1]
    functions = cosines(n).astype(np.float32)
    k = functions.shape[1]
    right = functions[y].transpose(1, 0, 2).reshape(n, -1)
    step, found = max(1, _AT_ONCE // len(y)), []
    for i in range(0, len(x), step):
        left = functions[x[i : i + step]].transpose(1, 0, 2).reshape(n, -1)
        squares = ((left.T @ right) ** 2 / n).reshape(-1, k, len(y), k).transpose(0, 2, 1, 3)
        found.append((harmonic(squares, n), squares[..., :_FIRST, :_FIRST].sum(axis=(2, 3)) / n))
    log_h, first = (np.concatenate(each) for each in zip(*found, strict=True))
    return log_h, first


def _one(x: Column, y: Column, known: NDArray[np.bool_], seed: int) -> tuple[float, ...]:
    """Return the p-value, nats, error and smooth nats of one pair, by rows where both are known."""
    n = int(known.sum())
    sides = [(c.values[known], c.is_unordered, c.rng(seed)) for c in (x, y)]
    if any(len(np.unique(values)) == 1 for values, *_ in sides):
        return 1.0, 0.0, 0.0, 0.0
    of_x, of_y = (_blocks(*side) for side in sides)
    (log_h,) = permuted_harmonics(of_x, of_y, [np.arange(n)])
    p = float(rank_p_values(log_h, n))
    if any(unordered for _, unordered, _ in sides):
        bins = min(_BINS, key=lambda b: abs(b - math.sqrt(n) / 2)) if p <= _SMALL else _BINS[0]
        codes = [_codes(values, unordered, bins, rng) for values, unordered, rng in sides]
        return (p, *table_information(*codes), 0.0)
    x_ranks, y_ranks = (ranks(values, rng)[None] for values, _, rng in sides)
    nats, errors = rank_information(x_ranks, y_ranks, p > _SMALL)
    r = (_normal_scores(n)[x_ranks] * _normal_scores(n)[y_ranks]).mean(axis=1)
    first = np.square(of_x.features[:, :_FIRST].T @ of_y.features[:, :_FIRST] / n).sum()
    found = _not_too_low(np.array([p]), nats, errors, r, np.array([first]), n)
    return p, *(float(value[0]) for value in found)


def _blocks(values: Array, is_unordered: bool, rng: np.random.Generator) -> Blocks:
    return (label_blocks if is_unordered else number_blocks)(values, rng)


def _codes(values: Array, is_label: bool, bins: int, rng: np.random.Generator) -> Places:
    """Return codes from 0 of a label, or of equally many ranks."""
    if is_label or len(np.unique(values)) <= bins:
        return np.unique(values, return_inverse=True)[1]
    return np.asarray(ranks(values, rng) * bins // len(values))
