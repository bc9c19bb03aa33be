r"""Pairs of columns that are informative about y together, beyond what each is alone.

If y says whether two coins agree, neither coin alone is informative. Let $f$, $g$ and $h$ be
features of the columns $x_i$ and $x_j$ and of y, of mean 0: cosines of ranks, or indicators of the
levels of a label; of up to four levels, of all ways to split them in two. The mean of $f g h$ over
the rows is then far from 0. For all pairs of columns and one h these means are one matrix product,
$F^T \mathrm{diag}(h) F$, done in blocks. Each sum is divided by the root of its sum of squares.
What single columns explain of h is subtracted beforehand, by least squares.

The largest means name candidates, and nothing more is concluded from them. The p-value of a
candidate is the largest of five, divided by the share of its triple (f, g, h) in the level. The
shares of all triples of the table add up to 1 (Bonferroni), so p-values are valid however
candidates were found. Pairs have equal shares. In each, slow cosines have larger shares than fast
ones, since dependence is more often smooth.

- `rank_test` of $f g$ and $h$. It is exact if y is independent of $(x_i, x_j)$.
- `rank_test` of $g$ and $f h$, and of $f$ and $g h$. They are exact if one of the columns is
  independent of the other and of y: a column of noise beside an informative one.
- The means of $f\,(g - E[g | x_i])\,(h - E[h | x_i])$ over their standard error, and the same with
  i and j exchanged. These are normal in large samples if one column has nothing to add to the
  other, even if the columns depend on each other (a weighted generalised covariance measure).

So a pair is found only if each column adds to the other. Where rows depend on each other, the
candidates are chosen on one half of the groups, or of the time, and tested on the other half by
permutations of groups or shifts in time. There all candidates have equal shares.

The information of a pair is that of a table of counts of bins of ranks, less its bias.

References:
    Shah and Peters (2020), The hardness of conditional independence testing and the generalised
        covariance measure.
    Scheidegger, Hoerrmann and Buehlmann (2022), The weighted generalised covariance measure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
_BIN = 20  # rows of a bin of a regression
_ROUNDING = 1e-6  # of features of variance 1
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
        weights: (r,) which add up to 1 in each column.
    """

    values: Single
    owner: Places
    weights: Array

    @classmethod
    def of(cls, columns: Sequence[Column], most: int, seed: int) -> "_Features":
        """Return at most so many cosines, or indicators, of each column."""
        each = [_features(c, most, c.rng(seed)) for c in columns]
        values = np.hstack([v for v, _ in each]).astype(np.float32)
        owner = np.repeat(np.arange(len(columns)), [len(w) for _, w in each])
        return cls(values, owner, np.concatenate([w for _, w in each]))

    def pairs(self) -> int:
        """Return how many pairs of columns have features."""
        count = len(np.unique(self.owner))
        return count * (count - 1) // 2


@dataclass(frozen=True)
class _Candidates:
    """Triples of features, at most one for each pair of columns.

    Args:
        left: (m,) places of features.
        right: (m,) of another column.
        target: (m,) of y.
        weights: (m,) products of their weights.
    """

    left: Places
    right: Places
    target: Places
    weights: Array


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
    features = _Features.of(xs, _OF_X, seed)
    targets = _Features.of([y], _CLASSES if y.is_label else _OF_Y, seed)
    rows, n, total = rows or Dependence(), len(y.values), features.pairs()
    if not total or not len(targets.owner):
        return []
    chosen, tested = rows.halves(n, seed) if rows else (np.arange(n), np.arange(n))
    most, least = _OF_HALF, 0.0
    if not rows:
        most = max(_CANDIDATES * len(xs), _OF_HALF)
        least = _SLACK * float(norm.isf(level / total / 2))
    residuals = _unexplained(targets.values[chosen], features, chosen, informative)
    found = _screened(features, replace(targets, values=residuals), chosen, most, least)
    shares = found.weights / total
    if rows:
        shares = np.full(len(shares), 1 / max(1, len(shares)))
    test = _Test(xs, features, targets, rows, tested, permutations, seed)
    places = (a.tolist() for a in (found.left, found.right, found.target, shares))
    pairs = (test.pair(*triple) for triple in zip(*places, strict=True))
    return sorted((pair for pair in pairs if pair.p_value <= level), key=lambda p: p.p_value)


def _features(column: Column, most: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return features (n, k) of mean 0 and variance 1, 0 where missing, and their weights (k,)."""
    known = ~np.isnan(column.values)
    values = column.values[known]
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) < 2 or len(values) < LEAST_RANKED:
        return np.zeros((len(known), 0)), np.zeros(0)
    if column.is_label or len(distinct) <= most:
        raw = _contrasts(codes, counts, most)
        weights = np.asarray(np.ones(raw.shape[1]))
    else:
        weights = np.asarray(np.arange(1, most + 1) ** -2.0)
        smooth = cosines(len(values))[ranks(values, rng), :most]
        # Of equal values the mean is used, which has no noise of the order of ties.
        raw = _means(smooth, codes, counts)[codes] if len(distinct) < len(values) else smooth
    spread = raw.std(axis=0)
    kept = spread > 0.1 * spread.max(initial=0)
    found = np.zeros((len(known), int(kept.sum())))
    found[known] = ((raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1))[:, kept]
    return found, weights[kept] / weights[kept].sum()


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
    targets: Single, features: _Features, rows: Places, informative: Sequence[int]
) -> Single:
    """Return what is left of the targets (n, c) at some rows without informative columns."""
    own = [np.flatnonzero(features.owner == i) for i in informative]
    most = int(_EXPLAINED * len(rows))
    used = np.concatenate([np.empty(0, dtype=np.int64), *own])[:most]
    if not len(used):
        return targets
    known = features.values[np.ix_(rows, used)].astype(np.float64)
    weights = np.linalg.lstsq(known, targets, rcond=None)[0]
    return np.asarray((targets - known @ weights).astype(np.float32))


def _screened(
    features: _Features, targets: _Features, rows: Places, most: int, least: float
) -> _Candidates:
    """Return the triples of the pairs with the largest scores, of each pair the best.

    Args:
        features: Of all rows.
        targets: What is not explained of y, at the rows that are used.
        rows: These.
        most: Pairs.
        least: The score of a triple of weight 1.
    """
    if len(rows) < len(features.values):
        features = replace(features, values=features.values[rows])
    parts = list(_large(features, targets, most, least))
    left, right, target, score = (np.concatenate(a) for a in zip(*parts, strict=True))
    keys = features.owner[left] * (features.owner.max() + 1) + features.owner[right]
    order = np.argsort(-score, kind="stable")
    first = order[np.sort(np.unique(keys[order], return_index=True)[1])[:most]]
    left, right, target = left[first], right[first], target[first]
    weights = features.weights[left] * features.weights[right] * targets.weights[target]
    return _Candidates(left, right, target, weights)


def _large(
    features: _Features, targets: _Features, most: int, least: float
) -> Iterator[tuple[Places, Places, Places, Single]]:
    r"""Yield for blocks of features the places of triples with large scores, and the scores.

    A normal score z has a p-value near $e^{-z^2/2}$, so a weight w counts for $2 \log w$.
    """
    values, owner = features.values, features.owner
    squares, bonus = values**2, 2 * np.log(features.weights).astype(np.float32)
    largest = int(np.bincount(owner).max())
    enough = most * largest**2 * len(targets.owner)  # all triples of the best pairs are among them
    for start in range(0, len(owner), _AT_ONCE):
        end = min(start + _AT_ONCE, len(owner))
        earlier = owner[start:end, None] >= owner[None, start:]
        weighted = bonus[start:end, None] + bonus[None, start:]
        for c, target in enumerate(targets.values.T):
            sums = (values[:, start:end] * target[:, None]).T @ values[:, start:]
            spread = (squares[:, start:end] * target[:, None] ** 2).T @ squares[:, start:]
            scores = sums**2 / np.maximum(spread, 1e-12) + weighted
            scores += 2 * np.float32(np.log(targets.weights[c]))
            scores[earlier] = -np.inf
            flat = scores.ravel()
            large = np.flatnonzero(flat > (least**2 if least else -np.inf))
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
        targets: Of y.
        rows: Which rows depend on each other.
        tested: The rows of the tests.
        permutations: Where rows depend on each other.
        seed: Breaks ties.
    """

    xs: Sequence[Column]
    features: _Features
    targets: _Features
    rows: Dependence
    tested: Places
    permutations: int
    seed: int

    def pair(self, left: int, right: int, target: int, share: float) -> JointPair:
        """Return a pair of columns with its p-value, for a share of the level."""
        i, j = (int(self.features.owner[place]) for place in (left, right))
        used = self.tested
        missing = np.isnan(self.xs[i].values[used]) | np.isnan(self.xs[j].values[used])
        used = used[~missing]
        if len(used) < LEAST_RANKED:
            return JointPair(i, j, 1.0)
        f, g = (self.features.values[used, place].astype(np.float64) for place in (left, right))
        h = self.targets.values[used, target].astype(np.float64)
        p = self._p_value((i, j), used, (f, g, h), share)
        return JointPair(i, j, min(1.0, p / share))

    def _p_value(
        self, columns: tuple[int, int], used: Places, triple: Sequence[Array], share: float
    ) -> float:
        """Return the largest p-value of the five tests; of the first ones if it is large."""
        (i, j), (f, g, h) = columns, triple
        rows = self.rows.take(used)
        p = 0.0
        for a, b in ((f * g, h), (g, f * h), (f, g * h)):
            own = single_test(a, b, rows, permutations=self.permutations, seed=self.seed)
            p = max(p, own)
            if p > share:
                return p
        units = rows.units(f * g, h) if rows else None
        for place, weight, other in ((i, f, g), (j, g, f)):
            regression = _Regression.of(self.xs[place], used, self.seed)
            adds = weight * regression.residuals(other) * regression.residuals(h)
            p = max(p, _mean_p_value(adds, units))
        return p


@dataclass(frozen=True)
class _Regression:
    """Regression on a column: on cosines of its ranks, then on bins; or on means of its values.

    Cosines follow slopes that bins cut into steps, and bins follow steps that cosines round off.

    Args:
        basis: (n, k) orthonormal cosines, none for columns of few values.
        codes: (n,) of values or bins.
    """

    basis: Array
    codes: Places

    @classmethod
    def of(cls, column: Column, rows: Places, seed: int) -> "_Regression":
        """Return that of some rows of a column."""
        values, n = column.values[rows], len(rows)
        distinct, codes = np.unique(values, return_inverse=True)
        if column.is_label or len(distinct) <= _LEVELS:
            return cls(np.empty((n, 0)), codes)
        places, most = ranks(values, column.rng(seed)), max(2, min(_SMOOTH, n // _ROWS_EACH))
        return cls(cosines(n)[places, :most] / np.sqrt(n), places // _BIN)

    def residuals(self, a: Array) -> Array:
        """Return a (n,) less what the column explains of it."""
        left = a - self.basis @ (self.basis.T @ a)
        means = np.bincount(self.codes, weights=left) / np.bincount(self.codes)
        left = left - means[self.codes]
        # A copy of the column leaves rounding errors, whose mean may be far from 0.
        return np.asarray(np.where(np.abs(left) > _ROUNDING, left, 0.0))


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
