r"""Pairs of columns that are informative about y together, beyond what each is alone.

If y says whether two coins agree, neither coin alone is informative. Let $f$, $g$ and $h$ be
features of the columns $x_i$ and $x_j$ and of y, of mean 0: cosines of ranks, or indicators of the
levels of a label; of up to four levels, of all ways to split them in two. The mean of $f g h$ over
the rows is then far from 0. For all pairs of columns and one h these means are one matrix product,
$F^T \mathrm{diag}(h) F$, done in blocks. Each sum is divided by the root of its sum of squares.
What single columns explain of h is subtracted beforehand, by least squares.

The largest means name candidates, and nothing more is concluded from them. The p-value of a
candidate is the largest of five, times the number of all triples (f, g, h) of the table
(Bonferroni). It is thus valid however candidates were found.

- `rank_test` of $f g$ and $h$. It is exact if y is independent of $(x_i, x_j)$.
- `rank_test` of $g$ and $f h$, and of $f$ and $g h$. They are exact if one of the columns is
  independent of the other and of y: a column of noise beside an informative one.
- The means of $f\,(g - E[g | x_i])\,(h - E[h | x_i])$ over their standard error, and the same with
  i and j exchanged. These are normal in large samples if one column has nothing to add to the
  other, even if the columns depend on each other (a weighted generalised covariance measure).

So a pair is found only if each column adds to the other. Where rows depend on each other, the
candidates are chosen on one half of the groups, or of the time, and tested on the other half by
permutations of groups or shifts in time. There the factor is the number of candidates.

The information of a pair is that of a table of counts of bins of ranks, less its bias.

References:
    Shah and Peters (2020), The hardness of conditional independence testing and the generalised
        covariance measure.
    Scheidegger, Hoerrmann and Buehlmann (2022), The weighted generalised covariance measure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from ..estimators.partition import table_information
from .all_pairs import Column
from .dependent_rows import Dependence, single_test
from .rank_test import LEAST_RANKED, cosines, ranks

__all__ = ["JointPair", "binned", "joint_information", "joint_pairs"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Places = NDArray[np.int64]

_OF_X, _OF_Y = 3, 2  # cosines of a column, and of numbers y
_CLASSES = 8  # of y that have indicators
_SPLIT = 4  # levels of a label, at most, all of whose splits in two are features
_RARE = 0.05  # share of the rows: levels below it have no indicator
_AT_ONCE = 512  # features of one side whose products are in memory
_CANDIDATES = 2  # a column
_OF_HALF = 20  # candidates where rows depend on each other
_SLACK = 0.8  # of the score that a p-value at the level needs
_EXPLAINED = 0.1  # features of single columns that explain y, a row, at most
_SMOOTH, _ROWS_EACH = 16, 40  # cosines of a regression, at most, and rows for each
_LEVELS = 32  # values of a column whose means are a regression
_CELL = 8  # rows in each cell of a table, on average
_MOST_BINS = 12


@dataclass(frozen=True)
class JointPair:
    """Two columns that are informative together.

    Args:
        first: The place of a column.
        second: The place of another.
        p_value: Of no joint information, for all pairs of the table together.
    """

    first: int
    second: int
    p_value: float


@dataclass(frozen=True)
class _Features:
    """Features of the columns of a table, in the order of the columns.

    Args:
        values: (n, r), of mean 0 and variance 1; 0 where missing.
        owner: (r,) the column of each.
    """

    values: Single
    owner: Places

    def triples(self, of_y: int) -> float:
        """Return how many triples of features of two columns and of y there are."""
        counts = np.bincount(self.owner).astype(np.float64)
        return float(counts.sum() ** 2 - (counts**2).sum()) / 2 * of_y


@dataclass(frozen=True)
class _Candidates:
    """Triples of features, at most one for each pair of columns.

    Args:
        left: (m,) places of features.
        right: (m,) of another column.
        target: (m,) of y.
    """

    left: Places
    right: Places
    target: Places


def joint_pairs(
    xs: Sequence[Column],
    y: Column,
    *,
    informative: Sequence[int] = (),
    rows: Dependence | None = None,
    level: float = 0.05,
    permutations: int = 999,
    seed: int = 0,
) -> list[JointPair]:
    """Return the pairs of columns whose p-value is at most the level, the smallest first.

    Args:
        xs: Columns.
        y: Numbers, or a label, without missing values.
        informative: Places of columns that explain y alone, the best first.
        rows: Which rows depend on each other.
        level: The probability that any pair is found if there is none.
        permutations: Where rows depend on each other.
        seed: Of the order in which ties are broken.
    """
    features = _features_of(xs, seed)
    targets = _target_features(y, seed)
    rows, n = rows or Dependence(), len(y.values)
    total = features.triples(targets.shape[1])
    if total == 0 or n < LEAST_RANKED:
        return []
    chosen, tested = rows.halves(n, seed) if rows else (np.arange(n), np.arange(n))
    residuals = _unexplained(targets[chosen], features, chosen, informative)
    most, least = _OF_HALF, 0.0
    if not rows:
        most = max(_CANDIDATES * len(xs), _OF_HALF)
        least = _SLACK * float(norm.isf(level / total / 2))
    found = _screened(features, residuals, chosen, most, least)
    factor = len(found.left) if rows else total
    test = _Test(xs, features, targets, rows, tested, permutations, seed)
    places = zip(found.left.tolist(), found.right.tolist(), found.target.tolist(), strict=True)
    pairs = (test.pair(*triple, factor) for triple in places)
    return sorted((pair for pair in pairs if pair.p_value <= level), key=lambda p: p.p_value)


def _features_of(xs: Sequence[Column], seed: int) -> _Features:
    each = [_features(c, _OF_X, c.rng(seed)) for c in xs]
    owner = np.repeat(np.arange(len(xs)), [f.shape[1] for f in each])
    return _Features(np.hstack([np.empty((len(xs[0].values), 0)), *each]).astype(np.float32), owner)


def _target_features(y: Column, seed: int) -> Array:
    return _features(y, _CLASSES if y.is_label else _OF_Y, y.rng(seed))


def _features(column: Column, most: int, rng: np.random.Generator) -> Array:
    """Return features (n, k) of mean 0 and variance 1, and 0 where the column is missing."""
    known = ~np.isnan(column.values)
    values = column.values[known]
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    found = np.zeros((len(known), 0))
    if len(distinct) < 2 or len(values) < LEAST_RANKED:
        return found
    if column.is_label or len(distinct) <= most:
        raw = _contrasts(codes, counts, most)
    else:
        smooth = cosines(len(values))[ranks(values, rng), :most]
        # Of equal values the mean is used, which has no noise of the order of ties.
        raw = _means(smooth, codes, counts)[codes] if len(distinct) < len(values) else smooth
    spread = raw.std(axis=0)
    kept = spread > 0.1 * spread.max(initial=0)
    found = np.zeros((len(known), int(kept.sum())))
    found[known] = ((raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1))[:, kept]
    return found


def _contrasts(codes: Places, counts: Places, most: int) -> Array:
    """Return indicators (n, k) of the frequent levels; of few levels, of all ways to split them."""
    if len(counts) <= _SPLIT:
        first = np.arange(1, 2 ** (len(counts) - 1))  # the last level is never among them
        sides = first >> np.arange(len(counts))[:, None] & 1
        return np.asarray(sides[codes].astype(np.float64))
    frequent = np.argsort(-counts, kind="stable")
    frequent = frequent[counts[frequent] >= _RARE * len(codes)][:most]
    return np.asarray((codes[:, None] == frequent).astype(np.float64))


def _means(values: Array, codes: Places, counts: Places) -> Array:
    """Return the mean (levels, k) of values (n, k) for each code."""
    sums = [np.bincount(codes, weights=column) for column in values.T]
    return np.asarray(np.stack(sums, axis=1) / counts[:, None])


def _unexplained(
    targets: Array, features: _Features, rows: Places, informative: Sequence[int]
) -> Single:
    """Return what is left of the targets (n, c) at some rows without informative columns."""
    own = [np.flatnonzero(features.owner == i) for i in informative]
    most = int(_EXPLAINED * len(rows))
    used = np.concatenate([np.empty(0, dtype=np.int64), *own])[:most]
    if not len(used):
        return targets.astype(np.float32)
    known = features.values[np.ix_(rows, used)].astype(np.float64)
    weights = np.linalg.lstsq(known, targets, rcond=None)[0]
    return np.asarray((targets - known @ weights).astype(np.float32))


def _screened(
    features: _Features, targets: Single, rows: Places, most: int, least: float
) -> _Candidates:
    """Return the triples of the pairs with the largest scores, of each pair the best."""
    whole = len(rows) == len(features.values)
    values = features.values if whole else features.values[rows]
    parts = list(_large(values, features.owner, targets, most, least))
    left, right, target, score = (np.concatenate(a) for a in zip(*parts, strict=True))
    order = np.argsort(-score, kind="stable")
    left, right, target = left[order], right[order], target[order]
    keys = features.owner[left] * (features.owner.max() + 1) + features.owner[right]
    first = np.sort(np.unique(keys, return_index=True)[1])[:most]
    return _Candidates(left[first], right[first], target[first])


def _large(
    values: Single, owner: Places, targets: Single, most: int, least: float
) -> Iterator[tuple[Places, Places, Places, Single]]:
    """Yield for blocks of features the places of triples with large scores, and the scores."""
    largest = int(np.bincount(owner).max())
    enough = most * largest**2 * targets.shape[1]  # all triples of the best pairs are among them
    squares = values**2
    for start in range(0, values.shape[1], _AT_ONCE):
        end = min(start + _AT_ONCE, values.shape[1])
        later = owner[start:end, None] < owner[None, start:]
        for c, target in enumerate(targets.T):
            sums = (values[:, start:end] * target[:, None]).T @ values[:, start:]
            spread = (squares[:, start:end] * target[:, None] ** 2).T @ squares[:, start:]
            scores = np.where(later, np.abs(sums) / np.sqrt(np.maximum(spread, 1e-12)), 0.0)
            flat = scores.ravel()
            large = np.flatnonzero(flat > least)
            if len(large) > enough:
                large = large[np.argpartition(-flat[large], enough)[:enough]]
            at, beside = np.divmod(large, scores.shape[1])
            yield at + start, beside + start, np.full(len(large), c), flat[large]


@dataclass(frozen=True)
class _Test:
    """The tests of candidates.

    Args:
        xs: The columns.
        features: Of them.
        targets: (n, c) of y.
        rows: Which rows depend on each other.
        tested: The rows of the tests.
        permutations: Where rows depend on each other.
        seed: Breaks ties.
    """

    xs: Sequence[Column]
    features: _Features
    targets: Array
    rows: Dependence
    tested: Places
    permutations: int
    seed: int

    def pair(self, left: int, right: int, target: int, factor: float) -> JointPair:
        """Return a pair of columns with its p-value, for as many as `factor` triples."""
        i, j = (int(self.features.owner[place]) for place in (left, right))
        used = self.tested
        missing = np.isnan(self.xs[i].values[used]) | np.isnan(self.xs[j].values[used])
        used = used[~missing]
        if len(used) < LEAST_RANKED:
            return JointPair(i, j, 1.0)
        f, g = (self.features.values[used, place].astype(np.float64) for place in (left, right))
        p = self._p_value(i, j, used, f, g, self.targets[used, target], factor)
        return JointPair(i, j, min(1.0, p * factor))

    def _p_value(
        self, i: int, j: int, used: Places, f: Array, g: Array, h: Array, factor: float
    ) -> float:
        """Return the largest p-value of the five tests; of the first ones if it is large."""
        rows = self.rows.take(used)
        p = 0.0
        for a, b in ((f * g, h), (g, f * h), (f, g * h)):
            own = single_test(a, b, rows, permutations=self.permutations, seed=self.seed)
            p = max(p, own)
            if p * factor > 1:
                return p
        units = rows.units(f * g, h) if rows else None
        for place, weight, other in ((i, f, g), (j, g, f)):
            regression = _Regression.of(self.xs[place], used, self.seed)
            adds = weight * regression.residuals(other) * regression.residuals(h)
            p = max(p, _mean_p_value(adds, units))
        return p


@dataclass(frozen=True)
class _Regression:
    """Regression on a single column: on cosines of its ranks, or means of its few values.

    Args:
        basis: (n, k) orthonormal cosines, or nothing.
        codes: (n,) of values, or nothing.
    """

    basis: Array | None
    codes: Places | None

    @classmethod
    def of(cls, column: Column, rows: Places, seed: int) -> "_Regression":
        """Return that of some rows of a column."""
        values = column.values[rows]
        distinct, codes = np.unique(values, return_inverse=True)
        if column.is_label or len(distinct) <= _LEVELS:
            return cls(None, codes)
        n = len(values)
        most = max(2, min(_SMOOTH, n // _ROWS_EACH))
        return cls(cosines(n)[ranks(values, column.rng(seed)), :most] / np.sqrt(n), None)

    def residuals(self, a: Array) -> Array:
        """Return a (n,) less what the column explains of it."""
        if self.codes is not None:
            means = np.bincount(self.codes, weights=a) / np.bincount(self.codes)
            return np.asarray(a - means[self.codes])
        basis = self.basis if self.basis is not None else np.empty((len(a), 0))
        centred = a - a.mean()
        return np.asarray(centred - basis @ (basis.T @ centred))


def _mean_p_value(a: Array, units: Places | None) -> float:
    """Return the p-value of a mean of 0, of values (n,) or of their sums over units."""
    sums = a if units is None else np.bincount(units, weights=a)
    spread = float(np.sqrt((sums**2).sum()))
    return float(2 * norm.sf(abs(float(sums.sum())) / spread)) if spread > 0 else 1.0


def _bins_for(n: int) -> int:
    """Return into how many bins each of two columns and y is cut: an even number."""
    side = round((n / _CELL) ** (1 / 3) / 2)
    return min(_MOST_BINS, max(2, 2 * int(side)))


def binned(column: Column, seed: int) -> Places:
    """Return codes (n,) of a label, or of bins of equally many ranks; -1 where missing."""
    known = ~np.isnan(column.values)
    values, bins = column.values[known], _bins_for(len(column.values))
    found = np.full(len(known), -1, dtype=np.int64)
    distinct, codes = np.unique(values, return_inverse=True)
    few = column.is_label or len(distinct) <= bins
    found[known] = codes if few else ranks(values, column.rng(seed)) * bins // len(values)
    return found


def joint_information(first: Places, second: Places, y: Places) -> tuple[float, float, float]:
    """Return the nats of two columns of codes (n,) together, and their standard error.

    Args:
        first: Codes from 0, and -1 where missing.
        second: The same.
        y: The same.

    Returns:
        The nats of both about y; their standard error; the nats of `first` alone, from the same
        rows and bins.
    """
    known = (first >= 0) & (second >= 0) & (y >= 0)
    if known.sum() < LEAST_RANKED:
        return 0.0, 0.0, 0.0
    of_first, of_second, of_y = (
        np.unique(a[known], return_inverse=True)[1] for a in (first, second, y)
    )
    both = np.unique(of_first * (of_second.max() + 1) + of_second, return_inverse=True)[1]
    nats, error = table_information(both, of_y)
    return nats, error, table_information(of_first, of_y)[0]
