r"""Real rows made into a known truth: a density is fitted to them and sampled anew.

Such a task, a plasmode, has the margins and the dependence of real data, and yet a known log ratio,
since the fitted density *is* the truth.

- `kernel_pair`: two columns, with a normal kernel of width w about each of the m real rows. With
  $K_x = \varphi((x - x_i)/w)/w$, the three densities are means over rows of $K_x K_y$, $K_x$ and
  $K_y$. The information is an integral over a grid of steps w/2. Densities on the grid are one
  matrix product, and for functions this smooth the sum over the grid is exact to six digits.
- `fitted_mixture`: any columns, as a mixture of normals. Both sides alone are mixtures of the same
  weights.
- `fitted_classes`: a label, and columns with a mixture of normals for each label.

The information of the last two is the mean of the log ratio over 100,000 draws of a fixed seed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from .maps import Array
from .task import Task

__all__ = ["fitted_classes", "fitted_mixture", "kernel_pair"]

_BLOCK = 500  # rows that are compared with all real ones at once
_DRAWS, _AT_ONCE = 100_000, 10_000
_LEAST_VARIANCE = 0.01  # of a component, of columns of unit variance
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Normal kernels of one width about rows (m, 2)."""

    rows: Array
    width: float

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        centres = self.rows[rng.integers(len(self.rows), size=n)]
        drawn = centres + self.width * rng.standard_normal((n, 2))
        return drawn[:, :1], drawn[:, 1:]

    def score(self, x: Array, y: Array) -> Array:
        pairs = np.hstack([x, y])
        blocks = np.array_split(pairs, max(1, math.ceil(len(pairs) / _BLOCK)))
        return np.concatenate([self._score(block) for block in blocks])

    def mi(self) -> float:
        step = self.width / 2
        reach = 6 * self.width
        of_x, of_y = (
            self._kernels(np.arange(c.min() - reach, c.max() + reach, step), c) for c in self.rows.T
        )
        joint = of_x @ of_y.T / len(self.rows)
        alone = of_x.mean(axis=1)[:, None] * of_y.mean(axis=1)
        ratio = np.log(np.maximum(joint, _TINY)) - np.log(np.maximum(alone, _TINY))
        return float(np.sum(joint * ratio) * step * step)

    def _score(self, pairs: Array) -> Array:
        of_x, of_y = (self._kernels(a, c) for a, c in zip(pairs.T, self.rows.T, strict=True))
        joint = np.einsum("ij,ij->i", of_x, of_y) / len(self.rows)
        alone = of_x.mean(axis=1) * of_y.mean(axis=1)
        return np.asarray(np.log(np.maximum(joint, _TINY)) - np.log(np.maximum(alone, _TINY)))

    def _kernels(self, at: Array, centres: Array) -> Array:
        """Return the kernels (n, m) of values (n,) about centres (m,)."""
        z = (at[:, None] - centres) / self.width
        return np.asarray(np.exp(-z * z / 2) / (self.width * math.sqrt(2 * math.pi)))


def kernel_pair(name: str, rows: Array, width: float) -> Task:
    """Return the kernel density of two columns.

    Args:
        name: Of the task.
        rows: Real rows (m, 2), of unit variance.
        width: Standard deviation of a kernel.
    """
    kernels = _Kernels(rows, width)
    return Task(name, kernels.mi(), 1, 1, kernels.draw, kernels.score)


@dataclass(frozen=True, eq=False)
class _Normals:
    """A mixture of normals: weights (k,), means (k, d) and lower Cholesky factors (k, d, d)."""

    weights: Array
    means: Array
    factors: Array

    def columns(self, which: slice) -> "_Normals":
        """Return the mixture of some columns alone."""
        covariances = self.factors @ self.factors.transpose(0, 2, 1)
        factors = np.asarray(np.linalg.cholesky(covariances[:, which, which]), dtype=np.float64)
        return _Normals(self.weights, self.means[:, which], factors)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        k = rng.choice(len(self.weights), n, p=self.weights)
        z = rng.standard_normal((n, self.means.shape[1]))
        return np.asarray(self.means[k] + np.einsum("nij,nj->ni", self.factors[k], z))

    def log_density(self, rows: Array) -> Array:
        """Return log densities (n,), without a term that depends on the number of columns."""
        each = np.empty((len(rows), len(self.weights)))
        for k, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            z = solve_triangular(factor, (rows - mean).T, lower=True, check_finite=False)
            each[:, k] = -np.sum(z * z, axis=0) / 2 - np.log(np.diag(factor)).sum()
        return np.asarray(logsumexp(each, axis=1, b=self.weights))


def _fitted(rows: Array, components: int) -> _Normals:
    """Return a mixture fitted to rows; no component is narrower than a kernel of width .1."""
    from sklearn.mixture import GaussianMixture

    mixture = GaussianMixture(
        components, reg_covar=_LEAST_VARIANCE, random_state=0, max_iter=60, tol=1e-2
    ).fit(rows)
    weights = mixture.weights_ / mixture.weights_.sum()
    return _Normals(weights, mixture.means_, np.linalg.cholesky(mixture.covariances_))


@dataclass(frozen=True, eq=False)
class _Split:
    """A mixture of the columns of x and y, and those of each side."""

    both: _Normals
    of_x: _Normals
    of_y: _Normals

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        dim_x = self.of_x.means.shape[1]
        rows = self.both.draw(n, rng)
        return rows[:, :dim_x], rows[:, dim_x:]

    def score(self, x: Array, y: Array) -> Array:
        joint = self.both.log_density(np.hstack([x, y]))
        return joint - self.of_x.log_density(x) - self.of_y.log_density(y)


def fitted_mixture(name: str, x: Array, y: Array, components: int) -> Task:
    """Return the mixture of normals that fits real rows.

    Args:
        name: Of the task.
        x: Rows (m, dim_x), of unit variance.
        y: The same number of rows, (m, dim_y).
        components: Number of normals.
    """
    both, dim_x = _fitted(np.hstack([x, y]), components), x.shape[1]
    split = _Split(both, both.columns(slice(dim_x)), both.columns(slice(dim_x, None)))
    mi = _mean_ratio(split.draw, split.score)
    return Task(name, mi, dim_x, y.shape[1], split.draw, split.score)


@dataclass(frozen=True, eq=False)
class _Classes:
    """Shares (k,) of labels, and the mixture of each."""

    shares: Array
    each: tuple[_Normals, ...]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        labels = rng.choice(len(self.shares), n, p=self.shares)
        y = np.empty((n, self.each[0].means.shape[1]))
        for label, mixture in enumerate(self.each):
            y[labels == label] = mixture.draw(int(np.sum(labels == label)), rng)
        return labels[:, None].astype(np.float64), y

    def score(self, x: Array, y: Array) -> Array:
        given = np.stack([mixture.log_density(y) for mixture in self.each], axis=1)
        own = given[np.arange(len(x)), x[:, 0].astype(np.int64)]
        return np.asarray(own - logsumexp(given, axis=1, b=self.shares))


def fitted_classes(name: str, labels: NDArray[np.int64], y: Array, components: int) -> Task:
    """Return real labels and, for each, the mixture of normals that fits its rows.

    Args:
        name: Of the task.
        labels: Codes 0, 1, ... (m,).
        y: Rows (m, d), of unit variance.
        components: Number of normals of a label.
    """
    shares = np.bincount(labels) / len(labels)
    each = tuple(_fitted(y[labels == label], components) for label in range(len(shares)))
    rows = _Classes(shares, each)
    mi = _mean_ratio(rows.draw, rows.score)
    return Task(name, mi, 1, y.shape[1], rows.draw, rows.score, labels_x=(0,))


def _mean_ratio(
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]],
    score: Callable[[Array, Array], Array],
) -> float:
    rng = np.random.default_rng(0)
    return float(np.mean([score(*draw(_AT_ONCE, rng)).mean() for _ in range(_DRAWS // _AT_ONCE)]))
