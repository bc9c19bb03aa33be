r"""Maps that keep mutual information, fitted on training rows only.

$I(g(x); h(y)) = I(x; y)$ for every invertible $g$ and $h$, so each side may be put on whatever
scale is easiest to learn from. All arithmetic is in float64, and only the outcome, of order one,
may become float32: a column of 1e8 + {0, 1, 2} would be constant there.
"""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["RankToNormal", "Robust", "Standardize", "Transform", "Views"]

Array = NDArray[np.float64]


class Transform(Protocol):
    """A map fitted on training rows; `Standardize` shows how little it takes."""

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map that suits the rows of `a` (n, ...)."""
        ...

    def __call__(self, a: Array) -> Array:
        """Return new rows `a` (m, ...) on the fitted scale."""
        ...


@dataclass(frozen=True)
class Standardize:
    """Mean 0 and standard deviation 1: per column, or over all pixels of images."""

    center: Array
    scale: Array

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map of the rows of `a` (n, ...)."""
        axes = 0 if a.ndim == 2 else None
        size = _nonzero(np.abs(a).max(axis=axes))  # squares of 1e200 would overflow
        center = (a / size).mean(axis=axes) * size
        return cls(center, _nonzero((((a - center) / size) ** 2).mean(axis=axes) ** 0.5 * size))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, ...) standardised."""
        return (a - self.center) / self.scale


@dataclass(frozen=True)
class Robust:
    """Median and 68% half-width, then asinh: tails are tamed, radial structure survives."""

    center: Array
    scale: Array

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map of the rows of `a` (n, d)."""
        center = np.median(a, axis=0)
        width = np.quantile(np.abs(a - center), 0.6827, axis=0)
        return cls(center, np.where(width > 0, width, Standardize.fit(a).scale))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) on the fitted scale."""
        with np.errstate(over="ignore"):
            return np.arcsinh(np.nan_to_num((a - self.center) / self.scale))


@dataclass(frozen=True)
class RankToNormal:
    """Each column through its own distribution function to a standard normal.

    Between training values it interpolates; beyond them it stays at the last quantile. Ties
    share their middle rank.
    """

    values: tuple[Array, ...]
    quantiles: tuple[Array, ...]

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map of the rows of `a` (n, d)."""
        pairs = [_normal_quantiles(column) for column in a.reshape(len(a), -1).T]
        return cls(tuple(v for v, _ in pairs), tuple(q for _, q in pairs))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) with standard normal columns."""
        known = zip(a.reshape(len(a), -1).T, self.values, self.quantiles, strict=True)
        return np.stack([np.interp(*columns) for columns in known], axis=1).reshape(a.shape)


@dataclass(frozen=True)
class Views:
    """Two views side by side, `Robust` and `RankToNormal`, with the log norm of each.

    A network reads off whichever is easier: ranks undo any monotone map of single columns, the
    robust scale keeps distances, and the norms carry what heavy tails share between columns.
    Images are standardised only.
    """

    views: tuple[Transform, ...]

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map of the rows of `a` (n, ...)."""
        return cls((Robust.fit(a), RankToNormal.fit(a)) if a.ndim == 2 else (Standardize.fit(a),))

    def __call__(self, a: Array) -> Array:
        """Return the views of rows `a`: (m, 2 d + 2) for columns, unchanged shape for images."""
        if a.ndim > 2:
            return self.views[0](a)
        views = [view(a) for view in self.views]
        norms = [np.log1p(np.square(v).sum(axis=1, keepdims=True)) for v in views]
        return np.concatenate([*views, *norms], axis=1)


def _nonzero(scale: Array) -> Array:
    return np.where(scale > 0, scale, 1.0)


def _normal_quantiles(column: Array) -> tuple[Array, Array]:
    """Return the distinct values of a column and the normal quantile of each middle rank."""
    values, counts = np.unique(column, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    return values, ndtri(middle / len(column))
