r"""Independence of two columns by their ranks: an adaptive smooth test.

Let u and v be the ranks of n rows, from 0 to 1, and $\phi_j(u) = \sqrt2 \cos(\pi j u)$. If the
columns are independent, the coefficients $a_{jk} = n^{-1/2} \sum_i \phi_j(u_i)\, \phi_k(v_i)$ of
their copula are nearly standard normal. Sums of squares over rectangles $j \le J$, $k \le K$ see
coarse and fine dependence. Each sum has a p-value. Were the centred rows turned at random instead
of permuted, its mean would be JK and, with $m = n - 1$, its variance
$2 J K (m - J)(m - K) / ((m - 1)(m + 2))$. The p-value is that of a gamma distribution with these,
which for many rows is the $\chi^2$ law. The test statistic is the weighted harmonic mean of the
p-values,

$$ H = \sum_{JK} w_{JK} / p_{JK}, \qquad w_{JK} \propto 1 / (\min(J, K) \sqrt{\max(J, K)}) , $$

which is large if one rectangle has a small p-value, and larger if several have. Small rectangles
weigh more, since dependence is more often smooth.

Ranks without ties are the same numbers whatever the columns are, so under independence H has a law
that depends on n alone. `studies/rank_law.py` simulates it, once for all. Between the n of its
table quantiles are interpolated in 1/n. Beyond the last quantile $P(H > h)$ falls as 1/h, as does
that of a mean of 1/p for any p-values. Ties are broken at random, which keeps the law.

A label has no order, so it has indicators of its values beside its ranks. A rare value rests on few
rows, and the variance of a sum over permutations is then larger; it is known too. The law of H is
not known beforehand; H is compared with that of rows in random order, which is exact. So are groups
of rows.

For a table of columns the coefficients of all pairs are one matrix product.

References:
    Kazi-Aoual et al. (1995), Refined approximations to permutation tests for multivariate
    inference.
    Wilson (2019), The harmonic mean p-value for combining dependent tests.
    Kallenberg and Ledwina (1999), Data-driven rank tests for independence.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

__all__ = [
    "COSINES",
    "LEAST_RANKED",
    "Blocks",
    "cosines",
    "harmonic",
    "label_blocks",
    "number_blocks",
    "permuted_harmonics",
    "rank_p_values",
    "rank_test",
    "ranks",
]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_CUTS = 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40
COSINES = _CUTS[-1]
LEAST_RANKED = 20  # rows: of fewer there is no table
_MOST_VALUES = 200  # of a label that have indicators
_LONG_TAILS = 2.0
_LEAST_COUNT = 10  # rows of a value that has an indicator
_SMALLEST = 1e-300
_LEAST_LEFT = 1e-3  # share of the variance that a label of nearly n values leaves


def rank_test(x: Array, y: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-value of two columns (n,) of numbers, and log H.

    Args:
        x: At least 20 values.
        y: Their other side.
        rng: Breaks ties.
    """
    n = len(x)
    left, right = (cosines(n)[ranks(column, rng)] for column in (x, y))
    log_h = harmonic((left.T @ right) ** 2 / n, n)
    return float(rank_p_values(log_h, n)), float(log_h)


def ranks(column: Array, rng: np.random.Generator) -> Places:
    """Return the ranks 0 to n - 1 of a column (n,), of equal values in random order."""
    order = np.argsort(column, kind="stable")
    values = column[order]
    if (values[1:] == values[:-1]).any():
        mixed = rng.permutation(len(column))
        order = mixed[np.argsort(column[mixed], kind="stable")]
    found = np.empty(len(column), dtype=np.int64)
    found[order] = np.arange(len(column))
    return found


@cache
def cosines(n: int) -> Array:
    """Return the functions (n, k) at the ranks of n rows, at most as many as half of the rows."""
    places = (np.arange(n) + 0.5) / n
    return np.asarray(np.sqrt(2) * np.cos(np.pi * np.outer(places, np.arange(1, _most(n) + 1))))


def _most(n: int) -> int:
    return min(COSINES, n // 2)


@dataclass(frozen=True)
class Blocks:
    """Uncorrelated features of one column, and blocks of them.

    Args:
        features: (n, r), of mean 0 and variance 1.
        starts: (k,) the first feature of each block.
        ends: (k,) the one after its last.
    """

    features: Array
    starts: Places
    ends: Places

    @property
    def sizes(self) -> Places:
        """How many features each block has."""
        return np.asarray(self.ends - self.starts)

    @property
    def leverages(self) -> Array:
        """The sum of squared leverages of the rows in each block: large if few rows matter."""
        sums = np.pad(np.square(self.features).cumsum(axis=1), ((0, 0), (1, 0)))
        parts = (sums[:, self.ends] - sums[:, self.starts]) / len(sums)
        return np.asarray(np.square(parts).sum(axis=0))


def number_blocks(column: Array, rng: np.random.Generator) -> Blocks:
    """Return cosines of the ranks of a column (n,), in ever larger blocks."""
    found, cuts = cosines(len(column)), _cuts(len(column))
    return Blocks(found[ranks(column, rng)], np.zeros_like(cuts), cuts)


def label_blocks(column: Array, rng: np.random.Generator) -> Blocks:
    """Return cosines of the ranks of a label (n,), and a block of indicators of its values."""
    numbers = number_blocks(column, rng)
    values, counts = np.unique(column, return_counts=True)
    common = np.argsort(-counts, kind="stable")[: min(_MOST_VALUES, len(values) - 1)]
    frequent = values[common[: max(1, int((counts[common] >= _LEAST_COUNT).sum()))]]
    indicators = (column[:, None] == frequent).astype(np.float64)
    basis, _ = np.linalg.qr(indicators - indicators.mean(axis=0))
    features = np.hstack([numbers.features, basis * math.sqrt(len(column))])
    start = numbers.features.shape[1]
    return Blocks(features, np.r_[numbers.starts, start], np.r_[numbers.ends, features.shape[1]])


def permuted_harmonics(x: Blocks, y: Blocks, orders: Iterable[Places]) -> Array:
    """Return log H (m,) for each of some orders of the rows of y."""
    n = len(x.features)
    sums = [_block_sums((x.features.T @ y.features[order]) ** 2 / n, x, y) for order in orders]
    return _log_harmonic(np.array(sums), _Rectangles.of_blocks(x, y))


def _block_sums(squares: Array, x: Blocks, y: Blocks) -> Array:
    """Return sums (kx, ky) of squares (rx, ry) over blocks."""
    sums = np.pad(squares.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    rows = sums[x.ends] - sums[x.starts]
    return np.asarray(rows[:, y.ends] - rows[:, y.starts])


def harmonic(squares: Array, n: int) -> Array:
    """Return log H (...,) from squared coefficients (..., k, k) of n rows."""
    cuts, rectangles = _rectangles(n)
    sums = squares.cumsum(axis=-1)[..., cuts - 1].cumsum(axis=-2)[..., cuts - 1, :]
    return _log_harmonic(sums, rectangles)


@dataclass(frozen=True)
class _Rectangles:
    """Weights, and gamma distributions, of sums of squares over rectangles of coefficients.

    Args:
        weights: (j, k), which add up to 1.
        shapes: (j, k) of the distributions.
        rates: (j, k) of the distributions.
    """

    weights: Array
    shapes: Array
    rates: Array

    @classmethod
    def of(cls, of_x: Places, of_y: Places, n: int) -> "_Rectangles":
        """Return those of some sizes (j,) and (k,), for n rows."""
        return cls._with(of_x, of_y, n, _turned_variance(of_x, of_y, n))

    @classmethod
    def of_blocks(cls, x: Blocks, y: Blocks) -> "_Rectangles":
        """Return those of blocks whose features may rest on few rows, as those of rare labels do.

        Their variance is at least that of permutations (Kazi-Aoual et al.), not of random
        rotations. What it has more is taken twice, since the tails of few rows are longer than a
        gamma's.
        """
        n = len(x.features)
        turned = _turned_variance(x.sizes, y.sizes, n)
        uneven = np.multiply.outer(*(_unevenness(side) for side in (x, y)))
        count = np.outer(x.sizes, y.sizes)
        more = _LONG_TAILS * uneven * (n - 1) / ((n + 1.0) * n * (n - 2) * (n - 3) * count**2)
        return cls._with(x.sizes, y.sizes, n, turned + more)

    @classmethod
    def _with(cls, of_x: Places, of_y: Places, n: int, variance: Array) -> "_Rectangles":
        """Return those with some variances, as shares of squared means."""
        weights = 1 / np.minimum.outer(of_x, of_y) / np.sqrt(np.maximum.outer(of_x, of_y))
        rates = 1 / variance / np.outer(of_x, of_y) * ((n - 1) / n)
        return cls(weights / weights.sum(), 1 / variance, rates)


def _turned_variance(of_x: Places, of_y: Places, n: int) -> Array:
    """Return variances (j, k) under random rotations, as shares of squared means."""
    m = n - 1
    left = np.outer(m - of_x, m - of_y) / ((m - 1) * (m + 2))
    return np.asarray(2 * np.maximum(left, _LEAST_LEFT) / np.outer(of_x, of_y))


def _unevenness(side: Blocks) -> Array:
    """Return how much a few rows matter in each block (k,), 0 if none does."""
    n, sizes = len(side.features), side.sizes
    uneven = n * (n + 1) * side.leverages - (n - 1) * (sizes**2 + 2 * sizes)
    return np.asarray(np.maximum(0, uneven))


def _log_harmonic(sums: Array, rectangles: _Rectangles) -> Array:
    p_values = gammaincc(rectangles.shapes, sums * rectangles.rates)
    ratios = rectangles.weights / np.maximum(p_values, _SMALLEST)
    return np.asarray(np.log(ratios.sum(axis=(-2, -1))))


@cache
def _rectangles(n: int) -> tuple[Places, _Rectangles]:
    """Return the cuts of n ranks, and the rectangles between them."""
    cuts = _cuts(n)
    return cuts, _Rectangles.of(cuts, cuts, n)


def _cuts(n: int) -> Places:
    return np.array([cut for cut in _CUTS if cut <= _most(n)])


def rank_p_values(log_h: Array, n: int) -> Array:
    """Return p-values of values of log H."""
    log_p, quantiles = _law(n)
    within = np.interp(log_h, quantiles, log_p)
    return np.asarray(np.exp(within - np.maximum(0, log_h - quantiles[-1])))


@cache
def _law(n: int) -> tuple[Array, Array]:
    """Return log p-values (q,), falling, and the values of log H that have them."""
    log_p, sizes, quantiles = _table()
    inverse = 1 / np.array(sizes, dtype=float)  # the last is infinite
    return log_p, np.array([np.interp(1 / n, inverse[::-1], q[::-1]) for q in quantiles.T])


@cache
def _table() -> tuple[Array, Sequence[float], Array]:
    """Return log p-values (q,), numbers of rows (m,) and quantiles (m, q) of log H."""
    with files(__package__).joinpath("rank_law.csv").open(encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    log_p = [math.log(float(p)) for p in header[1:]]
    rows = [[float(value) for value in line] for line in lines]
    return np.array(log_p), [row[0] for row in rows], np.array([row[1:] for row in rows])
