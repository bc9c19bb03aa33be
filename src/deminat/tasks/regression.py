r"""What a table of features says of one column: steps of a tree, and classes by a logistic model.

- `steps`: a tree cuts the unit cube of d uniform columns into boxes, and y is the value of the box
  plus normal noise. With the volumes of the boxes, y alone is a mixture of normals. Of the
  information, $I = h(y) - h(\text{noise})$ is an integral over y.
- `logistic`: x is normal, and y is 1 with probability $\sigma(\eta)$, otherwise 0. $\eta$ is linear
  in x or a product of two columns. Its distribution is symmetric, so y is a fair coin, and
  $I = \log 2 - \mathbb E\, h(\sigma(\eta))$ is an integral over $\eta$ or over two columns.
- `frailty`: all columns are the shorter, the larger a quantity is that they share (Clayton's
  copula). For m columns of x and n of y, all uniform, with a = 1/theta and
  $T_d = 1 + \sum_{i \le d} (u_i^{-\theta} - 1)$, the density of d columns is
  $\prod_{k < d} (1 + k\theta) \prod u_i^{-1-\theta}\, T_d^{-(a + d)}$. Products of single columns
  cancel in the ratio, and $\mathbb E \log T_d = \psi(a + d) - \psi(a)$.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, entr, expit, logsumexp

from .maps import Array
from .task import Task

__all__ = ["frailty", "logistic", "steps"]

_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_REACH, _FINE = 10.0, 50  # of an integral: standard deviations, and steps in each
_NODES = 801  # of an integral over a normal column

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Tree:
    """A full binary tree over columns in [0, 1], and the values of its leaves.

    Args:
        columns: (depth, leaves) column that is compared on the way to each leaf.
        cuts: (depth, leaves) threshold.
        above: (depth, leaves) whether the leaf is above it.
        values: (leaves,) means of y.
        noise: Standard deviation of y about them.
        d: Columns of x.
    """

    columns: Codes
    cuts: Array
    above: NDArray[np.bool_]
    values: Array
    noise: float
    d: int

    @property
    def volumes(self) -> Array:
        """(leaves,) probabilities of the boxes."""
        found = []
        for columns, cuts, above in zip(self.columns.T, self.cuts.T, self.above.T, strict=True):
            low, high = np.zeros(self.d), np.ones(self.d)
            for column, cut, is_above in zip(columns, cuts, above, strict=True):
                side = low if is_above else high
                side[column] = (max if is_above else min)(side[column], cut)
            found.append(np.maximum(high - low, 0).prod())
        return np.array(found)

    def mi(self) -> float:
        reach, step = _REACH * self.noise, self.noise / _FINE
        y = np.arange(self.values.min() - reach, self.values.max() + reach, step)
        entropy = step * float(entr(np.exp(self._alone(y))).sum())
        return entropy - (math.log(self.noise) + _LOG_ROOT + 0.5)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        x = rng.random((n, self.d))
        return x, (self._mean(x) + self.noise * rng.standard_normal(n))[:, None]

    def score(self, x: Array, y: Array) -> Array:
        return self._normal(y[:, 0] - self._mean(x)) - self._alone(y[:, 0])

    def _mean(self, x: Array) -> Array:
        inside = ((x[:, self.columns] > self.cuts) == self.above).all(axis=1)
        return np.asarray(self.values[inside.argmax(axis=1)])

    def _normal(self, residual: Array) -> Array:
        return np.asarray(-((residual / self.noise) ** 2) / 2 - math.log(self.noise) - _LOG_ROOT)

    def _alone(self, y: Array) -> Array:
        each = self._normal(y[:, None] - self.values)
        return np.asarray(logsumexp(each, axis=1, b=self.volumes))


@cache
def steps(depth: int, d: int, noise: float) -> Task:
    """Return d uniform columns x, and y that a tree of them determines up to noise.

    Args:
        depth: Comparisons on the way to a leaf.
        d: Columns of x.
        noise: Standard deviation of y about the values of the leaves, which have 1.
    """
    rng = np.random.default_rng([depth, d, 29])
    leaves = np.arange(2**depth)
    columns, cuts, above = [], [], []
    for level in range(depth):
        node = leaves >> (depth - level)
        columns.append(rng.integers(d, size=2**level)[node])
        cuts.append(rng.uniform(0.3, 0.7, size=2**level)[node])
        above.append((leaves >> (depth - level - 1)) % 2 == 1)
    values = rng.standard_normal(len(leaves))
    tree = _Tree(np.array(columns), np.array(cuts), np.array(above), values, noise, d)
    name = f"steps-{depth}-{d}-{noise:.12g}"
    return Task(name, tree.mi(), d, 1, tree.draw, tree.score)


@cache
def logistic(weights: Sequence[float], kind: Literal["line", "product"] = "line") -> Task:
    """Return normal columns x, and a label y of 0 or 1.

    Args:
        weights: Of the columns; of a product, one, which multiplies the first two columns.
        kind: Whether the log odds are linear in the columns or a product of the first two.
    """
    nodes = np.linspace(-_REACH, _REACH, _NODES)
    shares = np.exp(-(nodes**2) / 2)
    shares /= shares.sum()
    if kind == "line":
        odds, d = math.hypot(*weights) * nodes, len(weights)
    else:
        odds, d = weights[0] * np.outer(nodes, nodes).ravel(), 2
        shares = np.outer(shares, shares).ravel()
    p = expit(odds)
    mi = math.log(2) - float(shares @ (entr(p) + entr(1 - p)))
    log_odds = partial(_log_odds, weights=np.array(weights, dtype=float), kind=kind)
    name = f"logistic-{kind}-" + "-".join(f"{w:.12g}" for w in weights)
    draw = partial(_draw_label, log_odds=log_odds, d=d)
    return Task(name, mi, d, 1, draw, partial(_score_label, log_odds=log_odds), labels_y=(0,))


def _log_odds(x: Array, weights: Array, kind: str) -> Array:
    return x @ weights if kind == "line" else weights[0] * x[:, 0] * x[:, 1]


def _draw_label(
    n: int, rng: np.random.Generator, log_odds: "partial[Array]", d: int
) -> tuple[Array, Array]:
    x = rng.standard_normal((n, d))
    return x, (rng.random(n) < expit(log_odds(x))).astype(float)[:, None]


def _score_label(x: Array, y: Array, log_odds: "partial[Array]") -> Array:
    sign = 2 * y[:, 0] - 1
    return np.asarray(math.log(2) - np.logaddexp(0, -sign * log_odds(x)))


def frailty(dim_x: int, dim_y: int, theta: float) -> Task:
    """Return uniform columns that are dependent by a quantity that all share.

    Args:
        dim_x: Columns of x.
        dim_y: Columns of y.
        theta: The larger, the more dependent.
    """
    a, d = 1 / theta, dim_x + dim_y

    def entropy(k: int) -> float:
        own = sum(math.log1p(i * theta) for i in range(k))
        return own - (a + k) * float(digamma(a + k) - digamma(a))

    mi = entropy(d) - entropy(dim_x) - entropy(dim_y)
    name = f"frailty-{dim_x}-{dim_y}-{theta:.12g}"
    draw = partial(_draw_lives, theta=theta, dim_x=dim_x, d=d)
    return Task(name, mi, dim_x, dim_y, draw, partial(_score_lives, theta=theta))


def _draw_lives(
    n: int, rng: np.random.Generator, theta: float, dim_x: int, d: int
) -> tuple[Array, Array]:
    shared = rng.gamma(1 / theta, size=(n, 1))
    rows = np.exp(-np.log1p(rng.exponential(size=(n, d)) / shared) / theta)
    return rows[:, :dim_x], rows[:, dim_x:]


def _score_lives(x: Array, y: Array, theta: float) -> Array:
    a, (m, n) = 1 / theta, (x.shape[1], y.shape[1])
    of_x, of_y = (np.expm1(-theta * np.log(rows)).sum(axis=1) for rows in (x, y))
    constant = sum(math.log1p((m + k) * theta) - math.log1p(k * theta) for k in range(n))
    joint = -(a + m + n) * np.log1p(of_x + of_y)
    apart = -(a + m) * np.log1p(of_x) - (a + n) * np.log1p(of_y)
    return np.asarray(constant + joint - apart)
