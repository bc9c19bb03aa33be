r"""A Gaussian mixture of both sides as a baseline, whose marginals are in closed form too.

Each component is a normal distribution of $(x, y)$, and so are its marginals of x and of y. The
three parts of the log ratio are sums over the same components,

$$ f_0 = \log\sum_k w_k N_k(x, y) - \log\sum_k w_k N_k(x) - \log\sum_k w_k N_k(y), $$

and each exponent of the first part is a term of x plus a term of y plus an inner product. Three
views compete: columns as they are (for heavy tails and clusters), columns mapped to normals by
their ranks (for monotone maps of columns), and independent components mapped to normals (the same
after a rotation). Views are compared by densities of the original rows, so each view has a
Jacobian. The criterion is the conditional likelihood in both directions,
$\log r(y \mid x) + \log r(x \mid y)$. Unlike the joint likelihood it does not depend on how well
the marginals are fitted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import logsumexp

from ...data.transforms import Array, Robust, SmoothRanks
from .base import Frames

__all__ = ["Mixture", "View", "mixture_on", "views"]

_FEW = 4_000  # rows to compare views by
_STEPS = 60  # of expectation maximisation, at most
_MORE_STEPS = 5  # ... of a mixture that was fitted to most of the rows
_TOLERANCE = 1e-3  # nats of likelihood by which a step must be better
_OF_COLUMN = 3e-4  # ... for each column, if that is more
_AT_ONCE = 4_096  # rows whose densities are found together: bounds the memory
_FLOOR = 1e-8  # added to the variances of components
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


class Scale(Protocol):
    """A smooth map of columns, with its slope."""

    def __call__(self, a: Array, /) -> Array:
        """Return rows (m, d) on the scale."""

    def log_slope(self, a: Array, /) -> Array:
        """Return the log determinant (m,) of the map at rows."""


@dataclass(frozen=True)
class View:
    """The map of both sides before a mixture: a frame, then a map of each column."""

    frames: Frames
    x_scale: Scale
    y_scale: Scale

    def of_x(self, x: Array) -> Array:
        """Return the inputs (m, dx) of the mixture for rows x (m, dx)."""
        return self.x_scale(self.frames.of_x(x))

    def of_y(self, y: Array) -> Array:
        """Return the inputs (m, dy) of the mixture for rows y (m, dy)."""
        return self.y_scale(self.frames.of_y(y))

    def log_jacobian(self, x: Array, y: Array) -> float:
        """Return the mean log determinant of the map at pairs of rows."""
        slopes = self.x_scale.log_slope(self.frames.of_x(x))
        slopes = slopes + self.y_scale.log_slope(self.frames.of_y(y))
        frames = [f for f in (self.frames.x, self.frames.y) if f is not None]
        return float(slopes.mean() + sum(np.linalg.slogdet(f)[1] for f in frames))


@dataclass(frozen=True)
class Mixture:
    """The log ratio of a Gaussian mixture.

    Args:
        view: Maps the rows first.
        weights: (k,) of the components.
        means: (k, dx + dy).
        covariances: (k, dx + dy, dx + dy).
        dx: The number of columns of x.
        informative: Whether a network can improve it.
    """

    view: View
    weights: Array
    means: Array
    covariances: Array
    dx: int
    informative: bool = False

    @classmethod
    def fit(cls, x: Array, y: Array, view: View, components: int) -> Self:
        """Return the mixture for pairs x (n, dx), y (n, dy), by expectation maximisation."""
        rows = np.hstack([view.of_x(x), view.of_y(y)])
        return cls(view, *_maximised(_Moments(rows), _nearest(rows, components)), x.shape[1])

    def refit(self, x: Array, y: Array) -> "Mixture":
        """Return the mixture after a few more steps on other pairs, or this one if it collapses."""
        moments = _Moments(np.hstack([self.view.of_x(x), self.view.of_y(y)]))
        if len(x) < self.means.size:
            return self
        try:
            known = moments.shares(self.weights, self.means, self.covariances)[0]
            weights, means, covariances = _maximised(moments, known, _MORE_STEPS)
            np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            return self
        return replace(self, weights=weights, means=means, covariances=covariances)

    @property
    def components(self) -> int:
        """The number of normal distributions."""
        return len(self.weights)

    @property
    def frames(self) -> Frames:
        """The frames of its view."""
        return self.view.frames

    @property
    def name(self) -> str:
        """What results call it."""
        scale = "ranks" if isinstance(self.view.x_scale, SmoothRanks) else "columns"
        return f"mixture of {self.components} Gaussians on {scale}{self.frames.name}"

    def left(self, x: Array) -> Array:
        """Return left factors (m, k (r + 2)): for each component products, a term of x, ones."""
        v, dx = self.view.of_x(x), self.dx
        alone = self._log_density(v, slice(None, dx))
        factors = []
        for weight, mean, precision in self._terms():
            z, xx, xy = v - mean[:dx], precision[:dx, :dx], precision[:dx, dx:]
            constant = math.log(weight) + 0.5 * np.linalg.slogdet(precision)[1]
            own = constant - _LOG_ROOT_TAU * len(mean) - 0.5 * _form(z, xx) - alone
            factors.append(np.column_stack([-z @ xy, own, np.ones(len(z))]))
        return np.hstack(factors)

    def right(self, y: Array) -> Array:
        """Return right factors (m, k (r + 2)): for each component y, ones, a term of y."""
        v, dx = self.view.of_y(y), self.dx
        alone = self._log_density(v, slice(dx, None))
        factors = []
        for _, mean, precision in self._terms():
            z, yy = v - mean[dx:], precision[dx:, dx:]
            factors.append(np.column_stack([z, np.ones(len(z)), -0.5 * _form(z, yy) - alone]))
        return np.hstack(factors)

    def conditional_likelihood(self, x: Array, y: Array) -> float:
        """Return the mean of log r(y | x) + log r(x | y) over pairs, as densities of raw rows."""
        u, v = self.view.of_x(x), self.view.of_y(y)
        joint = self._log_density(np.hstack([u, v]), slice(None))
        of_x = self._log_density(u, slice(None, self.dx))
        of_y = self._log_density(v, slice(self.dx, None))
        return float((2 * joint - of_x - of_y).mean()) + self.view.log_jacobian(x, y)

    def _log_density(self, rows: Array, columns: slice) -> Array:
        """Return the log density (m,) of some of the columns at rows (m, k)."""
        factors = np.linalg.cholesky(self.covariances[:, columns, columns])
        inverse, (k, d) = np.linalg.inv(factors), factors.shape[:2]
        center = np.einsum("kij,kj->ki", inverse, self.means[:, columns]).ravel()
        sizes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        constants = np.log(self.weights) - sizes - _LOG_ROOT_TAU * d
        flat, parts = inverse.reshape(k * d, d).T, []
        for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
            squares = ((some @ flat - center) ** 2).reshape(len(some), k, d).sum(axis=2)
            parts.append(logsumexp(constants - 0.5 * squares, axis=1))
        return np.concatenate(parts)

    def _terms(self) -> Iterator[tuple[float, Array, Array]]:
        precisions = np.linalg.inv(self.covariances)
        yield from zip(self.weights.tolist(), self.means, precisions, strict=True)


def views(x: Array, y: Array, frames: Frames | None) -> list[View]:
    """Return the candidate views of pairs x (n, dx), y (n, dy)."""
    plain = Frames()
    found = [
        View(plain, Robust.fit(x).linear(), Robust.fit(y).linear()),
        View(plain, SmoothRanks.fit(x), SmoothRanks.fit(y)),
    ]
    if frames is not None:
        scales = SmoothRanks.fit(frames.of_x(x)), SmoothRanks.fit(frames.of_y(y))
        found.append(View(frames, *scales))
    return found


def mixture_on(
    view: View, x: Array, y: Array, components: int, few: bool = False
) -> Mixture | None:
    """Return a mixture, or None if a component collapses; `few` uses the first rows only."""
    rows = slice(_FEW) if few else slice(None)
    try:
        found = Mixture.fit(x[rows], y[rows], view, components)
        np.linalg.cholesky(found.covariances)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return found


class _Moments:
    """Expectation maximisation of Gaussian mixtures, all components at once.

    A log density is linear in the products of columns, the columns and 1. So a step is two matrix
    products, which takes a fraction of the time of a loop over components.
    """

    def __init__(self, rows: Array):
        self.pairs = np.triu_indices(rows.shape[1])
        i, j = self.pairs
        self.features = np.hstack([rows[:, i] * rows[:, j], rows, np.ones((len(rows), 1))])
        self.d = rows.shape[1]

    def shares(self, weights: Array, means: Array, covariances: Array) -> tuple[Array, float]:
        """Return the share (n, k) of each component in each row, and the mean log likelihood."""
        precisions = np.linalg.inv(covariances)
        i, j = self.pairs
        squares = -np.where(i == j, 0.5, 1.0) * precisions[:, i, j]
        slopes = np.einsum("kij,kj->ki", precisions, means)
        constants = np.log(weights) - 0.5 * (slopes * means).sum(axis=1)
        constants += 0.5 * np.linalg.slogdet(precisions)[1] - _LOG_ROOT_TAU * self.d
        each = self.features @ np.column_stack([squares, slopes, constants]).T
        highest = each.max(axis=1, keepdims=True)
        shares = np.exp(each - highest)
        total = shares.sum(axis=1, keepdims=True)
        return shares / total, float((np.log(total) + highest).mean())

    def components(self, shares: Array) -> tuple[Array, Array, Array]:
        """Return weights (k,), means (k, d) and covariances (k, d, d) of shares (n, k)."""
        sums = shares.T @ self.features
        counts = sums[:, -1] + _FLOOR
        means = sums[:, -1 - self.d : -1] / counts[:, None]
        covariances = np.empty((len(counts), self.d, self.d))
        i, j = self.pairs
        covariances[:, i, j] = sums[:, : len(i)] / counts[:, None] - means[:, i] * means[:, j]
        covariances[:, j, i] = covariances[:, i, j]
        covariances += _FLOOR * np.eye(self.d)
        return counts / counts.sum(), means, covariances


def _nearest(rows: Array, components: int) -> Array:
    """Return shares (n, k) of 0 and 1: each row belongs to the nearest of k spread-out rows."""
    from sklearn.cluster import kmeans_plusplus  # late: seldom needed

    centres, _ = kmeans_plusplus(rows, components, random_state=0)
    distances = (centres**2).sum(axis=1) - 2 * rows @ centres.T
    return np.asarray(np.eye(components)[distances.argmin(axis=1)])


def _maximised(moments: _Moments, shares: Array, steps: int = _STEPS) -> tuple[Array, Array, Array]:
    """Return weights, means and covariances after steps from given shares (n, k)."""
    found, before = moments.components(shares), -np.inf
    least = max(_TOLERANCE, _OF_COLUMN * moments.d)
    for _ in range(steps):
        shares, likelihood = moments.shares(*found)
        if not likelihood > before + least:
            break
        found, before = moments.components(shares), likelihood
    return found


def _form(z: Array, matrix: Array) -> Array:
    """Return z' A z of each row."""
    return np.asarray(((z @ matrix) * z).sum(axis=1))
