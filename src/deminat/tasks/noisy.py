r"""Dependence without correlation: in the noise, in its size, or in columns taken together.

- `scale_mixture`: $y = x + s e$, where the size $s$ of the noise is one of a few, the same for all
  columns of a row. Given $x$, and alone, $y$ is a mixture of spherical normals about $x$ and 0.
- `variance`: $y = e^{ax} e$ with normal $x$ and $e$: $x$ sets the size of $y$ and not its mean.
- `product`: $y = x_1 x_2 + s e$: neither column of $x$ alone says anything about the mean of $y$.
- `parity`: $y$ is normal with the sign of $x_1 \cdots x_k$, flipped with probability $q$; no fewer
  than all k columns say anything. $f = \log 2(1-q)$ or $\log 2q$, and
  $I = \log 2 - H(q)$.

In the first three, $I = h(y) - h(y \mid x)$ and the density of $y$ alone is an integral over one
variable of smooth, rapidly falling functions. There the trapezoidal rule on the whole line is as
exact as rounding allows. Where a density is needed at many points, a cubic spline of its logarithm
is used, whose error is below 1e-6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import entr, logsumexp

from .maps import Array
from .task import Task

__all__ = ["parity", "product", "scale_mixture", "variance"]

_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_REACH, _STEP = 9.0, 0.05  # of a standard normal: its range, and the step of integrals over it
_FINE = 0.02  # step of y or log |y|
_LEAST = -40.0  # of log |y|


def _normal_nodes() -> tuple[Array, Array]:
    """Return places and log weights of integrals over a standard normal."""
    nodes = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    return nodes, math.log(_STEP) - nodes * nodes / 2 - _LOG_ROOT


@dataclass(frozen=True, eq=False)
class _Scales:
    """y = x + s e in d columns; `sizes` and `weights` of s."""

    d: int
    sizes: tuple[float, ...]
    weights: tuple[float, ...]

    def mi(self) -> float:
        alone = np.square(self.sizes) + 1
        return self._entropy(alone) - self._entropy(np.square(self.sizes))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        x, e = rng.standard_normal((2, n, self.d))
        return x, x + rng.choice(self.sizes, n, p=self.weights)[:, None] * e

    def score(self, x: Array, y: Array) -> Array:
        variances = np.square(self.sizes)
        noise, alone = (np.sum(rows * rows, axis=1) for rows in (y - x, y))
        return self._log_density(noise, variances) - self._log_density(alone, variances + 1)

    def _log_density(self, square: Array, variances: Array) -> Array:
        """Return the log density at |y|^2 (n,) of the mixture of spherical normals."""
        each = -0.5 * (square[:, None] / variances + self.d * np.log(variances))
        return np.asarray(logsumexp(each, axis=1, b=self.weights) - self.d * _LOG_ROOT)

    def _entropy(self, variances: Array) -> float:
        """Return the entropy of the mixture, by an integral over t = log chi^2."""
        t = np.arange(-80.0, 8.0, 0.01)
        log_density = self.d / 2 * t - np.exp(t) / 2
        weights = np.exp(log_density - logsumexp(log_density))
        within = [weights @ -self._log_density(v * np.exp(t), variances) for v in variances]
        return float(np.dot(self.weights, within))


def scale_mixture(d: int, sizes: Sequence[float], weights: Sequence[float]) -> Task:
    """Return y = x + s e in `d` normal columns, with noise of several sizes.

    Args:
        d: Columns a side.
        sizes: Those of s, which is one for a row.
        weights: Their probabilities.
    """
    rows = _Scales(d, tuple(sizes), tuple(weights))
    name = f"scale-mixture-{d}d-" + "-".join(f"{size:.12g}" for size in sizes)
    return Task(name, rows.mi(), d, d, rows.draw, rows.score)


def variance(a: float) -> Task:
    """Return one normal column x and y = exp(a x) e."""
    log_density, t = _log_sized(a), _log_sized(a).x
    # Both signs of y, and the element e^t dt.
    entropy = -2 * _FINE * float(np.sum(np.exp(log_density(t) + t) * log_density(t)))
    mi = entropy - _LOG_ROOT - 0.5
    draw, score = partial(_draw_sized, a=a), partial(_score_sized, a=a)
    return Task(f"variance-{a:.12g}", mi, 1, 1, draw, score)


def _draw_sized(n: int, rng: np.random.Generator, a: float) -> tuple[Array, Array]:
    x, e = rng.standard_normal((2, n, 1))
    return x, np.exp(a * x) * e


def _score_sized(x: Array, y: Array, a: float) -> Array:
    x, y = x[:, 0], np.maximum(np.abs(y[:, 0]), math.exp(_LEAST))
    given = -a * x - 0.5 * (y * np.exp(-a * x)) ** 2 - _LOG_ROOT
    return np.asarray(given - _log_sized(a)(np.log(y)))


@cache
def _log_sized(a: float) -> CubicSpline:
    """Return the log density of y = exp(a x) e alone, as a function of log |y|."""
    t = np.arange(_LEAST, 10.0 + 10 * a, _FINE)
    nodes, log_weights = _normal_nodes()
    squares = np.exp(2 * (t[:, None] - a * nodes))
    return CubicSpline(t, logsumexp(log_weights - a * nodes - squares / 2, axis=1) - _LOG_ROOT)


def product(noise: float) -> Task:
    """Return two normal columns of x and y = x1 x2 + `noise` e; `noise` at least .2."""
    if not noise >= 0.2:
        raise ValueError(
            f"noise must be at least 0.2, the steps of integrals allow no less: {noise}"
        )
    log_density = _log_product(noise)
    of_half = entr(np.exp(log_density(log_density.x)))
    entropy = _FINE * float(2 * of_half.sum() - of_half[0])
    mi = entropy - _LOG_ROOT - 0.5 - math.log(noise)
    draw, score = partial(_draw_product, noise=noise), partial(_score_product, noise=noise)
    return Task(f"product-{noise:.12g}", mi, 2, 1, draw, score)


def _draw_product(n: int, rng: np.random.Generator, noise: float) -> tuple[Array, Array]:
    x, e = rng.standard_normal((n, 2)), rng.standard_normal((n, 1))
    return x, x[:, :1] * x[:, 1:] + noise * e


def _score_product(x: Array, y: Array, noise: float) -> Array:
    residual = (y[:, 0] - x[:, 0] * x[:, 1]) / noise
    given = -0.5 * residual * residual - _LOG_ROOT - math.log(noise)
    return np.asarray(given - _log_product(noise)(np.abs(y[:, 0])))


@cache
def _log_product(noise: float) -> CubicSpline:
    """Return the log density of y alone, as a function of |y|.

    Given x1, y is normal of variance x1^2 + noise^2.
    """
    y = np.arange(0.0, 60.0, _FINE)
    nodes, log_weights = _normal_nodes()
    variances = nodes * nodes + noise * noise
    each = log_weights - 0.5 * (np.square(y[:, None]) / variances + np.log(variances))
    return CubicSpline(y, logsumexp(each, axis=1) - _LOG_ROOT)


def parity(signs: int, flipped: float) -> Task:
    """Return normal columns whose signs multiply to that of y.

    Args:
        signs: Columns of x.
        flipped: Probability q that the sign of y is the wrong one, in (0, 1/2).
    """
    mi = math.log(2) - float(entr(flipped) + entr(1 - flipped))
    draw = partial(_draw_parity, signs=signs, flipped=flipped)
    name = f"parity-{signs}-{flipped:.12g}"
    return Task(name, mi, signs, 1, draw, partial(_score_parity, flipped=flipped))


def _draw_parity(
    n: int, rng: np.random.Generator, signs: int, flipped: float
) -> tuple[Array, Array]:
    x, e = rng.standard_normal((n, signs)), rng.standard_normal((n, 1))
    sign = np.prod(np.sign(x), axis=1, keepdims=True)
    wrong = rng.uniform(size=(n, 1)) < flipped
    return x, np.where(wrong, -sign, sign) * np.abs(e)


def _score_parity(x: Array, y: Array, flipped: float) -> Array:
    right = np.prod(np.sign(x), axis=1) == np.sign(y[:, 0])
    return np.where(right, math.log(2 * (1 - flipped)), math.log(2 * flipped))
