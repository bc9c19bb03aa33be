r"""Two angles that nearly agree, and what shows an angle: sines, tuned neurons, pictures of bars.

The angle of x is uniform, and that of y is off by an angle with von Mises density
$e^{\kappa \cos} / 2 \pi I_0(\kappa)$. Both are uniform alone, so with $\delta$ the angle between

$$ f = \kappa \cos \delta - \log I_0(\kappa), \qquad
   I = \kappa\, I_1(\kappa) / I_0(\kappa) - \log I_0(\kappa). $$

An angle may be shown as it is, by its cosine and sine, by neurons that each like a direction, or by
a picture of a bar whose direction is half the angle. All of these give the angle back exactly.
"""

import math
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import i0e, i1e

from .composed import IMAGE_SIDE
from .maps import Array, Map
from .task import Task

__all__ = ["angles", "bar", "sine", "tuned"]

_SHARP = 2.0  # of the tuning of neurons
_WIDTH = 2.0  # pixels: of a bar


def angles(mi: float) -> Task:
    """Return two angles, one column a side, that share `mi` nats."""
    kappa = brentq(lambda k: _information(k) - mi, 1e-6, 1e6)
    score = partial(_score_angles, kappa=kappa)
    return Task(f"angles-{mi:.12g}nats", mi, 1, 1, partial(_draw_angles, kappa=kappa), score)


def _information(kappa: float) -> float:
    return float(kappa * i1e(kappa) / i0e(kappa)) - _log_i0(kappa)


def _log_i0(kappa: float) -> float:
    return math.log(i0e(kappa)) + kappa


def _draw_angles(n: int, rng: np.random.Generator, kappa: float) -> tuple[Array, Array]:
    x = rng.uniform(-np.pi, np.pi, size=(n, 1))
    y = x + rng.vonmises(0.0, kappa, size=(n, 1))
    return x, np.angle(np.exp(1j * y))


def _score_angles(x: Array, y: Array, kappa: float) -> Array:
    return np.asarray(kappa * np.cos(y - x)[:, 0] - _log_i0(kappa))


def _angle(cosine: Array, sine_: Array) -> Array:
    return np.arctan2(sine_, cosine)[:, None]


sine = Map(
    "sine",
    lambda a: np.hstack([np.cos(a), np.sin(a)]),
    lambda rows: _angle(rows[:, 0], rows[:, 1]),
    added=1,
)


def tuned(neurons: int) -> Map:
    """Return the map of an angle to the rates of tuned neurons, a multiple of four of them."""
    if neurons % 4:
        raise ValueError(f"neurons must be a multiple of 4, got {neurons!r}")
    liked = 2 * np.pi * np.arange(neurons) / neurons

    def rates(a: Array) -> Array:
        return np.asarray(np.exp(_SHARP * (np.cos(a - liked) - 1)))

    def angle(rows: Array) -> Array:
        first, quarter = (1 + np.log(rows[:, [0, neurons // 4]]) / _SHARP).T
        return _angle(first, quarter)

    return Map(f"tuned-{neurons}", rates, angle, added=neurons - 1)


def _draw_bar(a: Array) -> Array:
    """Return pictures (n, 256) of bars through the centre."""
    place = np.arange(IMAGE_SIDE) - (IMAGE_SIDE - 1) / 2
    half = a[:, :, None] / 2
    off = place[:, None] * np.cos(half) - place * np.sin(half)
    return np.asarray(np.exp(-((off / _WIDTH) ** 2) / 2).reshape(len(a), -1))


def _find_bar(rows: Array) -> Array:
    # The square of the distance from a bar is linear in the cosine and the sine of the angle.
    pictures = rows.reshape(len(rows), IMAGE_SIDE, IMAGE_SIDE)
    far, near = (IMAGE_SIDE - 1) / 2, 0.5
    corner, middle = (-2 * _WIDTH**2 * np.log(pictures[:, -1, [-1, IMAGE_SIDE // 2]])).T
    of_sine = (far**2 - corner) / far**2
    of_cosine = 2 * (middle + far * near * of_sine) - far**2 - near**2
    return _angle(of_cosine / (far**2 - near**2), of_sine)


bar = Map("bar", _draw_bar, _find_bar, added=IMAGE_SIDE**2 - 1)
