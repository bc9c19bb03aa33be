r"""A cluster behind both sides, or on one of them.

- `clusters`: a hidden index $k$ chooses the centres of x and of y. Given $k$ all columns are
  independent normals, so x and y share the cluster alone, and $I \le \log K$. By the chain rule
  $I(x; y) = I(k; x) + I(k; y) - I(k; (x, y))$, and each term is the mean of the divergence of
  $p(k \mid \cdot)$ from $p(k)$. They are averaged over 200,000 draws of a fixed seed; the standard
  error is below .002 nats.
- `label_number`: x is the label $k$ itself and y a normal whose mean and size are the label's.
  $I = h(y) - h(y \mid k)$, with one integral over y.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import entr, log_softmax, logsumexp

from .maps import Array
from .task import Task

__all__ = ["clusters", "label_number"]

_DRAWS, _BLOCK = 200_000, 20_000
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class _Clusters:
    """Centres (k, d) of both sides; all clusters are equally likely."""

    centres_x: Array
    centres_y: Array

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        k = rng.integers(len(self.centres_x), size=n)
        x, y = rng.standard_normal((2, n, self.centres_x.shape[1]))
        return self.centres_x[k] + x, self.centres_y[k] + y

    def score(self, x: Array, y: Array) -> Array:
        of_x, of_y, of_both = (logsumexp(f, axis=1) for f in self.log_densities(x, y))
        return np.asarray(of_both - of_x - of_y + math.log(len(self.centres_x)))

    def log_densities(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return those of x, y and both given k, each (n, k), without terms that cancel."""
        of_x, of_y = _products(x, self.centres_x), _products(y, self.centres_y)
        return of_x, of_y, of_x + of_y


def _products(rows: Array, centres: Array) -> Array:
    """Return log densities of rows about each centre, less a part that is the same for all."""
    return np.asarray(rows @ centres.T - np.sum(centres * centres, axis=1) / 2)


def _placed(count: int, d: int, apart: float) -> _Clusters:
    rng = np.random.default_rng([count, d])
    centres = rng.standard_normal((2, count, d)) * apart / math.sqrt(2 * d)
    return _Clusters(*centres)


def clusters(count: int, d: int, apart: float) -> Task:
    """Return normal columns that share the index of a cluster.

    Args:
        count: Number of clusters.
        d: Columns a side.
        apart: Distance of two centres, in standard deviations of a column, in the mean square.
    """
    rows = _placed(count, d, apart)
    name = f"clusters-{count}-{d}d-{apart:.12g}-apart"
    return Task(name, _shared(count, d, apart), d, d, rows.draw, rows.score)


@cache
def _shared(count: int, d: int, apart: float) -> float:
    """Return the information of `clusters`, by the chain rule."""
    rows, rng = _placed(count, d, apart), np.random.default_rng(0)
    blocks = (rows.log_densities(*rows.draw(_BLOCK, rng)) for _ in range(_DRAWS // _BLOCK))
    terms = [[_mean_divergence(f) for f in block] for block in blocks]
    of_x, of_y, of_both = np.mean(terms, axis=0)
    return float(of_x + of_y - of_both)


def _mean_divergence(log_densities: Array) -> float:
    """Return the mean of the divergence of p(k | row) from the uniform distribution."""
    posterior = np.exp(log_softmax(log_densities, axis=1))
    return math.log(posterior.shape[1]) - float(entr(posterior).sum(axis=1).mean())


@dataclass(frozen=True, eq=False)
class _Classes:
    """Means, sizes and shares (k,) of the classes of a normal quantity."""

    means: Array
    sizes: Array
    shares: Array

    def mi(self) -> float:
        step = float(self.sizes.min()) / 50
        reach = 10 * float(self.sizes.max())
        y = np.arange(self.means.min() - reach, self.means.max() + reach, step)
        entropy = step * float(entr(np.exp(self._alone(y))).sum())
        return entropy - float(self.shares @ (np.log(self.sizes) + _LOG_ROOT + 0.5))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        k = rng.choice(len(self.shares), n, p=self.shares)
        y = self.means[k] + self.sizes[k] * rng.standard_normal(n)
        return k[:, None].astype(np.float64), y[:, None]

    def score(self, x: Array, y: Array) -> Array:
        k = x[:, 0].astype(np.int64)
        each = self._given(y[:, 0])
        return np.asarray(each[np.arange(len(k)), k] - self._alone(y[:, 0]))

    def _given(self, y: Array) -> Array:
        """Return log densities (n, k) of y given each class."""
        residual = (y[:, None] - self.means) / self.sizes
        return np.asarray(-residual * residual / 2 - np.log(self.sizes) - _LOG_ROOT)

    def _alone(self, y: Array) -> Array:
        return np.asarray(logsumexp(self._given(y), axis=1, b=self.shares))


def label_number(labels: int, spread: float, sizes: Sequence[float]) -> Task:
    """Return a label and a normal quantity.

    Args:
        labels: Number of labels, 0, 1, ....
        spread: Standard deviation of the means of the labels; 0 leaves their sizes alone to differ.
        sizes: Standard deviations of the quantity, taken in turn by the labels.
    """
    rng = np.random.default_rng([labels, 13])
    means = spread * rng.standard_normal(labels)
    shares = rng.dirichlet(np.full(labels, 5.0))
    rows = _Classes(means, np.resize(np.asarray(sizes, dtype=np.float64), labels), shares)
    name = f"label-number-{labels}-{spread:.12g}"
    return Task(name, rows.mi(), 1, 1, rows.draw, rows.score, labels_x=(0,))
