r"""The Gaussian copula as a baseline.

Map each column to a standard normal by its ranks. If the columns are then jointly normal, the log
ratio is a sum over canonical pairs $(p_i, q_i)$ with correlations $\rho_i$:

$$ f_0(x, y) = \sum_i -\tfrac12\log(1 - \rho_i^2)
   + \frac{\rho_i p_i q_i - \tfrac12\rho_i^2 (p_i^2 + q_i^2)}{1 - \rho_i^2}. $$

A critic that is added to it has only the rest to learn. A network alone, trained on a few thousand
rows of many columns, fits noise before it fits a quadratic form. Each estimated correlation adds
variance. So correlations within sampling noise, below $\sqrt{d_x/n} + \sqrt{d_y/n}$, are dropped,
and the others are debiased. With many columns it is best to shrink the covariances within a side
(OAS). With high correlations it is best not to, since shrunk covariances no longer fit the
covariance between the sides. Both are candidates, and held-out rows choose.

The sum is an inner product of a function of x and a function of y, so the baseline is separable.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
from sklearn.covariance import OAS

from ...data.transforms import Array, RankToNormal, Transform
from .base import Baseline, Frames, log_ratio

__all__ = ["GaussianCopula", "best_of", "cross_entropy", "held_out_loss"]

AnyBaseline = TypeVar("AnyBaseline", bound=Baseline)

_EDGE = 1.05  # of the largest correlation of noise: smaller correlations are dropped
_HIGHEST = 1 - 1e-8  # some nine nats a pair of columns
_AS_GIVEN = Frames()
_SINGULAR = 1e-10  # share of the largest variance below which a direction is collinear


@dataclass(frozen=True)
class GaussianCopula:
    """The log ratio of a Gaussian copula; 0 if all correlations are within sampling noise.

    Args:
        x_scale: Maps the columns of x to standard normals.
        y_scale: Maps the columns of y to standard normals.
        x_directions: (dx, r) to the canonical variables of x.
        y_directions: (dy, r) to those of y.
        correlations: (r,) between them.
        frames: In which the columns are mapped to standard normals.
        shrink: Whether covariances within a side were shrunk.
        informative: Whether a network can improve it.
    """

    x_scale: Transform
    y_scale: Transform
    x_directions: Array
    y_directions: Array
    correlations: Array
    frames: Frames = _AS_GIVEN
    shrink: bool = True
    informative: bool = True
    components: ClassVar[int] = 1  # the log ratio is an inner product

    @classmethod
    def candidates(
        cls, x: Array, y: Array, frames: Frames = _AS_GIVEN, scale: type[Transform] = RankToNormal
    ) -> Sequence[Self]:
        """Return the copula of pairs x (n, dx), y (n, dy) without and with shrinkage."""
        choices = (False, True) if max(x.shape[1], y.shape[1]) > 1 else (False,)
        return [cls.fit(x, y, shrink=s, frames=frames, scale=scale) for s in choices]

    @classmethod
    def choose(
        cls, x: Array, y: Array, x_held: Array, y_held: Array, deadline: float | None = None
    ) -> Self | None:
        """Return the candidate with the lowest cross-entropy on held-out rows.

        It is None if a log ratio of zero does as well. The deadline is ignored: a copula is quick.
        """
        return best_of(cls.candidates(x, y), x_held, y_held)

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
        """Return the same kind of copula, fitted to other pairs."""
        scale = type(self.x_scale)
        other = self.fit(x, y, shrink=self.shrink, frames=self.frames, scale=scale)
        return replace(other, informative=self.informative)

    @property
    def name(self) -> str:
        """What results call it."""
        kind = "Gaussian copula" if isinstance(self.x_scale, RankToNormal) else "Gaussian"
        count = len(self.correlations)
        return f"{kind}{self.frames.name}, {count} correlation{'s' * (count != 1)}"

    def left(self, x: Array) -> Array:
        """Return left factors (m, r + 2): scaled canonical variables, terms of x alone, ones."""
        p, rho = self.x_scale(self.frames.of_x(x)) @ self.x_directions, self.correlations
        alone = self._alone(p) - 0.5 * np.log1p(-(rho**2)).sum()
        return np.column_stack([p * rho / (1 - rho**2), alone, np.ones(len(p))])

    def right(self, y: Array) -> Array:
        """Return right factors (m, r + 2): canonical variables, ones, terms of y alone."""
        q = self.y_scale(self.frames.of_y(y)) @ self.y_directions
        return np.column_stack([q, np.ones(len(q)), self._alone(q)])

    def _alone(self, variables: Array) -> Array:
        rho = self.correlations
        return np.asarray(-0.5 * variables**2 @ (rho**2 / (1 - rho**2)))


def _whitener(a: Array, shrink: bool) -> Array:
    """Return the symmetric matrix (d, d) that makes the covariance of a (n, d) the identity."""
    shrink = shrink and a.shape[1] > 1  # one variance has nothing to shrink towards
    covariance = OAS(assume_centered=True).fit(a).covariance_ if shrink else a.T @ a / len(a)
    values, vectors = np.linalg.eigh(covariance)
    inverse = np.where(values > _SINGULAR * values.max(), 1 / np.sqrt(np.abs(values) + 1e-300), 0)
    return np.asarray(vectors * inverse @ vectors.T)


def best_of(
    candidates: Iterable[AnyBaseline],
    x: Array,
    y: Array,
    best: AnyBaseline | None = None,
    min_gain: float = 0.0,
) -> AnyBaseline | None:
    """Return the candidate with the lowest cross-entropy on held-out pairs x (m, dx), y (m, dy).

    It is `best`, where None is a log ratio of zero, if no candidate is better by `min_gain` nats.
    """
    lowest = held_out_loss(best, x, y) - min_gain
    for candidate in candidates:
        if (loss := held_out_loss(candidate, x, y)) < lowest:
            best, lowest = candidate, loss
    return best


def held_out_loss(baseline: Baseline | None, x: Array, y: Array) -> float:
    """Return the cross-entropy of a baseline, or of zero, on held-out pairs, in nats."""
    if baseline is None:
        return math.log(2)
    return cross_entropy(baseline.left(x), baseline.right(y), baseline.components)


def cross_entropy(left: Array, right: Array, components: int = 1) -> float:
    """Return the cross-entropy of a baseline between held-out pairs and unpaired samples, in nats.

    Args:
        left: (n, components * r) left factors of the pairs.
        right: (n, components * r) right factors.
        components: Terms of the log ratio.
    """
    order = np.random.default_rng(0).permutation(len(left))  # copies of a row may be adjacent
    left, right = left[order], right[order]
    joint = log_ratio(left, right, components)
    product = log_ratio(left, np.roll(right, 1, axis=0), components)
    return float(np.logaddexp(0, -joint).mean() + np.logaddexp(0, product).mean()) / 2
