r"""Invertible maps: they move the points and leave the mutual information unchanged.

For invertible $f$ and $g$, $I(f(x); g(y)) = I(x; y)$. The Jacobians of the joint density and
of the product cancel, so the log ratio of the images at $(x', y')$ is the old one at
$(f^{-1}(x'), g^{-1}(y'))$. A map is therefore a function with its inverse.

Where one of the two has no closed form, it is found by bisection from a bracket that holds for
every row. A wiggle moves a point by at most the sum of its amplitudes. The quantile of a mixture of
unit normals lies between those of its components.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

__all__ = [
    "Array",
    "Map",
    "asinh",
    "bimodal_x",
    "bimodal_y",
    "cube",
    "half_cube",
    "identity",
    "normal_cdf",
    "rotation",
    "spiral",
    "swiss_roll",
    "wiggly_x",
    "wiggly_y",
]

Array: TypeAlias = npt.NDArray[np.float64]
Waves: TypeAlias = tuple[tuple[float, float, float], ...]

# From a bracket of width 5, sixty halvings reach the last bit of a double.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Map:
    """An invertible map of rows.

    Args:
        name: Its name within the names of tasks.
        forward: Maps (n, d) to (n, d + `added`).
        inverse: Maps (n, d + `added`) back to (n, d).
        added: Number of columns that `forward` adds.
    """

    name: str
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    added: int = 0


def _invert(increasing: Callable[[Array], Array], y: Array, low: Array, high: Array) -> Array:
    """Return x with `increasing(x) = y`, elementwise, given `low <= x <= high`."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = increasing(middle) < y
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _normal_quantile(u: Array) -> Array:
    # Rounding may push u onto or over an end, which stands for 8.2 standard deviations.
    end = np.finfo(np.float64).eps / 2
    return np.asarray(ndtri(np.clip(u, end, 1 - end)))


def _cubed(x: Array) -> Array:
    return x * x * x


def _signed_power(x: Array, exponent: float) -> Array:
    return np.sign(x) * np.abs(x) ** exponent


def _wiggle(x: Array, waves: Waves) -> Array:
    return x + sum(size * np.sin(rate * x + phase) for size, rate, phase in waves)


def _unwiggle(y: Array, waves: Waves) -> Array:
    reach = sum(abs(size) for size, _, _ in waves)
    return _invert(partial(_wiggle, waves=waves), y, y - reach, y + reach)


def _wiggly(name: str, waves: Waves) -> Map:
    """Return x plus sines `(size, rate, phase)`; increasing if the sum of |size rate| is < 1."""
    return Map(name, partial(_wiggle, waves=waves), partial(_unwiggle, waves=waves))


def _log_mixture_cdf(x: Array, weight: float, means: tuple[float, float]) -> Array:
    first = np.log(weight) + log_ndtr(x - means[0])
    second = np.log1p(-weight) + log_ndtr(x - means[1])
    return np.asarray(np.logaddexp(first, second))


def _from_mixture(y: Array, weight: float, means: tuple[float, float]) -> Array:
    """Return the normal score of `y`, computed from the smaller tail."""
    below = _log_mixture_cdf(y, weight, means)
    above = _log_mixture_cdf(-y, weight, (-means[0], -means[1]))
    return np.where(below < above, 1.0, -1.0) * ndtri_exp(np.minimum(below, above))


def _to_mixture(x: Array, weight: float, means: tuple[float, float]) -> Array:
    score = partial(_from_mixture, weight=weight, means=means)
    return _invert(score, x, x + min(means), x + max(means))


def _bimodal(name: str, weight: float, means: tuple[float, float]) -> Map:
    """Return the map of N(0, 1) onto `weight` N(means[0], 1) + (1 - `weight`) N(means[1], 1)."""
    forward = partial(_to_mixture, weight=weight, means=means)
    return Map(name, forward, partial(_from_mixture, weight=weight, means=means))


def _turn(x: Array, axes: tuple[int, int], speed: float) -> Array:
    i, j = axes
    angle = speed * np.sum(x * x, axis=1)
    cos, sin = np.cos(angle), np.sin(angle)
    turned = x.copy()
    turned[:, i] = cos * x[:, i] - sin * x[:, j]
    turned[:, j] = sin * x[:, i] + cos * x[:, j]
    return turned


def spiral(axes: tuple[int, int], speed: float) -> Map:
    r"""Return the rotation of the plane `axes` by the angle `speed` $|x|^2$.

    The norm stays, so the opposite rotation is the inverse.
    """
    forward = partial(_turn, axes=axes, speed=speed)
    return Map("spiral", forward, partial(_turn, axes=axes, speed=-speed))


def _turned(x: Array, matrix: Array) -> Array:
    return x @ matrix


def rotation(d: int, seed: int | Sequence[int]) -> Map:
    """Return the product of rows (n, `d`) with a random orthogonal matrix, fixed by `seed`."""
    gaussian = np.random.default_rng(seed).standard_normal((d, d))
    matrix, triangle = np.linalg.qr(gaussian)
    # QR leaves the signs of the diagonal open; with positive signs the rotation is uniform.
    matrix = matrix * np.sign(np.diag(triangle))
    return Map("rotation", partial(_turned, matrix=matrix), partial(_turned, matrix=matrix.T))


def _roll(u: Array) -> Array:
    angle = 1.5 * np.pi * (1 + 2 * u)
    return np.hstack([angle * np.cos(angle), angle * np.sin(angle)]) / 21


def _unroll(x: Array) -> Array:
    angle = 21 * np.hypot(x[:, :1], x[:, 1:])
    return (angle / (1.5 * np.pi) - 1) / 2


identity = Map("identity", np.asarray, np.asarray)
normal_cdf = Map("normal_cdf", ndtr, _normal_quantile)
half_cube = Map(
    "half_cube", partial(_signed_power, exponent=3 / 2), partial(_signed_power, exponent=2 / 3)
)
cube = Map("cube", _cubed, np.cbrt)
asinh = Map("asinh", np.arcsinh, np.sinh)
wiggly_x = _wiggly("wiggly_x", ((0.4, 1.0, 0.0), (0.2, 1.7, 1.0), (0.03, 3.3, -2.5)))
wiggly_y = _wiggly("wiggly_y", ((-0.4, 0.4, 0.0), (0.17, 1.3, 3.5), (0.02, 4.3, -2.5)))
bimodal_x = _bimodal("bimodal_x", 0.3, (0.0, 5.0))
bimodal_y = _bimodal("bimodal_y", 0.5, (-1.0, 3.0))
swiss_roll = Map("swiss_roll", _roll, _unroll, added=1)
