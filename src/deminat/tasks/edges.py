r"""Sharp edges and ridges: densities that jump, and points around a curve.

- `additive_uniform`: $x \sim U(0, 1)$ and $y = x + U(-\epsilon, \epsilon)$. The density of $y$
  alone is a trapezoid, $\ell(y)/2\epsilon$, where $\ell$ is the length of
  $[y-\epsilon, y+\epsilon]$ within $[0, 1]$. So $f = -\log\ell(y)$ within $\epsilon$ of $x$, and
  $I = \epsilon - \log 2\epsilon$ for $\epsilon \le \tfrac12$, $\tfrac1{4\epsilon}$ above.
- `checkerboard`: x and y are uniform on [0, 1]. A pair lies on a black square of a k x k board with
  probability $1 - q$. So $f = \log 2(1-q)$ on black, $\log 2q$ on white, and $I = \log 2 - H(q)$.
- `wave_band`: $x$ is uniform on [0, 1] and $y = \sin 2\pi kx + U(-\epsilon, \epsilon)$. The sine of
  a uniform angle has the distribution function $F(s) = \tfrac12 + \arcsin(s)/\pi$, so that
  $p(y) = [F(y+\epsilon) - F(y-\epsilon)]/2\epsilon$, and $f = -\log [F(y+\epsilon) -
  F(y-\epsilon)]$ within the band.
- `ring`: $(x, y)$ has a uniform angle and the radius $r = 1 + se$, with the density
  $p(r)/2\pi r$. Each side alone is an integral over the other.
"""

import math
from functools import cache, partial
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import entr

from .maps import Array
from .task import Task

__all__ = ["additive_uniform", "checkerboard", "ring", "wave_band"]

_ROUNDING = 1e-12
_RING_STEPS = 20  # of integrals, within the noise of a ring


def additive_uniform(epsilon: float) -> Task:
    """Return the task of x ~ U(0, 1) and y = x + U(-`epsilon`, `epsilon`)."""
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
    mi = epsilon - math.log(2 * epsilon) if epsilon <= 0.5 else 1 / (4 * epsilon)
    draw, score = partial(_draw_added, epsilon=epsilon), partial(_score_added, epsilon=epsilon)
    return Task(f"1v1-additive-{epsilon:.12g}", mi, 1, 1, draw, score)


def _draw_added(n: int, rng: np.random.Generator, epsilon: float) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 1))
    return x, x + rng.uniform(-epsilon, epsilon, size=(n, 1))


def _score_added(x: Array, y: Array, epsilon: float) -> Array:
    possible = (np.abs(y - x) <= epsilon) & (x >= 0) & (x <= 1)
    length = np.minimum(y + epsilon, 1) - np.maximum(y - epsilon, 0)
    # Rounding of the ends must not make the length of a possible y zero.
    length = np.maximum(length, np.finfo(np.float64).tiny)
    return np.where(possible, -np.log(length), -np.inf)[:, 0]


def checkerboard(squares: int, flipped: float = 0.0) -> Task:
    """Return pairs on the black squares of a board.

    Args:
        squares: Along a side of the board, an even number.
        flipped: Probability q of a white square.
    """
    if squares % 2 or squares < 2:
        raise ValueError(f"squares must be even and positive, got {squares!r}")
    mi = math.log(2) - float(entr(flipped) + entr(1 - flipped))
    draw = partial(_draw_board, squares=squares, flipped=flipped)
    score = partial(_score_board, squares=squares, flipped=flipped)
    return Task(f"checkerboard-{squares}-{flipped:.12g}", mi, 1, 1, draw, score)


def _is_white(x: Array, y: Array, squares: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.asarray((np.floor(squares * x) + np.floor(squares * y)) % 2 == 1)


def _draw_board(
    n: int, rng: np.random.Generator, squares: int, flipped: float
) -> tuple[Array, Array]:
    x, y, u = rng.uniform(size=(3, n, 1))
    wrong = _is_white(x, y, squares) != (u < flipped)
    # The next square has the other colour, also across the edge since the number is even.
    return x, np.where(wrong, (y + 1 / squares) % 1, y)


def _score_board(x: Array, y: Array, squares: int, flipped: float) -> Array:
    of_white = math.log(2 * flipped) if flipped else -math.inf
    white = _is_white(x, y, squares)[:, 0]
    return np.where(white, of_white, math.log(2 * (1 - flipped)))


def wave_band(waves: int, epsilon: float) -> Task:
    """Return y uniform within `epsilon` of a sine of x, which has `waves` periods."""
    ends = [-1 - epsilon, *sorted([epsilon - 1, 1 - epsilon]), 1 + epsilon]
    term = partial(_band_term, epsilon=epsilon)
    mi = sum(quad(term, *part, limit=500)[0] for part in pairwise(ends))
    draw = partial(_draw_band, waves=waves, epsilon=epsilon)
    score = partial(_score_band, waves=waves, epsilon=epsilon)
    return Task(f"wave-band-{waves}-{epsilon:.12g}", float(mi), 1, 1, draw, score)


def _sine_between(low: Array | float, high: Array | float) -> Array:
    """Return the probability that the sine of a uniform angle lies between two values."""
    first, last = (np.arcsin(np.clip(end, -1, 1)) for end in (low, high))
    return np.asarray((last - first) / math.pi)


def _band_term(y: float, epsilon: float) -> float:
    return float(entr(_sine_between(y - epsilon, y + epsilon))) / (2 * epsilon)


def _draw_band(n: int, rng: np.random.Generator, waves: int, epsilon: float) -> tuple[Array, Array]:
    x = rng.uniform(size=(n, 1))
    return x, np.sin(2 * math.pi * waves * x) + rng.uniform(-epsilon, epsilon, size=(n, 1))


def _score_band(x: Array, y: Array, waves: int, epsilon: float) -> Array:
    x, y = x[:, 0], y[:, 0]
    possible = np.abs(y - np.sin(2 * math.pi * waves * x)) <= epsilon + _ROUNDING
    share = np.maximum(_sine_between(y - epsilon, y + epsilon), np.finfo(np.float64).tiny)
    return np.where(possible, -np.log(share), -np.inf)


def ring(noise: float) -> Task:
    """Return x and y on a circle of radius 1, with a radial noise of at most .12."""
    if not 0.01 <= noise <= 0.12:
        raise ValueError(f"noise must be in [0.01, 0.12], got {noise!r}")
    grid = _ring_grid(noise)
    side = float(entr(_ring_side(grid, noise)).sum()) * noise / _RING_STEPS
    # h(x, y) = h(r) + E log(2 pi r)
    of_radius = 0.5 * math.log(2 * math.pi * math.e) + math.log(noise)
    r = np.arange(max(0.001, 1 - 9 * noise), 1 + 9 * noise, noise / 100)
    weights = np.exp(-(((r - 1) / noise) ** 2) / 2)
    both = of_radius + math.log(2 * math.pi) + float(weights @ np.log(r) / weights.sum())
    draw, score = partial(_draw_ring, noise=noise), partial(_score_ring, noise=noise)
    return Task(f"ring-{noise:.12g}", 2 * side - both, 1, 1, draw, score)


def _ring_grid(noise: float) -> Array:
    return np.arange(-2, 2, noise / _RING_STEPS, dtype=np.float64)


def _ring_density(r: Array, noise: float) -> Array:
    of_radius = np.exp(-(((r - 1) / noise) ** 2) / 2) / (noise * math.sqrt(2 * math.pi))
    return np.asarray(of_radius / (2 * math.pi * np.maximum(r, 1e-9)))


def _ring_side(x: Array, noise: float) -> Array:
    """Return the density (n,) of one side alone."""
    density = _ring_density(np.hypot(x[:, None], _ring_grid(noise)), noise)
    return np.asarray(density.sum(axis=1) * noise / _RING_STEPS)


@cache
def _log_ring_side(noise: float) -> CubicSpline:
    """Return the log density of one side alone, within 2 of the centre."""
    grid = _ring_grid(noise)
    return CubicSpline(grid, np.log(_ring_side(grid, noise)))


def _draw_ring(n: int, rng: np.random.Generator, noise: float) -> tuple[Array, Array]:
    angle = rng.uniform(0, 2 * math.pi, size=(n, 1))
    r = 1 + noise * rng.standard_normal((n, 1))
    return r * np.cos(angle), r * np.sin(angle)


def _score_ring(x: Array, y: Array, noise: float) -> Array:
    x, y = x[:, 0], y[:, 0]
    log_radius = -(((np.hypot(x, y) - 1) / noise) ** 2) / 2
    log_joint = log_radius - math.log(noise * (2 * math.pi) ** 1.5) - np.log(np.hypot(x, y))
    sides = [_log_ring_side(noise)(side) for side in (x, y)]
    return np.asarray(log_joint - sides[0] - sides[1])
