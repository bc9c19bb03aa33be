r"""Independence of several columns a side: an adaptive kernel test.

A kernel k compares two rows of x, another kernel l two rows of y. Centre both matrices. Under
independence $\sum_{ij} k(x_i, x_j)\, l(y_i, y_j)$ (HSIC) is small, and each pair of kernels sees
dependence of some kinds. Here each side has four kernels:

- minus the distance of standardised rows, which gives distance covariance;
- a narrow Gaussian of the ranks, which sees what is local;
- the squared inner product of normal scores, which sees products of columns;
- the sum over columns of products of $\cos 2 \pi u$, u being ranks from 0 to 1.

The third and fourth see circles, and scales that depend on the other side. A kernel is replaced by
its leading features, $k(x, x') \approx \phi(x) \cdot \phi(x')$, computed from some rows (Nyström).
The statistic is then the sum of squares of $\sum_i \phi(x_i) \psi(y_i)^T$.

Where few pairs of columns depend on each other, sums over all columns are weak. So there is one
more statistic. Each column of x is compared with each of y by squared coefficients of cosines of
their ranks, over the rectangles of `rank_test`. That gives a weighted mean H of 1/p for each
pair, and the statistic is the sum of $\sqrt H$ over pairs.

Rows of y are rearranged. Each statistic gets a p-value from a shifted gamma distribution with the
mean, variance and skewness of its values. The test statistic is the weighted sum of 1 / p, and its
rank among those of the rearrangements is the p-value of the test. All rearrangements, none
included, are treated alike, so the level is exact, however well these gamma distributions fit.

With many rows, rearrangements are taken from a group of permutations whose sums are cheap. Rows in
random order are cut into L pieces of equal length. The pieces of y are moved on around a circle, as
they are or in the opposite order. The sums of all 2L such moves are found by Fourier transforms.

References:
    Gretton et al. (2008), A kernel statistical test of independence.
    Sejdinovic et al. (2013), Equivalence of distance-based and RKHS-based statistics.
    Wilson (2019), The harmonic mean p-value for combining dependent tests.
    Hemerik and Goeman (2018), Exact testing with random permutations.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.spatial.distance import cdist
from scipy.special import gammaincc, log_ndtr, logsumexp, ndtri
from scipy.stats import rankdata

__all__ = ["Side", "moved_statistics", "side_of", "turned_statistics"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Places = NDArray[np.int64]
Kernel = Callable[[Array, Array], Array]

_ANCHORS = 256  # rows that features are computed from
_FEATURES = 40  # of a kernel
_ALL_ALIKE = 1e-9  # the largest eigenvalue of equal rows
_PIECE = 10_000  # rows
_NEGLIGIBLE = 1e-6  # share of the largest eigenvalue
_CUTS = np.array([1, 2, 4, 8, 16, 32])  # cosines
_LARGEST = 64  # coefficients of a rectangle
_COSINES = 160  # of a side, all columns together
_FEWEST = 4  # cosines of a column
_PAIR_WEIGHT = 0.5  # of all kernels together
_LEAST_SKEW = 0.05
_SMALLEST = 1e-300


@dataclass(frozen=True)
class Side:
    """What the test needs of the rows of one side.

    Args:
        features: (n, r) of all kernels.
        starts: (k,) the first feature of each kernel.
        cosines: (n, c, j) of the ranks of c columns.
    """

    features: Single
    starts: Places
    cosines: Single

    def blocks(self) -> list[Single]:
        """Return the features of each kernel."""
        return np.split(self.features, self.starts[1:], axis=1)


def side_of(rows: Array, rng: np.random.Generator) -> Side:
    """Return the features of rows (n, d).

    Args:
        rows: Finite numbers.
        rng: Chooses the rows that features are computed from.
    """
    varying = rows[:, (rows != rows[:1]).any(axis=0)]
    if not varying.size:
        nothing = np.zeros((len(rows), 1), dtype=np.float32)
        return Side(nothing, np.array([0]), nothing[:, :, None])
    places = (rankdata(varying, axis=0) - 0.5) / len(rows)
    spread = varying / np.abs(varying).max(axis=0)  # no square is too large for a float
    standard = (spread - spread.mean(axis=0)) / spread.std(axis=0)
    some = rng.permutation(len(rows))[:_ANCHORS]
    kernels: tuple[tuple[Kernel, Array], ...] = (
        (_minus_distance, standard),
        (_narrow_gaussian(places[some]), places),
        (_squared_product, ndtri(places)),
        (np.inner, np.cos(2 * np.pi * places)),
    )
    blocks = [_features(kernel, points, some) for kernel, points in kernels]
    starts = np.cumsum([0, *(block.shape[1] for block in blocks[:-1])])
    return Side(np.hstack(blocks), starts, _cosines(places))


def _minus_distance(a: Array, b: Array) -> Array:
    return -np.asarray(cdist(a, b))


def _squared_product(a: Array, b: Array) -> Array:
    return np.asarray(np.inner(a, b) ** 2)


def _narrow_gaussian(places: Array) -> Kernel:
    """Return a Gaussian kernel of half the median distance between some ranks (m, d)."""
    apart = cdist(places, places)
    width = float(np.median(apart)) / 2 or float(apart.mean()) or 1.0
    return lambda a, b: np.exp(-cdist(a, b, "sqeuclidean") / (2 * width**2))


def _features(kernel: Kernel, points: Array, some: Places) -> Single:
    """Return leading features (n, r) of a centred kernel, computed from some of the points."""
    anchors = points[some]
    within = kernel(anchors, anchors)
    mean = within.mean(axis=0)
    values, vectors = np.linalg.eigh(within - mean - mean[:, None] + mean.mean())
    if values[-1] < _ALL_ALIKE:
        return np.zeros((len(points), 1), dtype=np.float32)
    kept = np.flatnonzero(values > _NEGLIGIBLE * values[-1])[-_FEATURES:]
    weights = vectors[:, kept] / np.sqrt(values[kept] * values[-1])
    weights -= weights.mean(axis=0)
    pieces = np.array_split(points, math.ceil(len(points) / _PIECE))  # to bound the memory
    found = np.concatenate([(kernel(piece, anchors) - mean) @ weights for piece in pieces])
    return np.asarray(found - found.mean(axis=0), dtype=np.float32)


def _cosines(places: Array) -> Single:
    """Return cosines (n, c, j) of ranks (n, d); of many columns fewer cosines, of some columns."""
    n, d = places.shape
    some = np.unique(np.linspace(0, d - 1, min(d, _COSINES // _FEWEST)).round().astype(np.int64))
    most = min(_COSINES // len(some), n // 2)
    angles = np.pi * places[:, some, None] * np.arange(1, _CUTS[most >= _CUTS][-1] + 1)
    found = np.sqrt(2) * np.cos(angles)
    return np.asarray(found - found.mean(axis=0), dtype=np.float32)


def moved_statistics(x: Side, y: Side, orders: Iterable[Places]) -> Array:
    """Return log H (m + 1,) of the rows as they are, and with y in each of m orders."""
    n, rectangles = len(x.features), _Rectangles.of(x, y)
    left, cosines = (np.ascontiguousarray(a.reshape(n, -1).T) for a in (x.features, x.cosines))
    right, others = y.features, y.cosines.reshape(n, -1)
    of_x, of_y = (_cut_starts(a.cosines) for a in (x, y))
    sums, pairs = [], []
    for order in chain([np.arange(n)], orders):
        sums.append(_block_sums(left @ right[order], x.starts, y.starts))
        pairs.append(_block_sums(cosines @ others[order], of_x, of_y) / n)
    shape = -1, x.cosines.shape[1], rectangles.counts[0], y.cosines.shape[1], rectangles.counts[1]
    squares = np.array(pairs).reshape(shape).transpose(2, 4, 0, 1, 3)
    pieces = np.array_split(squares, math.ceil(squares[0, 0].size / _PIECE), axis=2)
    logs = [logsumexp(rectangles.log_harmonic(a) / 2, axis=(1, 2)) for a in pieces]
    return _combined(np.array(sums).reshape(len(sums), -1), np.concatenate(logs))


def _block_sums(products: Single, of_x: Places, of_y: Places) -> Array:
    """Return sums (kx, ky) of squares of products (rx, ry) over blocks with some starts."""
    products *= products
    return np.asarray(np.add.reduceat(np.add.reduceat(products, of_x, 0), of_y, 1))


def _cut_starts(cosines: Single) -> Places:
    """Return where each block of frequencies of each column begins, (c * k,)."""
    _, columns, most = cosines.shape
    return np.asarray((np.arange(columns)[:, None] * most + _steps(most)).ravel())


def _steps(most: int) -> Places:
    """Return where each block of frequencies of a column begins, (k,)."""
    return np.asarray(np.r_[0, _CUTS[most > _CUTS]], dtype=np.int64)


@dataclass(frozen=True)
class _Rectangles:
    """Rectangles of low frequencies: sizes of their sides, as places in the cuts, and weights.

    Args:
        counts: How many cuts each side has.
        x: (m,) cuts of x.
        y: (m,) cuts of y.
        log_weights: (m,) of weights that add up to 1.
    """

    counts: tuple[int, int]
    x: Places
    y: Places
    log_weights: Array

    @classmethod
    def of(cls, x: Side, y: Side) -> "_Rectangles":
        """Return the rectangles of the cosines of both sides."""
        counts = len(_steps(x.cosines.shape[2])), len(_steps(y.cosines.shape[2]))
        i, j = (places.ravel() for places in np.indices(counts))
        small = _CUTS[i] * _CUTS[j] <= _LARGEST
        i, j = i[small], j[small]
        weights = 1 / np.minimum(_CUTS[i], _CUTS[j]) / np.sqrt(np.maximum(_CUTS[i], _CUTS[j]))
        return cls(counts, i, j, np.log(weights / weights.sum()))

    def log_harmonic(self, squares: Array) -> Array:
        """Return log H (...) from sums (kx, ky, ...) of squares between the cuts."""
        squares = squares.cumsum(axis=0).cumsum(axis=1)
        logs = _log_tail(squares[self.x, self.y], _CUTS[self.x] * _CUTS[self.y])
        weights = self.log_weights.reshape(-1, *[1] * (logs.ndim - 1))
        return np.asarray(logsumexp(weights - logs, axis=0))


def _log_tail(sums: Array, counts: Places) -> Array:
    """Return log p of sums (m, ...) of squares, by Wilson and Hilferty's cube roots."""
    counts = counts.reshape(-1, *[1] * (sums.ndim - 1))
    error = 2 / (9 * counts)
    return np.asarray(log_ndtr((1 - error - np.cbrt(sums / counts)) / np.sqrt(error)))


def turned_statistics(x: Side, y: Side, length: int) -> Array:
    """Return log H (2 L,) of rows in random order, their L pieces moved around a circle.

    The first is of the rows as they are.

    Args:
        x: Of L times `length` rows.
        y: Of as many.
        length: Of a piece.
    """
    size, rectangles, n = len(x.features) // length, _Rectangles.of(x, y), len(x.features)
    of_x, of_y = ([_spectrum(a, length) for a in side.blocks()] for side in (x, y))
    sums = [_sums(_turned(a, b, size)) for a in of_x for b in of_y]
    of_x, of_y = ([_spectrum(a, length) for a in side.cosines.swapaxes(0, 1)] for side in (x, y))
    pairs = []
    for a in of_x:
        for b in of_y:
            products = (_between_cuts(c.transpose(1, 2, 0)) / n for c in _turned(a, b, size))
            pairs.append(np.concatenate([rectangles.log_harmonic(c) for c in products]))
    return _combined(np.stack(sums, axis=1), logsumexp(np.array(pairs) / 2, axis=0))


def _spectrum(rows: Single, length: int) -> NDArray[np.complex64]:
    """Return the transforms (f, a, length) of rows (n, a) along the pieces of some length."""
    return np.asarray(rfft(rows.reshape(-1, length, rows.shape[1]), axis=0).swapaxes(1, 2))


def _turned(
    left: NDArray[np.complex64], right: NDArray[np.complex64], size: int
) -> Iterator[Single]:
    """Return products (size, a, b) of two sides, with pieces moved on, and in the other order."""
    for one in (left.conj(), left):
        yield irfft(one @ right.swapaxes(1, 2), size, axis=0)


def _sums(products: Iterable[Single]) -> Array:
    return np.concatenate([(a.astype(np.float64) ** 2).sum(axis=(1, 2)) for a in products])


def _between_cuts(products: Single) -> Array:
    """Return sums (kx, ky, m) of squares of products (jx, jy, m) between the cuts."""
    return _block_sums(products, *map(_steps, products.shape[:2]))


def _combined(sums: Array, pairs: Array) -> Array:
    """Return log H (m,) from statistics of all kernels (m, k) and of pairs of columns (m,)."""
    logs = -_log_p_values(np.column_stack([sums, pairs]))
    logs[:, -1] += math.log(_PAIR_WEIGHT * sums.shape[1])
    return np.asarray(logsumexp(logs, axis=1))


def _log_p_values(values: Array) -> Array:
    """Return log p of values (m, k) by gamma distributions with the moments of each column."""
    apart = values - values.mean(axis=0)
    spread = np.sqrt((apart**2).mean(axis=0))
    apart = apart / np.where(spread > 0, spread, 1)
    skew = np.maximum((apart**3).mean(axis=0), _LEAST_SKEW)
    shape = 4 / skew**2
    p_values = gammaincc(shape, np.maximum(shape + 2 * apart / skew, 0))
    return np.asarray(np.log(np.maximum(p_values, _SMALLEST)))
