r"""A baseline for columns with frequent values: a sum over pairs of columns of x and y.

Ranks of labels, counts or quantities that are often zero are not normal, and a Gaussian copula is
a poor model of their log ratio. Here each column becomes a few functions $\phi$, piecewise linear
between knots at its quantiles. A column of few values has one function for each value. Then

$$ f_0(x, y) = c + \sum_i a_i \phi_i(x) + \sum_j b_j \psi_j(y)
   + \sum_{ij} W_{ij}\, \phi_i(x)\, \psi_j(y) $$

is the log odds of a logistic regression that separates joint pairs from unpaired samples. It can be
exact for two columns of few values, and for several such pairs of columns that are independent of
one another. Each weight adds variance, so only columns that are clearly related have weights. The
squared correlations of the functions of unrelated columns add up to a $\chi^2$ variable, which is
the test of relatedness.

The sum is an inner product of a function of x and a function of y, so the baseline is separable.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ...data.transforms import Array, RankToNormal
from .base import Frames, whitener

__all__ = ["Additive", "ColumnBasis"]

_SEED = 0xADD
_KNOTS = 0.42  # times the cube root of the rows: 4 of 800 rows, 8 of 7,000
_FEWEST, _MOST = 3, 12  # pieces of a column
_END = 0.1  # of a piece: beyond the first and last knot functions are constant
_RARE = 0.1  # of a piece: the smallest share of the rows in the hat of a knot
_FLAT = 1e-3  # share of the largest variance below which a function is dropped
_LEVEL = 0.05  # probability that any unrelated columns are found to be related
_WEIGHTS = 400  # at most, of products
_PRIOR = 0.4  # prior variance of a weight
_ROWS = 20_000  # to fit to, at most
_NUMBERS = 10_000_000  # at most, in the table of the regression: 80 MB
_NEGATIVES = 8  # at most, unpaired samples for each pair
_ITERATIONS = 100  # by then only the last digits change


@dataclass(frozen=True)
class ColumnBasis:
    """Uncorrelated piecewise linear functions of one column, of mean 0 and variance 1.

    Args:
        column: The number of the column.
        ranks: Maps the column to a standard normal.
        knots: The functions are linear between them.
        center: (h,) means of the hat functions.
        whitener: (h, r) from centred hat functions to uncorrelated ones.
    """

    column: int
    ranks: RankToNormal
    knots: Array
    center: Array
    whitener: Array

    @classmethod
    def fit(cls, a: Array, column: int) -> Self:
        """Return the functions for a column of `a` (n, d)."""
        pieces = int(np.clip(round(_KNOTS * len(a) ** (1 / 3)), _FEWEST, _MOST))
        ranks = RankToNormal.fit(a[:, [column]])
        normal = ranks(a[:, [column]])[:, 0]
        knots = _knots(normal, pieces)
        hats = _hats(normal, knots)
        center = hats.mean(axis=0)
        return cls(column, ranks, knots, center, whitener(hats - center, _FLAT))

    @property
    def size(self) -> int:
        """The number of functions: 0 for a constant column."""
        return int(self.whitener.shape[1])

    def __call__(self, a: Array) -> Array:
        """Return the functions (m, size) of rows `a` (m, d)."""
        normal = self.ranks(a[:, [self.column]])[:, 0]
        return np.asarray((_hats(normal, self.knots) - self.center) @ self.whitener)


@dataclass(frozen=True)
class Additive:
    """A sum over pairs of related columns of x and y.

    Args:
        x_bases: Functions of the columns of x that are related to any of y.
        y_bases: Functions of the columns of y that are related to any of x.
        weights: (p, q) of products of functions; zero where columns are not related.
        x_alone: (p,) weights of the functions of x.
        y_alone: (q,) weights of the functions of y.
        constant: In nats.
        pairs: The number of pairs of related columns.
        frames: In which networks see the rows.
        informative: Whether a network can improve it.
    """

    x_bases: tuple[ColumnBasis, ...]
    y_bases: tuple[ColumnBasis, ...]
    weights: Array
    x_alone: Array
    y_alone: Array
    constant: float
    pairs: int
    frames: Frames = Frames()  # noqa: RUF009 - it is frozen
    informative: bool = True
    components: ClassVar[int] = 1  # the log ratio is an inner product

    @classmethod
    def fit(cls, x: Array, y: Array) -> Self | None:
        """Return the sum for pairs x (n, dx), y (n, dy); None if no columns are related."""
        rows = np.random.default_rng(_SEED).permutation(len(x))[:_ROWS]
        x, y = x[rows], y[rows]
        x_all, y_all = ([ColumnBasis.fit(a, i) for i in range(a.shape[1])] for a in (x, y))
        related = _related(x_all, y_all, x, y)
        if not related.any():
            return None
        x_used, y_used = np.flatnonzero(related.any(axis=1)), np.flatnonzero(related.any(axis=0))
        x_bases, y_bases = tuple(x_all[i] for i in x_used), tuple(y_all[j] for j in y_used)
        sizes = [b.size for b in x_bases], [b.size for b in y_bases]
        products = related[np.ix_(np.repeat(x_used, sizes[0]), np.repeat(y_used, sizes[1]))]
        found, constant = _fit_weights(_expand(x_bases, x), _expand(y_bases, y), products)
        weights, p = np.zeros(products.shape), len(products)
        weights[products], alone = np.split(found, [int(products.sum())])
        return cls(x_bases, y_bases, weights, alone[:p], alone[p:], constant, int(related.sum()))

    def refit(self, x: Array, y: Array) -> "Additive":
        """Return the sum for other pairs, or this one if no columns are related there."""
        return self.fit(x, y) or self

    @property
    def name(self) -> str:
        """What results call it."""
        return f"sum over {self.pairs} pair{'s' * (self.pairs != 1)} of columns"

    def left(self, x: Array) -> Array:
        """Return left factors (m, q + 2): weighted functions of x, the terms of x alone, ones."""
        functions = _expand(self.x_bases, x)
        alone = functions @ self.x_alone + self.constant
        return np.column_stack([functions @ self.weights, alone, np.ones(len(functions))])

    def right(self, y: Array) -> Array:
        """Return right factors (m, q + 2): functions of y, ones, the terms of y alone."""
        functions = _expand(self.y_bases, y)
        return np.column_stack([functions, np.ones(len(functions)), functions @ self.y_alone])


def _expand(bases: Sequence[ColumnBasis], a: Array) -> Array:
    """Return all functions (m, p) of rows `a`."""
    return np.hstack([b(a) for b in bases])


def _knots(column: Array, pieces: int) -> Array:
    """Return quantiles of a column, and each frequent value with its neighbours on both sides.

    The weight of a function that is above 0 in very few rows would be noise. So knots are removed,
    the rarest first, until none is too rare.
    """
    values, counts = np.unique(column, return_counts=True)
    frequent = np.flatnonzero(counts * pieces > len(column))
    around = np.clip(frequent[:, None] + [-1, 0, 1], 0, len(values) - 1)
    levels = np.clip(np.linspace(0, 1, pieces + 1), _END / pieces, 1 - _END / pieces)
    quantiles = np.quantile(column, levels, method="nearest")
    knots = np.unique(np.concatenate([quantiles, values[around].ravel()]))
    while len(knots) > 1:
        shares = [np.interp(values, knots, one) @ counts for one in np.eye(len(knots))]
        if min(shares) * pieces > _RARE * len(column):
            break
        knots = np.delete(knots, np.argmin(shares))
    return knots


def _hats(column: Array, knots: Array) -> Array:
    """Return hat functions (n, knots - 1): each is 1 at its knot and 0 at all others.

    The last one is left out, since they add up to 1. A constant column has none.
    """
    hats = [np.interp(column, knots, one) for one in np.eye(len(knots))[:-1]]
    return np.reshape(hats, (len(knots) - 1, len(column))).T


def _related(
    x_bases: Sequence[ColumnBasis], y_bases: Sequence[ColumnBasis], x: Array, y: Array
) -> NDArray[np.bool_]:
    """Return (dx, dy) which columns are related; if these are too many, the clearest ones."""
    sums, sizes = np.zeros((2, len(x_bases), len(y_bases)))
    right, edges = _expand(y_bases, y), np.cumsum([0, *(b.size for b in y_bases)])
    for i, basis in enumerate(x_bases):
        squares = ((basis(x).T @ right) ** 2).sum(axis=0) / len(x)
        sums[i] = np.diff(np.concatenate([[0], np.cumsum(squares)])[edges])
        sizes[i] = basis.size * np.diff(edges)
    freedom = np.maximum(sizes, 1)
    clear = chi2.logsf(sums, freedom) < np.log(_LEVEL / sizes.size)
    order = np.argsort(-np.where(clear, (sums - sizes) / np.sqrt(freedom), -np.inf), axis=None)
    within = np.zeros(sizes.size, dtype=bool)
    within[order] = np.cumsum(sizes.ravel()[order]) <= _WEIGHTS
    return np.asarray(clear & within.reshape(sizes.shape))


def _fit_weights(left: Array, right: Array, products: NDArray[np.bool_]) -> tuple[Array, float]:
    """Return the weights of products, of x alone and of y alone, and the constant."""
    n, (i, j) = len(left), np.nonzero(products)
    numbers = n * (len(i) + sum(products.shape))
    k = int(np.clip(_NUMBERS // numbers - 1, 1, min(_NEGATIVES, n - 1)))
    x = np.tile(left, (k + 1, 1))
    y = np.concatenate([np.roll(right, shift, axis=0) for shift in range(k + 1)])
    joint = np.arange(len(x)) < n
    model = LogisticRegression(C=_PRIOR, max_iter=_ITERATIONS)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(np.hstack([x[:, i] * y[:, j], x, y]), joint, np.where(joint, 1, 1 / k))
    return model.coef_[0], float(model.intercept_[0])
