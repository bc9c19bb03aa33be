r"""A start for columns with frequent values: what each of x says of each of y, added up.

Ranks of labels, counts or quantities that are often zero are not normal, and a Gaussian copula is
a poor guess of their log ratio. Here each column becomes a few functions $\phi$, straight between
knots at its quantiles, so that a column of few values has one for each; and

$$ f_0(x, y) = c + \sum_i a_i \phi_i(x) + \sum_j b_j \psi_j(y)
   + \sum_{ij} W_{ij}\, \phi_i(x)\, \psi_j(y) $$

is the log odds of a logistic regression that tells pairs from unpaired rows. It can be exact for
two columns of few values, and for several such couples that are independent of one another. Each
weight costs information: there are weights only for columns that are clearly related, by the
correlations of their functions, whose squares add up to a $\chi^2$ if they are not.

The sum is an inner product of a function of x and a function of y, so the start is separable.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ...data.transforms import Array, RankToNormal
from .base import Frames

__all__ = ["Additive", "Bends"]

_SEED = 0xADD
_KNOTS = 0.42  # times the cube root of the rows: 4 of 800 rows, 8 of 7,000
_FEWEST, _MOST = 3, 12  # pieces of a column
_END = 0.1  # of a piece: beyond the first and last knot functions are constant
_RARE = 0.1  # of a piece: the least share of the rows that a knot stands for
_FLAT = 1e-3  # share of the largest variance below which a function says nothing
_CHANCE = 0.05  # of taking any two columns for related that are not
_WEIGHTS = 400  # at most, of products
_PRIOR = 0.4  # variance of a weight before anything is known
_ROWS = 20_000  # to learn from, at most
_NUMBERS = 10_000_000  # at most, in the table of the regression: 80 MB
_NEGATIVES = 8  # at most, unpaired rows for each pair
_ITERATIONS = 100  # by then only the last digits move


@dataclass(frozen=True)
class Bends:
    """A column as a few functions of it, which are uncorrelated, of mean 0 and variance 1.

    Args:
        column: Which.
        ranks: Makes it normal.
        knots: Between which the functions are straight.
        center: Their means.
        turn: What makes them uncorrelated.
    """

    column: int
    ranks: RankToNormal
    knots: Array
    center: Array
    turn: Array

    @classmethod
    def fit(cls, a: Array, column: int) -> Self:
        """Return the functions that suit a column of `a` (n, d)."""
        pieces = int(np.clip(round(_KNOTS * len(a) ** (1 / 3)), _FEWEST, _MOST))
        ranks = RankToNormal.fit(a[:, [column]])
        normal = ranks(a[:, [column]])[:, 0]
        knots = _knots(normal, pieces)
        hats = _hats(normal, knots)
        return cls(column, ranks, knots, hats.mean(axis=0), _whitener(hats))

    @property
    def size(self) -> int:
        """How many functions there are: none of a constant column."""
        return int(self.turn.shape[1])

    def __call__(self, a: Array) -> Array:
        """Return (m, size) of rows `a` (m, d)."""
        normal = self.ranks(a[:, [self.column]])[:, 0]
        return np.asarray((_hats(normal, self.knots) - self.center) @ self.turn)


@dataclass(frozen=True)
class Additive:
    """A sum over couples of related columns of x and y.

    Args:
        x_bends: Functions of the columns of x that are related to any of y.
        y_bends: Functions of those of y.
        weights: (p, q) of their products; zero where columns are not related.
        x_alone: (p,) weights of those of x.
        y_alone: (q,) weights of those of y.
        constant: In nats.
        couples: How many there are.
        frames: In which networks look at the rows.
        informative: Whether a network may go on from here.
    """

    x_bends: tuple[Bends, ...]
    y_bends: tuple[Bends, ...]
    weights: Array
    x_alone: Array
    y_alone: Array
    constant: float
    couples: int
    frames: Frames = Frames()  # noqa: RUF009 - it is frozen
    informative: bool = True

    @classmethod
    def fit(cls, x: Array, y: Array) -> Self | None:
        """Return the sum that suits pairs x (n, dx), y (n, dy), unless no columns are related."""
        rows = np.random.default_rng(_SEED).permutation(len(x))[:_ROWS]
        x, y = x[rows], y[rows]
        x_all, y_all = ([Bends.fit(a, i) for i in range(a.shape[1])] for a in (x, y))
        related = _related(x_all, y_all, x, y)
        if not related.any():
            return None
        x_kept, y_kept = np.flatnonzero(related.any(axis=1)), np.flatnonzero(related.any(axis=0))
        x_bends, y_bends = tuple(x_all[i] for i in x_kept), tuple(y_all[j] for j in y_kept)
        sizes = [b.size for b in x_bends], [b.size for b in y_bends]
        kept = related[np.ix_(np.repeat(x_kept, sizes[0]), np.repeat(y_kept, sizes[1]))]
        found, constant = _told_apart(_bent(x_bends, x), _bent(y_bends, y), kept)
        weights, p = np.zeros(kept.shape), len(kept)
        weights[kept], alone = np.split(found, [int(kept.sum())])
        return cls(x_bends, y_bends, weights, alone[:p], alone[p:], constant, int(related.sum()))

    def refit(self, x: Array, y: Array) -> "Additive":
        """Return the same kind of sum of other pairs."""
        return self.fit(x, y) or self

    @property
    def components(self) -> int:
        """One: the log ratio is an inner product."""
        return 1

    @property
    def name(self) -> str:
        """What results call it."""
        return f"sum over {self.couples} couple{'s' * (self.couples != 1)} of columns"

    def left(self, x: Array) -> Array:
        """Return (m, q + 2): weighted functions of x, the terms of x alone, ones."""
        bent = _bent(self.x_bends, x)
        alone = bent @ self.x_alone + self.constant
        return np.column_stack([bent @ self.weights, alone, np.ones(len(bent))])

    def right(self, y: Array) -> Array:
        """Return (m, q + 2): functions of y, ones, the terms of y alone."""
        bent = _bent(self.y_bends, y)
        return np.column_stack([bent, np.ones(len(bent)), bent @ self.y_alone])


def _bent(bends: Sequence[Bends], a: Array) -> Array:
    """Return all functions (m, p) of rows `a`."""
    return np.hstack([b(a) for b in bends])


def _knots(column: Array, pieces: int) -> Array:
    """Return quantiles of a column, and on both sides of a frequent value its neighbours.

    A function that is hardly ever above 0 would learn from a few rows what it says of many: of such
    knots the worst is taken away until there is none.
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
    """Return (n, knots - 1): functions that are 1 at a knot and 0 at all others.

    Without the last one, since they add up to 1; of a constant column none is left.
    """
    hats = [np.interp(column, knots, one) for one in np.eye(len(knots))[:-1]]
    return np.reshape(hats, (len(knots) - 1, len(column))).T


def _whitener(hats: Array) -> Array:
    """Return (h, r) to uncorrelated functions of variance 1."""
    centred = hats - hats.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(hats))
    there = values > _FLAT * values.max(initial=0.0)
    return np.asarray(vectors[:, there] / np.sqrt(values[there]))


def _related(
    x_bends: Sequence[Bends], y_bends: Sequence[Bends], x: Array, y: Array
) -> NDArray[np.bool_]:
    """Tell (dx, dy) which columns are related: if they are too many, which are most clearly."""
    sums, sizes = np.zeros((2, len(x_bends), len(y_bends)))
    right, edges = _bent(y_bends, y), np.cumsum([0, *(b.size for b in y_bends)])
    for i, bends in enumerate(x_bends):
        squares = ((bends(x).T @ right) ** 2).sum(axis=0) / len(x)
        sums[i] = np.diff(np.concatenate([[0], np.cumsum(squares)])[edges])
        sizes[i] = bends.size * np.diff(edges)
    freedom = np.maximum(sizes, 1)
    clear = chi2.logsf(sums, freedom) < np.log(_CHANCE / sizes.size)
    order = np.argsort(-np.where(clear, (sums - sizes) / np.sqrt(freedom), -np.inf), axis=None)
    fitting = np.zeros(sizes.size, dtype=bool)
    fitting[order] = np.cumsum(sizes.ravel()[order]) <= _WEIGHTS
    return np.asarray(clear & fitting.reshape(sizes.shape))


def _told_apart(left: Array, right: Array, kept: NDArray[np.bool_]) -> tuple[Array, float]:
    """Return the weights of products, of x alone and of y alone, and the constant."""
    n, (i, j) = len(left), np.nonzero(kept)
    numbers = n * (len(i) + sum(kept.shape))
    k = int(np.clip(_NUMBERS // numbers - 1, 1, min(_NEGATIVES, n - 1)))
    x = np.tile(left, (k + 1, 1))
    y = np.concatenate([np.roll(right, shift, axis=0) for shift in range(k + 1)])
    joint = np.arange(len(x)) < n
    model = LogisticRegression(C=_PRIOR, max_iter=_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.hstack([x[:, i] * y[:, j], x, y]), joint, np.where(joint, 1, 1 / k))
    return model.coef_[0], float(model.intercept_[0])
