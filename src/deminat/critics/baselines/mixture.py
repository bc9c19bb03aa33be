r"""A Gaussian mixture of both sides: closed form, with marginals that fit together.

Each component is a normal of $(x, y)$; left alone with x, or with y, it still is one. So are the
log ratio's three parts sums over the same components,

$$ f_0 = \log\sum_k w_k N_k(x, y) - \log\sum_k w_k N_k(x) - \log\sum_k w_k N_k(y), $$

and since each joint exponent is a term of x plus a term of y plus an inner product of the two, so
is every summand of the first part. Three views compete: columns as they are (heavy tails,
clusters), columns made normal by their ranks (monotone maps of columns), and independent
components made normal (the same, mixed by a rotation). Between views only densities of the rows as
given can be compared, so a view knows its own Jacobian. What is compared is the conditional
likelihood both ways,
$\log r(y \mid x) + \log r(x \mid y)$, which unlike the joint one does not care how x itself is
distributed.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...data.transforms import Array, Robust, SmoothRanks
from .base import Frames
from .copula import cross_entropy

__all__ = ["Mixture", "View", "mixture_on", "views"]

_FEW = 4_000  # rows that suffice to compare views
_STEPS = 40
_FLOOR = 1e-8  # added to the variances of components


class Scale(Protocol):
    """A smooth map of columns that knows its own slope."""

    def __call__(self, a: Array) -> Array: ...
    def log_slope(self, a: Array) -> Array: ...


@dataclass(frozen=True)
class View:
    """How a mixture sees both sides: a frame, then a map of each column."""

    frames: Frames
    x_scale: Scale
    y_scale: Scale

    def of_x(self, x: Array) -> Array:
        """Return rows x (m, dx) as the mixture sees them."""
        return self.x_scale(self.frames.of_x(x))

    def of_y(self, y: Array) -> Array:
        """Return rows y (m, dy) as the mixture sees them."""
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
        view: How it sees the rows.
        weights: (k,) of the components.
        means: (k, dx + dy).
        covariances: (k, dx + dy, dx + dy).
        dx: How many of the columns are those of x.
    """

    view: View
    weights: Array
    means: Array
    covariances: Array
    dx: int
    informative: bool = False

    @classmethod
    def fit(cls, x: Array, y: Array, view: View, components: int) -> Self:
        """Return the mixture of pairs x (n, dx), y (n, dy), by expectation maximisation."""
        from sklearn.mixture import GaussianMixture  # late: most never want it

        rows = np.hstack([view.of_x(x), view.of_y(y)])
        model = GaussianMixture(
            components,
            reg_covar=_FLOOR,
            init_params="k-means++",
            max_iter=_STEPS,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows)
        return cls(view, model.weights_, model.means_, model.covariances_, x.shape[1])

    def refit(self, x: Array, y: Array) -> "Mixture":
        """Return a mixture of as many components of other pairs, if none collapses."""
        return mixture_on(self.view, x, y, self.components) or self

    @property
    def components(self) -> int:
        """The number of normals."""
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
        """Return (m, k (r + 2)): of each component the half inner product, a term of x, ones."""
        v = self.view.of_x(x)
        alone = _log_density(v, self.weights, *self._part(slice(None, self.dx)))
        halves = []
        for weight, mean, precision in self._terms():
            z, xx, xy = v - mean[: self.dx], *_blocks(precision, self.dx)[:2]
            constant = math.log(weight) + 0.5 * np.linalg.slogdet(precision)[1]
            own = constant - _LOG_ROOT_TAU * len(mean) - 0.5 * _form(z, xx) - alone
            halves.append(np.column_stack([-z @ xy, own, np.ones(len(z))]))
        return np.hstack(halves)

    def right(self, y: Array) -> Array:
        """Return (m, k (r + 2)): of each component the half inner product, ones, a term of y."""
        v = self.view.of_y(y)
        alone = _log_density(v, self.weights, *self._part(slice(self.dx, None)))
        halves = []
        for _, mean, precision in self._terms():
            z, yy = v - mean[self.dx :], _blocks(precision, self.dx)[2]
            halves.append(np.column_stack([z, np.ones(len(z)), -0.5 * _form(z, yy) - alone]))
        return np.hstack(halves)

    def conditional_likelihood(self, x: Array, y: Array) -> float:
        """Return the mean of log r(y | x) + log r(x | y) over pairs, as densities of the rows."""
        u, v = self.view.of_x(x), self.view.of_y(y)
        joint = _log_density(np.hstack([u, v]), self.weights, self.means, self.covariances)
        of_x = _log_density(u, self.weights, *self._part(slice(None, self.dx)))
        of_y = _log_density(v, self.weights, *self._part(slice(self.dx, None)))
        return float((2 * joint - of_x - of_y).mean()) + self.view.log_jacobian(x, y)

    def cross_entropy(self, x: Array, y: Array) -> float:
        """Return how well it tells pairs from unpaired rows."""
        return cross_entropy(self.left(x), self.right(y), self.components)

    def _part(self, columns: slice) -> tuple[Array, Array]:
        return self.means[:, columns], self.covariances[:, columns, columns]

    def _terms(self) -> Iterator[tuple[float, Array, Array]]:
        precisions = np.linalg.inv(self.covariances)
        yield from zip(self.weights.tolist(), self.means, precisions, strict=True)


_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


def views(x: Array, y: Array, turned: Frames | None) -> list[View]:
    """Return the views that mixtures of pairs x (n, dx), y (n, dy) may take."""
    plain = Frames()
    found = [
        View(plain, Robust.fit(x).linear(), Robust.fit(y).linear()),
        View(plain, SmoothRanks.fit(x), SmoothRanks.fit(y)),
    ]
    if turned is not None:
        scales = SmoothRanks.fit(turned.of_x(x)), SmoothRanks.fit(turned.of_y(y))
        found.append(View(turned, *scales))
    return found


def mixture_on(
    view: View, x: Array, y: Array, components: int, few: bool = False
) -> Mixture | None:
    """Return a mixture, or None where a component collapses; `few` takes a part of the rows."""
    rows = slice(_FEW) if few else slice(None)
    try:
        found = Mixture.fit(x[rows], y[rows], view, components)
        np.linalg.cholesky(found.covariances)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return found


def _blocks(matrix: Array, dx: int) -> tuple[Array, Array, Array]:
    return matrix[:dx, :dx], matrix[:dx, dx:], matrix[dx:, dx:]


def _form(z: Array, matrix: Array) -> Array:
    """Return z' A z of each row."""
    return np.asarray(((z @ matrix) * z).sum(axis=1))


def _log_density(rows: Array, weights: Array, means: Array, covariances: Array) -> Array:
    each = []
    for weight, mean, factor in zip(weights, means, np.linalg.cholesky(covariances), strict=True):
        white = np.linalg.solve(factor, (rows - mean).T)
        scale = math.log(weight) - np.log(np.diag(factor)).sum() - _LOG_ROOT_TAU * len(mean)
        each.append(scale - 0.5 * (white**2).sum(axis=0))
    return np.asarray(np.logaddexp.reduce(each, axis=0))
