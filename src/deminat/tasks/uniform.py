r"""Additive uniform noise: a density with hard edges.

$x \sim U(0, 1)$ and $y = x + U(-\epsilon, \epsilon)$. Given $x$, the density of $y$ is
$1/2\epsilon$ within $\epsilon$ of $x$ and zero elsewhere. The density of $y$ alone is a
trapezoid, $\ell(y)/2\epsilon$, where $\ell$ is the length of $[y-\epsilon, y+\epsilon]$ within
$[0, 1]$. So the log ratio is $-\log\ell(y)$ or $-\infty$, and its mean is

$$I(x; y) = \epsilon - \log 2\epsilon \quad (\epsilon \le \tfrac12), \qquad
I(x; y) = \tfrac1{4\epsilon} \quad (\epsilon > \tfrac12).$$
"""

import math
from functools import partial

import numpy as np

from .maps import Array
from .task import Task

__all__ = ["additive_uniform"]


def _draw(n: int, rng: np.random.Generator, epsilon: float) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 1))
    return x, x + rng.uniform(-epsilon, epsilon, size=(n, 1))


def _score(x: Array, y: Array, epsilon: float) -> Array:
    possible = (np.abs(y - x) <= epsilon) & (x >= 0) & (x <= 1)
    length = np.minimum(y + epsilon, 1) - np.maximum(y - epsilon, 0)
    # Rounding of the ends must not make the length of a possible y zero.
    length = np.maximum(length, np.finfo(np.float64).tiny)
    return np.where(possible, -np.log(length), -np.inf)[:, 0]


def additive_uniform(epsilon: float) -> Task:
    """Return the task of x ~ U(0, 1) and y = x + U(-`epsilon`, `epsilon`)."""
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
    mi = epsilon - math.log(2 * epsilon) if epsilon <= 0.5 else 1 / (4 * epsilon)
    draw, score = partial(_draw, epsilon=epsilon), partial(_score, epsilon=epsilon)
    return Task(f"1v1-additive-{epsilon:.12g}", mi, 1, 1, draw, score)
