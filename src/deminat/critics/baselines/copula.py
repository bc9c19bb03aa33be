r"""A start in closed form: what a Gaussian copula already says of the log ratio.

Make each column normal by its ranks; were the columns then jointly normal, the log ratio would be
a sum over canonical pairs $(p_i, q_i)$ with correlations $\rho_i$:

$$ f_0(x, y) = \sum_i -\tfrac12\log(1 - \rho_i^2)
   + \frac{\rho_i p_i q_i - \tfrac12\rho_i^2 (p_i^2 + q_i^2)}{1 - \rho_i^2}. $$

A critic added to it has only the rest to learn: a network alone, from a few thousand rows of many
columns, learns noise before it learns a quadratic form. Each estimated correlation costs
information, so correlations that noise alone would reach, below $\sqrt{d_x/n} + \sqrt{d_y/n}$,
are dropped, and the others are debiased. Covariances within a side are best shrunk (OAS) where
there are many columns, and best left alone where correlations are high, since shrunk ones no
longer fit the covariance between the sides. Both are candidates; held-out rows choose.

The sum is an inner product of a function of x and a function of y, so the start is separable.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.covariance import OAS

from ...data.transforms import Array, RankToNormal, Transform
from .base import Frames, log_ratio

__all__ = ["GaussianCopula", "cross_entropy"]

_EDGE = 1.05  # how far above the edge of the noise a correlation must be
_HIGHEST = 1 - 1e-8  # some nine nats a pair of columns
_AS_GIVEN = Frames()
_SINGULAR = 1e-10  # smallest share of the largest variance: collinear columns add nothing


@dataclass(frozen=True)
class GaussianCopula:
    """The log ratio of a Gaussian copula; 0 where no correlation stands out from noise.

    Args:
        x_scale: Makes the columns of x normal.
        y_scale: Makes the columns of y normal.
        x_directions: (dx, r) to the canonical variables of x.
        y_directions: (dy, r) to those of y.
        correlations: (r,) between them.
        frames: In which the columns are made normal.
        shrink: Whether covariances within a side were shrunk.
        informative: Whether a network may go on from here.
    """

    x_scale: Transform
    y_scale: Transform
    x_directions: Array
    y_directions: Array
    correlations: Array
    frames: Frames = _AS_GIVEN
    shrink: bool = True
    informative: bool = True

    @classmethod
    def candidates(
        cls,
        x: Array,
        y: Array,
        frames: Frames = _AS_GIVEN,
        scale: type[Transform] = RankToNormal,
    ) -> Sequence[Self]:
        """Return the copula of pairs x (n, dx), y (n, dy) without and with shrinkage."""
        return [cls.fit(x, y, shrink=s, frames=frames, scale=scale) for s in (False, True)]

    @classmethod
    def choose(
        cls, x: Array, y: Array, x_held: Array, y_held: Array, deadline: float | None = None
    ) -> Self | None:
        """Return the candidate with the lowest cross-entropy on held-out rows, if it is any use."""
        best, least = None, math.log(2)  # the cross-entropy of silence
        for start in cls.candidates(x, y):
            if (loss := cross_entropy(start.left(x_held), start.right(y_held))) < least:
                best, least = start, loss
        return best

    @classmethod
    def fit(
        cls,
        x: Array,
        y: Array,
        *,
        shrink: bool = True,
        frames: Frames = _AS_GIVEN,
        scale: type[Transform] = RankToNormal,
    ) -> Self:
        """Return the copula of pairs x (n, dx), y (n, dy)."""
        x, y = frames.of_x(x), frames.of_y(y)
        x_scale, y_scale = scale.fit(x), scale.fit(y)
        x, y = x_scale(x), y_scale(y)
        (n, dx), dy = x.shape, y.shape[1]
        x_white, y_white = _whitener(x, shrink), _whitener(y, shrink)
        u, s, vt = np.linalg.svd(x_white @ (x.T @ y / n) @ y_white, full_matrices=False)
        keep = s > _EDGE * (math.sqrt(dx / n) + math.sqrt(dy / n))
        debiased = 1 - (1 - s[keep] ** 2) * (1 + (dx + dy) / n)
        rho = np.sqrt(np.clip(debiased, 0, _HIGHEST**2))
        return cls(
            x_scale, y_scale, x_white @ u[:, keep], y_white @ vt[keep].T, rho, frames, shrink
        )

    def refit(self, x: Array, y: Array) -> Self:
        """Return the same kind of copula of other pairs."""
        scale = type(self.x_scale)
        other = self.fit(x, y, shrink=self.shrink, frames=self.frames, scale=scale)
        return replace(other, informative=self.informative)

    @property
    def components(self) -> int:
        """One: the log ratio is an inner product."""
        return 1

    @property
    def name(self) -> str:
        """What results call it."""
        kind = "Gaussian copula" if isinstance(self.x_scale, RankToNormal) else "Gaussian"
        count = len(self.correlations)
        return f"{kind}{self.frames.name}, {count} correlation{'s' * (count != 1)}"

    def left(self, x: Array) -> Array:
        """Return (m, r + 2): scaled canonical variables, the terms of x alone, ones."""
        p, rho = self.x_scale(self.frames.of_x(x)) @ self.x_directions, self.correlations
        alone = self._alone(p) - 0.5 * np.log1p(-(rho**2)).sum()
        return np.column_stack([p * rho / (1 - rho**2), alone, np.ones(len(p))])

    def right(self, y: Array) -> Array:
        """Return (m, r + 2): canonical variables, ones, the terms of y alone."""
        q = self.y_scale(self.frames.of_y(y)) @ self.y_directions
        return np.column_stack([q, np.ones(len(q)), self._alone(q)])

    def _alone(self, variables: Array) -> Array:
        rho = self.correlations
        return np.asarray(-0.5 * variables**2 @ (rho**2 / (1 - rho**2)))


def _whitener(a: Array, shrink: bool) -> Array:
    """Return the symmetric matrix (d, d) that makes the covariance of a (n, d) the identity."""
    covariance = OAS(assume_centered=True).fit(a).covariance_ if shrink else a.T @ a / len(a)
    values, vectors = np.linalg.eigh(covariance)
    inverse = np.where(values > _SINGULAR * values.max(), 1 / np.sqrt(np.abs(values) + 1e-300), 0)
    return np.asarray(vectors * inverse @ vectors.T)


def cross_entropy(left: Array, right: Array, components: int = 1) -> float:
    """Return how well the halves of held-out pairs tell them from unpaired rows, in nats."""
    order = np.random.default_rng(0).permutation(len(left))  # copies of a row may be neighbours
    left, right = left[order], right[order]
    joint = log_ratio(left, right, components)
    product = log_ratio(left, np.roll(right, 1, axis=0), components)
    return float(np.logaddexp(0, -joint).mean() + np.logaddexp(0, product).mean()) / 2
