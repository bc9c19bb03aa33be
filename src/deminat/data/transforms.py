r"""Transforms that preserve mutual information, fitted on training rows only.

$I(g(x); h(y)) = I(x; y)$ for all invertible $g$ and $h$, so each side may be put on the scale that
is easiest to learn from. All arithmetic is in float64; only the result, which is of order one, may
become float32, in which a column of 1e8 + {0, 1, 2} would be constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

__all__ = [
    "Array",
    "Identity",
    "Indicators",
    "Linear",
    "NoColumns",
    "Norms",
    "Projected",
    "RankToNormal",
    "Robust",
    "SmoothRanks",
    "Standardize",
    "Transform",
    "Views",
]

Array = NDArray[np.float64]

_NORMS = 3  # per row
_BINARY = 2  # values that are read alike as numbers
_FREQUENT = 5  # rows of a value that has an indicator
_INDICATORS = 512  # of a side, at most
_MIN_SLOPE = 1e-9
_MAX_NORM = 4.0  # standard deviations of a log norm, beyond which networks would extrapolate


class Transform(Protocol):
    """A map fitted on training rows; see `Standardize` for an example."""

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map fitted on rows `a` (n, ...)."""

    def __call__(self, a: Array) -> Array:
        """Return new rows `a` (m, ...) on the fitted scale."""


@dataclass(frozen=True)
class Standardize:
    """Mean 0 and standard deviation 1: per column, or over all pixels of images."""

    center: Array
    scale: Array

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map fitted on rows `a` (n, ...)."""
        axes = 0 if a.ndim == 2 else None
        size = _nonzero(np.abs(a).max(axis=axes))  # squares of 1e200 would overflow
        center = (a / size).mean(axis=axes) * size
        return cls(center, _nonzero((((a - center) / size) ** 2).mean(axis=axes) ** 0.5 * size))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, ...) standardised."""
        return (a - self.center) / self.scale


@dataclass(frozen=True)
class Identity:
    """No change, for data that are on a suitable scale."""

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map."""
        return cls()

    def __call__(self, a: Array) -> Array:
        """Return rows `a` as they are."""
        return a


@dataclass(frozen=True)
class NoColumns:
    """Rows without columns, for closed forms: they see rows by their factors alone."""

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map."""
        return cls()

    def __call__(self, a: Array) -> Array:
        """Return (m, 0) for rows `a`."""
        return np.empty((len(a), 0))


@dataclass(frozen=True)
class Robust:
    """Median 0 and 68% half-width 1, then asinh: bounds heavy tails, keeps radial structure."""

    center: Array
    scale: Array

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map fitted on rows `a` (n, d)."""
        center = np.median(a, axis=0)
        width = np.quantile(np.abs(a - center), 0.6827, axis=0)
        return cls(center, np.where(width > 0, width, Standardize.fit(a).scale))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) on the fitted scale."""
        return np.arcsinh(self.linear()(a))

    def linear(self) -> "Linear":
        """Return the same scale without the asinh."""
        return Linear(self.center, self.scale)


@dataclass(frozen=True)
class Linear:
    """Centring and division by a width."""

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
    """Each column through its empirical distribution function to a standard normal.

    It interpolates between training values and is constant beyond them. Ties get their mean rank.
    """

    values: tuple[Array, ...]
    quantiles: tuple[Array, ...]

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map fitted on rows `a` (n, d)."""
        pairs = [_normal_quantiles(column) for column in a.reshape(len(a), -1).T]
        return cls(tuple(v for v, _ in pairs), tuple(q for _, q in pairs))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) with standard normal columns."""
        known = zip(a.reshape(len(a), -1).T, self.values, self.quantiles, strict=True)
        return np.stack([np.interp(*columns) for columns in known], axis=1).reshape(a.shape)


@dataclass(frozen=True)
class SmoothRanks:
    """A differentiable `RankToNormal`: a smooth curve through some of the quantiles.

    Beyond the training values it is linear.
    """

    curves: tuple[PchipInterpolator, ...]

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map fitted on rows `a` (n, d)."""
        n = len(a)
        knots = min(200, max(10, n // 20))
        levels = np.concatenate([[0.5 / n], np.arange(1, knots) / knots, [1 - 0.5 / n]])
        return cls(tuple(_curve(column, levels) for column in a.T))

    def __call__(self, a: Array) -> Array:
        """Return rows `a` (m, d) with standard normal columns."""
        return np.stack([_evaluate(c, v)[0] for c, v in zip(self.curves, a.T, strict=True)], axis=1)

    def log_slope(self, a: Array) -> Array:
        """Return the log determinant (m,) of the map at rows `a`."""
        slopes = [_evaluate(c, v)[1] for c, v in zip(self.curves, a.T, strict=True)]
        return np.asarray(np.log(slopes).sum(axis=0))


@dataclass(frozen=True)
class Views:
    """Two views side by side, `Robust` and `RankToNormal`, and three norms of each row.

    A network uses the view that is easier to learn from. Ranks undo monotone maps of single
    columns, and the robust scale keeps distances. The norms show what columns share, such as heavy
    tails or a rotation that depends on the distance; see `Norms`. Images are only standardised.
    """

    views: tuple[Transform, ...]
    norms: "Norms | None" = None
    indicators: "Indicators | None" = None

    @classmethod
    def fit(cls, a: Array, labels: Sequence[bool] = ()) -> Self:
        """Return the map fitted on rows `a` (n, ...), of whose columns some are labels."""
        if a.ndim > 2:
            return cls((Standardize.fit(a),))
        robust, ranks = Robust.fit(a), RankToNormal.fit(a)
        norms = Norms.fit(a, robust.linear(), ranks)
        return cls((robust, ranks), norms, Indicators.fit(a, labels) if any(labels) else None)

    def __call__(self, a: Array) -> Array:
        """Return the views of rows `a`: (m, 2 d + 3) for columns, unchanged shape for images."""
        if self.norms is None:
            return self.views[0](a)
        parts = [*(view(a) for view in self.views), self.norms(a)]
        if self.indicators is not None:
            parts.append(self.indicators(a))
        return np.concatenate(parts, axis=1)

    def columns(self, selected: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the columns of the views that belong to columns `selected` (d,), and the norms."""
        seen = [selected, selected, np.ones(_NORMS, dtype=bool)]
        if self.indicators is not None:
            seen.append(selected[self.indicators.columns])
        return np.flatnonzero(np.concatenate(seen))


@dataclass(frozen=True)
class Projected:
    """The views of a few projections of many columns.

    Args:
        scale: Of the columns.
        directions: (d, k) of the projections.
        views: Of the projections.
    """

    scale: Transform
    directions: Array
    views: Views

    @classmethod
    def fit(cls, a: Array) -> Self:
        """Return the map onto the standardised columns of rows `a` (n, d) themselves."""
        return cls.onto(np.eye(a.shape[1]), Standardize.fit(a), a)

    @classmethod
    def onto(cls, directions: Array, scale: Transform, a: Array) -> Self:
        """Return the map onto directions (d, k), its views fitted on rows `a` (n, d)."""
        return cls(scale, directions, Views.fit(scale(a) @ directions))

    def __call__(self, a: Array) -> Array:
        """Return the views (m, 2 k + 3) of rows `a` (m, d)."""
        return self.views(self.scale(a) @ self.directions)


@dataclass(frozen=True)
class Indicators:
    """Columns of zeros and ones, one for each frequent value of a label, whatever its code.

    Args:
        columns: (p,) whose values they are.
        values: (p,) where they are 1.
    """

    columns: NDArray[np.int64]
    values: Array

    @classmethod
    def fit(cls, a: Array, labels: Sequence[bool]) -> Self:
        """Return the indicators of rows `a` (n, d); two values need none."""
        found: list[tuple[int, int, float]] = []
        for j in np.flatnonzero(labels):
            values, counts = np.unique(a[:, j], return_counts=True)
            if len(values) > _BINARY:
                each = zip(counts.tolist(), values.tolist(), strict=True)
                found += [(-count, int(j), value) for count, value in each if count >= _FREQUENT]
        found = sorted(found)[:_INDICATORS]
        columns = np.array([j for _, j, _ in found], dtype=np.int64)
        return cls(columns, np.array([value for _, _, value in found], dtype=np.float64))

    def __call__(self, a: Array) -> Array:
        """Return the indicators (m, p) of rows `a` (m, d)."""
        return np.asarray(a[:, self.columns] == self.values, dtype=np.float64)


@dataclass(frozen=True)
class Norms:
    """Three standardised log norms per row.

    They are the norms of the robust row without asinh and of the ranks, both with correlations
    removed (Mahalanobis), and of the row in units of its root mean square.
    """

    linear: Linear
    ranks: RankToNormal
    precision: Array
    size: Array
    scale: Standardize | None = None

    @classmethod
    def fit(cls, a: Array, linear: Linear, ranks: RankToNormal) -> Self:
        """Return the norms fitted on rows `a` (n, d)."""
        normal = ranks(a)
        correlations = normal.T @ normal / len(a)
        precision = np.asarray(np.linalg.pinv(correlations, rcond=1e-6, hermitian=True), float)
        size = _nonzero(np.abs(a).max(axis=0))
        size = size * _nonzero(np.sqrt(((a / size) ** 2).mean(axis=0)))
        norms = cls(linear, ranks, precision, size)
        return replace(norms, scale=Standardize.fit(norms(a)))

    def __call__(self, a: Array) -> Array:
        """Return the norms (m, 3) of rows `a` (m, d)."""
        rows = self.linear(a), self.ranks(a), a / self.size
        with np.errstate(over="ignore"):
            squares = [((r @ self.precision) * r).sum(axis=1) for r in rows[:2]]
            squares.append((rows[2] ** 2).sum(axis=1))
        norms = np.log1p(np.clip(np.nan_to_num(np.stack(squares, axis=1)), 0, None))
        return norms if self.scale is None else np.clip(self.scale(norms), -_MAX_NORM, _MAX_NORM)


def _nonzero(scale: Array) -> Array:
    """Return scales with 1 in place of 0."""
    return np.where(scale > 0, scale, 1.0)


def _normal_quantiles(column: Array) -> tuple[Array, Array]:
    """Return the distinct values of a column and the normal quantiles of their mean ranks."""
    values, counts = np.unique(column, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    return values, ndtri(middle / len(column))


def _curve(column: Array, levels: Array) -> PchipInterpolator:
    """Return the smooth increasing curve from values of a column to normal quantiles."""
    values, first = np.unique(np.quantile(column, levels), return_index=True)
    if len(values) < 2:
        values, first = np.array([values[0], values[0] + 1]), np.array([0, len(levels) - 1])
    return PchipInterpolator(values, ndtri(levels[first]))


def _evaluate(curve: PchipInterpolator, values: Array) -> tuple[Array, Array]:
    """Return heights and slopes of a curve that is linear beyond its ends."""
    within = np.clip(values, curve.x[0], curve.x[-1])
    slopes = np.maximum(curve(within, 1), _MIN_SLOPE)
    return curve(within) + (values - within) * slopes, slopes
