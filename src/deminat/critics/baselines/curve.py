r"""Noise around a curve as a baseline: $y = m(x) + s(x)\, e$, one column a side.

The curve m is piecewise linear between quantiles of x, and so is log s, which may also be constant.
The density of the noise e is a sum of normal ones, at quantiles of what the curve leaves, each as
wide as its neighbours are apart. So it may have edges, which smooth critics cannot learn from few
rows: all rows show the same edge. Held-out rows choose the number of knots and of terms. Then

$$ f(x, y) = \log \sum_k w_k\, N\big(y;\ m(x) + s(x)\, c_k,\ s(x)^2 h_k^2\big) - \log p(y) , $$

where p(y) is the mean of the first term over x. So $\mathbb E_{p(y)} e^f = 1$ for every x. Each
exponent is a quadratic function of y whose coefficients depend on x: an inner product. The same is
done with x and y exchanged.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from ...data.transforms import Array
from .base import Frames

__all__ = ["Curve", "NoiseAround"]

_KNOTS = 4, 8, 16, 32, 64, 128  # of the curve
_SCALE_KNOTS = 0, 4, 8, 16  # of log s; 0 for a constant
_ROWS = 6  # for each knot, at least
_TERMS = 8, 16, 32  # of the density of the noise
_SMOOTH = 1e-3  # weight of second differences, relative to the rows of a piece
_REFERENCE = 500  # quantiles of x over which p(y) is a mean
_GRID = 250  # values of y between which log p(y) is linear
_LOWEST = -600.0  # of exponents; below, numbers are slow or 0
_LEAST = 1e-6  # of the noise, relative to the spread of y
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Curve:
    """A piecewise linear function, constant beyond its ends.

    Args:
        knots: (k,), rising.
        values: (k,) at the knots.
    """

    knots: Array
    values: Array

    @classmethod
    def fit(cls, x: Array, y: Array, count: int) -> Self:
        """Return the curve with `count` pieces that is nearest to values y (n,) at x (n,)."""
        knots = np.unique(np.quantile(x, np.linspace(0, 1, count + 1)))
        if len(knots) < 2:
            return cls(knots[:1], np.array([y.mean()]))
        place = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        share = (x - knots[place]) / (knots[place + 1] - knots[place])
        bends = np.diff(np.eye(len(knots)), 2, axis=0) * math.sqrt(_SMOOTH * len(x) / len(knots))
        # Each row has two hats above 0, those of its neighbouring knots: normal equations are sums.
        squares, k = bends.T @ bends, len(knots)
        hats = (place, 1 - share), (place + 1, share)
        for i, of_i in hats:
            for j, of_j in hats:
                np.add.at(squares, (i, j), of_i * of_j)
        target = sum(np.bincount(i, of_i * y, k) for i, of_i in hats)
        return cls(knots, np.asarray(np.linalg.lstsq(squares, target, rcond=None)[0]))

    def __call__(self, x: Array) -> Array:
        """Return the values (m,) at x (m,)."""
        return np.interp(x, self.knots, self.values)


@dataclass(frozen=True)
class NoiseAround:
    """The log ratio of noise around a curve.

    Args:
        middle: m.
        log_scale: Log of s.
        centers: (k,) of the terms of the noise.
        widths: (k,).
        grid: (g,) values of y.
        log_marginal: (g,) log p(y) there.
        of_y: Whether y is the side with the noise; otherwise x is.
    """

    middle: Curve
    log_scale: Curve
    centers: Array
    widths: Array
    grid: Array
    log_marginal: Array
    of_y: bool
    frames: ClassVar[Frames] = Frames()
    informative: ClassVar[bool] = True

    @classmethod
    def candidates(
        cls, x: Array, y: Array, x_held: Array, y_held: Array
    ) -> "Iterator[NoiseAround]":
        """Yield noise around a curve in both directions, of single columns."""
        if x.shape[1] == y.shape[1] == 1:
            yield cls._chosen(x[:, 0], y[:, 0], x_held[:, 0], y_held[:, 0], of_y=True)
            yield cls._chosen(y[:, 0], x[:, 0], y_held[:, 0], x_held[:, 0], of_y=False)

    @classmethod
    def _chosen(cls, x: Array, y: Array, x_held: Array, y_held: Array, of_y: bool) -> Self:
        """Return what held-out rows like best: first the curve, then the scale, then the noise."""
        floor = _LEAST * max(float(y.std()), 1e-300)
        curves = [Curve.fit(x, y, k) for k in _counts(_KNOTS, len(x))]
        middle = min(curves, key=lambda m: float(np.abs(y_held - m(x_held)).mean()))
        rest, rest_held = y - middle(x), y_held - middle(x_held)
        scales = [_log_scale(x, rest, k, floor) for k in _counts(_SCALE_KNOTS, len(x))]
        scale = min(scales, key=lambda s: _laplace_loss(s(x_held), rest_held))
        noises = []
        for terms in _counts(_TERMS, len(x)):
            centers, widths = _terms(rest / np.exp(scale(x)), terms)
            empty = np.empty(0)
            found = cls(middle, scale, centers, widths, empty, empty, of_y)
            noises.append((float(found.log_density(x_held, y_held).mean()), terms, found))
        return max(noises, key=lambda each: each[:2])[2].with_marginal(x, y)

    def with_marginal(self, x: Array, y: Array) -> Self:
        """Return it with p(y) found by rows x and y."""
        some = np.quantile(x, (np.arange(_REFERENCE) + 0.5) / _REFERENCE)
        grid = np.unique(np.quantile(y, np.linspace(0, 1, _GRID)))
        density = np.zeros(len(grid))
        for terms in np.split(self._given(some), self.components, axis=1):
            exponents = terms[:, :3] @ np.stack([grid**2, grid, np.ones_like(grid)])
            density += np.exp(np.maximum(exponents, _LOWEST), out=exponents).mean(axis=0)
        return replace(self, grid=grid, log_marginal=np.log(density))

    def log_density(self, x: Array, y: Array) -> Array:
        """Return log p(y | x) of pairs (m,)."""
        scale = self.log_scale(x)
        noise = (y - self.middle(x)) / np.exp(scale)
        each = -0.5 * ((noise[:, None] - self.centers) / self.widths) ** 2 - np.log(self.widths)
        constant = _LOG_ROOT_TAU + math.log(len(self.centers))
        return np.asarray(logsumexp(each, axis=1) - scale - constant)

    def refit(self, x: Array, y: Array) -> Self:
        """Return noise around a curve with as many knots and terms for other pairs."""
        x, y = (x[:, 0], y[:, 0]) if self.of_y else (y[:, 0], x[:, 0])
        floor = _LEAST * max(float(y.std()), 1e-300)
        middle = Curve.fit(x, y, len(self.middle.knots) - 1)
        rest = y - middle(x)
        scale = _log_scale(x, rest, len(self.log_scale.knots) - 1, floor)
        centers, widths = _terms(rest / np.exp(scale(x)), len(self.centers))
        found = replace(self, middle=middle, log_scale=scale, centers=centers, widths=widths)
        return found.with_marginal(x, y)

    @property
    def components(self) -> int:
        """How many terms the noise has."""
        return len(self.centers)

    @property
    def name(self) -> str:
        """What results call it."""
        return f"noise around a curve of {'y' if self.of_y else 'x'}"

    def left(self, x: Array) -> Array:
        """Return left factors (m, 4 k)."""
        return self._given(x[:, 0]) if self.of_y else self._noisy(x[:, 0])

    def right(self, y: Array) -> Array:
        """Return right factors (m, 4 k)."""
        return self._noisy(y[:, 0]) if self.of_y else self._given(y[:, 0])

    def _given(self, x: Array) -> Array:
        """Return factors of the side that the curve is a function of."""
        log_scale = self.log_scale(x)[:, None]
        inverse = np.exp(-log_scale)
        shift = self.middle(x)[:, None] * inverse + self.centers
        square = self.widths**2
        constant = -0.5 * shift**2 / square - np.log(self.widths) - log_scale
        constant -= _LOG_ROOT_TAU + math.log(self.components)
        quadratic = -0.5 * inverse**2 / square
        factors = quadratic, inverse * shift / square, constant, np.ones_like(constant)
        return np.stack(factors, axis=2).reshape(len(x), -1)

    def _noisy(self, y: Array) -> Array:
        """Return factors of the side with the noise."""
        logs = np.interp(y, self.grid, self.log_marginal)
        factors = np.stack([y**2, y, np.ones_like(y), -logs], axis=1)
        return np.asarray(np.tile(factors, self.components))


def _counts(counts: tuple[int, ...], n: int) -> list[int]:
    """Return the counts that n rows allow; one at least."""
    return [count for count in counts if _ROWS * count <= n] or [counts[0]]


def _log_scale(x: Array, rest: Array, pieces: int, floor: float) -> Curve:
    """Return the log of the mean absolute rest at x, as a curve, or constant."""
    size = np.maximum(np.abs(rest), floor)
    if pieces <= 0:
        return Curve(np.zeros(1), np.log([size.mean()]))
    shape = Curve.fit(x, np.log(size), pieces)
    level = math.log(float((size / np.exp(shape(x))).mean()))
    return replace(shape, values=shape.values + level)


def _laplace_loss(log_scale: Array, rest: Array) -> float:
    """Return the loss of a rest whose mean absolute value is given."""
    return float((log_scale + np.abs(rest) * np.exp(-log_scale)).mean())


def _terms(noise: Array, count: int) -> tuple[Array, Array]:
    """Return centers at quantiles of the noise, and widths as far as neighbours are apart."""
    edges = np.quantile(noise, np.linspace(0, 1, count + 1))
    centers = np.quantile(noise, (np.arange(count) + 0.5) / count)
    least = _LEAST * max(float(np.abs(noise).mean()), 1e-300)
    return centers, np.maximum(np.diff(edges) / 2, least)
