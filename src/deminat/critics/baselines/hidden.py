r"""Hidden classes behind both sides as a baseline: cell types, subjects, states.

Given a class $k$, x and y are independent. Of each, numbers have a normal distribution about the
centre of the class, with one covariance for all classes, and labels are independent of all else,
with probabilities that the class gives. Then the posteriors $p(k \mid x)$ and $p(k \mid y)$ are
softmax functions of terms that are linear in the numbers and in indicators of the labels, and

$$ f(x, y) = \log \sum_k \frac{p(k \mid x)\, p(k \mid y)}{p(k)} . $$

A mixture of normals in many columns has a covariance between the sides for each component, which
fits noise. Here there is none, so a few thousand rows suffice for hundreds of columns. Expectation
maximisation starts at the nearest of some spread-out rows, in the leading principal components.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from ...data.transforms import Array, Indicators, Linear, Robust
from .base import Frames, log_ratio

__all__ = ["Coded", "HiddenClasses"]

_COUNTS = 2, 3, 4, 6, 8, 12, 16, 24  # of classes
_BETTER = 0.004  # nats by which more classes must be better, or no more are fitted
_TRIAL, _FAR_BEHIND = 4, 0.6  # classes, and the share that they must know of what is known
_ROWS = 20  # for each class, at least
_LEADING = 10  # principal components in which rows are near each other
_STEPS = 50  # of expectation maximisation, at most
_TOLERANCE = 1e-3  # nats of likelihood by which a step must be better
_SHRINK = 0.02  # share of the mean variance that is added to all
_RARE = 1e-3  # share of the rows that a class has at least
_PRIOR = 1.0  # rows of each class whose labels are as in all classes

Labels = Sequence[bool]


@dataclass(frozen=True)
class Coded:
    """The map of one side: numbers on a scale, then indicators of all values of the labels.

    Args:
        numbers: (p,) columns that are no labels.
        scale: Of these.
        indicators: Of the others.
    """

    numbers: NDArray[np.int64]
    scale: Linear
    indicators: Indicators

    @classmethod
    def fit(cls, a: Array, labels: Labels) -> Self:
        """Return the map fitted on rows (n, d), of whose columns some are labels."""
        numbers, others = np.flatnonzero(~np.array(labels)), np.flatnonzero(labels)
        values = [np.unique(a[:, j]) for j in others]
        columns = np.repeat(others, [len(v) for v in values])
        indicators = Indicators(columns, np.concatenate([np.empty(0), *values]))
        return cls(numbers, Robust.fit(a[:, numbers]).linear(), indicators)

    def __call__(self, a: Array) -> Array:
        """Return rows (m, d) as numbers and indicators."""
        return np.hstack([self.scale(a[:, self.numbers]), self.indicators(a)])


@dataclass(frozen=True)
class HiddenClasses:
    """The log ratio of hidden classes.

    Args:
        x_map: Map of the columns of x.
        y_map: Map of the columns of y.
        labels: Which columns of x, and of y, are labels.
        x_slopes: (dx, k) of the log posteriors.
        y_slopes: (dy, k).
        x_constants: (k,).
        y_constants: (k,).
        weights: (k,) shares of the classes.
    """

    x_map: Coded
    y_map: Coded
    labels: tuple[tuple[bool, ...], tuple[bool, ...]]
    x_slopes: Array
    y_slopes: Array
    x_constants: Array
    y_constants: Array
    weights: Array
    frames: ClassVar[Frames] = Frames()
    informative: ClassVar[bool] = True

    @classmethod
    def candidates(
        cls,
        x: Array,
        y: Array,
        labels: tuple[Labels, Labels],
        x_held: Array,
        y_held: Array,
        known: float = 0.0,
    ) -> "Iterator[HiddenClasses]":
        """Yield ever more classes while held-out scores rise.

        Args:
            x: Rows to fit to.
            y: Their other side.
            labels: Which columns of x, and of y, are labels.
            x_held: Rows that choose how many classes there are.
            y_held: Their other side.
            known: Nats of another closed form; few classes that know far less are given up.
        """
        best = 0.0
        for count in _COUNTS:
            if count * _ROWS > len(x):
                return
            found = cls.fit(x, y, labels, count)
            score = float(log_ratio(found.left(x_held), found.right(y_held), count).mean())
            if score > best:
                yield found
            if score < best + _BETTER and count > _COUNTS[1]:
                return
            best = max(best, score)
            if count >= _TRIAL and best < _FAR_BEHIND * known:
                return

    @classmethod
    def fit(cls, x: Array, y: Array, labels: tuple[Labels, Labels], count: int) -> Self:
        """Return classes of pairs x (n, dx), y (n, dy)."""
        maps = Coded.fit(x, labels[0]), Coded.fit(y, labels[1])
        rows = maps[0](x), maps[1](y)
        shares = _nearest(np.hstack([_leading(a) for a in rows]), count)
        before = -np.inf
        for _ in range(_STEPS):
            weights = np.maximum(shares.mean(axis=0), _RARE)
            weights /= weights.sum()
            sides = [_linear(m, a, shares) for m, a in zip(maps, rows, strict=True)]
            each = np.log(weights) + sum(
                a @ s + c for a, (s, c, _) in zip(rows, sides, strict=True)
            )
            posterior = log_softmax(each, axis=1)
            likelihood = float((each[:, 0] - posterior[:, 0]).mean()) + sum(c for *_, c in sides)
            if not likelihood > before + _TOLERANCE:
                break
            before, shares = likelihood, np.exp(posterior)
        (x_slopes, x_constants, _), (y_slopes, y_constants, _) = sides
        kinds = tuple(labels[0]), tuple(labels[1])
        return cls(*maps, kinds, x_slopes, y_slopes, x_constants, y_constants, weights)

    def refit(self, x: Array, y: Array) -> Self:
        """Return as many classes of other pairs."""
        return self.fit(x, y, self.labels, self.components)

    @property
    def components(self) -> int:
        """The number of classes."""
        return len(self.weights)

    @property
    def name(self) -> str:
        """What results call it."""
        return f"{self.components} hidden classes"

    def left(self, x: Array) -> Array:
        """Return left factors (m, 2 k): for each class its log posterior, and one."""
        posterior = self._posterior(self.x_map(x), self.x_slopes, self.x_constants)
        return _interleaved(posterior, np.ones_like(posterior))

    def right(self, y: Array) -> Array:
        """Return right factors (m, 2 k): for each class one, and its log posterior over prior."""
        posterior = self._posterior(self.y_map(y), self.y_slopes, self.y_constants)
        return _interleaved(np.ones_like(posterior), posterior - np.log(self.weights))

    def _posterior(self, rows: Array, slopes: Array, constants: Array) -> Array:
        return np.asarray(log_softmax(np.log(self.weights) + rows @ slopes + constants, axis=1))


def _interleaved(first: Array, second: Array) -> Array:
    """Return (m, 2 k) from two (m, k), each column of the one beside that of the other."""
    return np.stack([first, second], axis=2).reshape(len(first), -1)


def _leading(a: Array) -> Array:
    """Return the leading principal components of rows."""
    centred = a - a.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(a))
    return np.asarray(centred @ vectors[:, np.argsort(values)[::-1][:_LEADING]])


def _nearest(rows: Array, count: int) -> Array:
    """Return shares (n, k) of 0 and 1: each row belongs to one of k clusters of rows."""
    from sklearn.cluster import KMeans  # late: seldom needed

    labels = KMeans(count, n_init=3, max_iter=30, random_state=0).fit(rows).labels_
    return np.asarray(np.eye(count)[labels])


def _linear(coded: Coded, a: Array, shares: Array) -> tuple[Array, Array, float]:
    """Return slopes (d, k), constants (k,) and the mean of the rest of the log densities of a side.

    Args:
        coded: Map of the side.
        a: (n, d) its rows, mapped.
        shares: (n, k) of the classes.
    """
    count = len(coded.numbers)
    slopes, constants, rest = _of_numbers(a[:, :count], shares)
    labels = _of_labels(a[:, count:], coded.indicators.columns, shares)
    return np.vstack([slopes, labels]), constants, rest


def _of_labels(a: Array, columns: NDArray[np.int64], shares: Array) -> Array:
    """Return log probabilities (p, k) of values, given their indicators (n, p)."""
    counts = a.T @ shares + _PRIOR * a.mean(axis=0)[:, None]
    of_column = columns[:, None] == columns
    return np.asarray(np.log(counts / (of_column @ counts)))


def _of_numbers(a: Array, shares: Array) -> tuple[Array, Array, float]:
    """Return slopes, constants and the mean of the rest of normal log densities.

    What is quadratic in a row is the same for all classes.
    """
    if not a.shape[1]:
        return np.empty((0, shares.shape[1])), np.zeros(shares.shape[1]), 0.0
    counts = shares.sum(axis=0) + 1e-9
    means = shares.T @ a / counts[:, None]
    covariance = (a.T @ a - (means.T * counts) @ means) / len(a)
    size = float(np.trace(covariance)) / len(covariance)
    covariance = (1 - _SHRINK) * covariance + _SHRINK * size * np.eye(len(covariance))
    slopes = np.linalg.solve(covariance, means.T)
    constants = -0.5 * (means.T * slopes).sum(axis=0)
    squares = float((np.linalg.inv(covariance) * (a.T @ a / len(a))).sum())
    rest = -0.5 * (squares + float(np.linalg.slogdet(covariance)[1]))
    return np.asarray(slopes), np.asarray(constants), rest
