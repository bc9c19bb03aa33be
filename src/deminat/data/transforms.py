r"""Maps that keep mutual information, fitted on training rows only.

$I(g(x); h(y)) = I(x; y)$ for every invertible $g$ and $h$, so each side may be put on whatever
scale is easiest to learn from. All arithmetic is in float64, and only the outcome, of order one,
may become float32: a column of 1e8 + {0, 1, 2} would be constant there.
"""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

__all__ = [
    "Array",
    "Identity",
    "Linear",
    "Norms",
    "RankToNormal",
    "Robust",
    "SmoothRanks",
    "Standardize",
    "Transform",
    "Views",
]

Array = NDArray[np.float64]

_LENGTHS = 3
_FLATTEST = 1e-9
_FARTHEST = 4.0  # standard deviations of a log length: beyond, networks would extrapolate


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
class Identity:
    """No map at all, for data whose scale is known to suit."""

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map."""
        return cls()

    def __call__(self, a: Array) -> Array:
        """Return rows `a` as they are."""
        return a


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

    def linear(self) -> "Linear":
        """Return the same scale without the asinh."""
        return Linear(self.center, self.scale)


@dataclass(frozen=True)
class Linear:
    """Centred and divided by a width."""

    center: Array
    scale: Array

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) on the fitted scale."""
        with np.errstate(over="ignore"):
            return np.nan_to_num((a - self.center) / self.scale)

    def log_slope(self, a: Array) -> Array:
        """Return the log determinant (m,) of the map at rows `a`."""
        return np.full(len(a), -np.log(self.scale).sum())


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
class SmoothRanks:
    """`RankToNormal` along a smooth curve through some of the quantiles, so that it has a slope.

    Beyond the training values it goes on in a straight line.
    """

    curves: tuple[PchipInterpolator, ...]

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map of the rows of `a` (n, d)."""
        n = len(a)
        knots = min(200, max(10, n // 20))
        levels = np.concatenate([[0.5 / n], np.arange(1, knots) / knots, [1 - 0.5 / n]])
        return cls(tuple(_curve(column, levels) for column in a.T))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) with standard normal columns."""
        return np.stack([_along(c, v)[0] for c, v in zip(self.curves, a.T, strict=True)], axis=1)

    def log_slope(self, a: Array) -> Array:
        """Return the log determinant (m,) of the map at rows `a`."""
        slopes = [_along(c, v)[1] for c, v in zip(self.curves, a.T, strict=True)]
        return np.asarray(np.log(slopes).sum(axis=0))


@dataclass(frozen=True)
class Views:
    """Two views side by side, `Robust` and `RankToNormal`, and three lengths of each row.

    A network reads off whichever is easier: ranks undo any monotone map of single columns, the
    robust scale keeps distances, and the lengths carry what columns share: heavy tails, or a turn
    that depends on the distance. They are log lengths of the robust row before its asinh and of
    the ranks, both freed of correlations, and of the row as measured from its own zero.
    Images are standardised only.
    """

    views: tuple[Transform, ...]
    lengths: "Norms | None" = None

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map of the rows of `a` (n, ...)."""
        if a.ndim > 2:
            return cls((Standardize.fit(a),))
        robust, ranks = Robust.fit(a), RankToNormal.fit(a)
        return cls((robust, ranks), Norms.fit(a, robust.linear(), ranks))

    def __call__(self, a: Array) -> Array:
        """Return the views of rows `a`: (m, 2 d + 3) for columns, unchanged shape for images."""
        if self.lengths is None:
            return self.views[0](a)
        return np.concatenate([*(view(a) for view in self.views), self.lengths(a)], axis=1)

    def columns(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return which columns of the views belong to columns `kept` (d,), with the lengths."""
        return np.flatnonzero(np.concatenate([kept, kept, np.ones(_LENGTHS, dtype=bool)]))


@dataclass(frozen=True)
class Norms:
    """Standardised logarithms of the lengths of rows, measured in three ways."""

    linear: Linear
    ranks: RankToNormal
    precision: Array
    size: Array
    scale: Standardize | None = None

    @classmethod
    def fit(cls, a: Array, linear: Linear, ranks: RankToNormal) -> Self:
        """Return the lengths that suit the rows of `a` (n, d)."""
        normal = ranks(a)
        correlations = normal.T @ normal / len(a)
        precision = np.asarray(np.linalg.pinv(correlations, rcond=1e-6, hermitian=True), float)
        size = _nonzero(np.abs(a).max(axis=0))
        size = size * _nonzero(np.sqrt(((a / size) ** 2).mean(axis=0)))
        lengths = cls(linear, ranks, precision, size)
        return replace(lengths, scale=Standardize.fit(lengths(a)))

    def __call__(self, a: Array) -> Array:
        """Return (m, 3) of rows `a` (m, d)."""
        rows = self.linear(a), self.ranks(a), a / self.size
        with np.errstate(over="ignore"):
            squares = [((r @ self.precision) * r).sum(axis=1) for r in rows[:2]]
            squares.append((rows[2] ** 2).sum(axis=1))
        lengths = np.log1p(np.clip(np.nan_to_num(np.stack(squares, axis=1)), 0, None))
        return (
            lengths if self.scale is None else np.clip(self.scale(lengths), -_FARTHEST, _FARTHEST)
        )


def _nonzero(scale: Array) -> Array:
    return np.where(scale > 0, scale, 1.0)


def _normal_quantiles(column: Array) -> tuple[Array, Array]:
    """Return the distinct values of a column and the normal quantile of each middle rank."""
    values, counts = np.unique(column, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    return values, ndtri(middle / len(column))


def _curve(column: Array, levels: Array) -> PchipInterpolator:
    """Return the smooth increasing curve from values of a column to normal quantiles."""
    values, first = np.unique(np.quantile(column, levels), return_index=True)
    if len(values) < 2:
        values, first = np.array([values[0], values[0] + 1]), np.array([0, len(levels) - 1])
    return PchipInterpolator(values, ndtri(levels[first]))


def _along(curve: PchipInterpolator, values: Array) -> tuple[Array, Array]:
    """Return heights and slopes of a curve, which ends in straight lines."""
    within = np.clip(values, curve.x[0], curve.x[-1])
    slopes = np.maximum(curve(within, 1), _FLATTEST)
    return curve(within) + (values - within) * slopes, slopes
