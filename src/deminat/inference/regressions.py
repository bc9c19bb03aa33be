r"""Held-out residuals of ridge regressions, in closed form for every penalty.

Let $F$ (n, m) be centred features of z, and $F = U W V^\top$ with orthonormal $U$. Ridge regression
with penalty $\lambda$ predicts $H y$, where $H = 1/n + U \operatorname{diag}(w / (w + \lambda))
U^\top$ and $w$ are the squares of $W$ over n. One decomposition serves all penalties and targets. A
row that had no part in the fit has the residual $r_i / (1 - H_{ii})$ with $r = y - H y$. Of a unit
of several rows g, such as a group, it is $(1 - H_{gg})^{-1} r_g$. The smallest mean square of these
chooses the features and the penalty of each target.

References:
    Allen (1974), The relationship between variable selection and data augmentation and a method
    for prediction (PRESS).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = ["Ridge", "Units", "kernel_ridge", "residuals", "smooth_ridge"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_PENALTIES = np.logspace(-5, 2, 11)
_RANK = 1e-9  # smallest variance of a direction, as a share of the largest
_LEAST = 0.05  # of 1 - H, below which a row determines its own prediction
_DAMPING = 1e-3  # the same of the block of a unit of several rows
_FREQUENCIES = 8  # of cosines of a column
_COSINES = 40  # of all columns, for each frequency
_CROSSED = 10  # columns up to which products of two of them are taken
_QUADRATIC, _CUBIC, _PRODUCT, _LINEAR = 0.7, 0.5, 0.7, 0.3  # scales: smaller is penalised more


@dataclass(frozen=True)
class Units:
    """Rows that are left out together, (units, rows of each), by the number of rows."""

    of_one: Places
    of_more: tuple[Places, ...]

    @classmethod
    def of(cls, codes: Places) -> Self:
        """Return the units of rows by their codes 0, 1, ... (n,)."""
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
        first = np.cumsum(sizes) - sizes
        found = {
            int(size): order[first[sizes == size][:, None] + np.arange(size)]
            for size in np.unique(sizes)
        }
        alone = found.pop(1, np.empty((0, 1), dtype=np.int64))
        return cls(alone[:, 0], tuple(found.values()))


@dataclass(frozen=True)
class Ridge:
    """Ridge regressions on the same features.

    Args:
        basis: (n, 1 + m) orthonormal columns, of which the first is constant.
        squares: (n, 1 + m) of these columns.
        variances: (m,) of the features along the others.
    """

    basis: Array
    squares: Array
    variances: Array

    @classmethod
    def on(cls, features: Array) -> Self:
        """Return regressions on features (n, p); features of larger variance are penalised less."""
        n = len(features)
        centred = features - features.mean(axis=0)
        variances, directions = np.linalg.eigh(centred.T @ centred / n)
        kept = variances > _RANK * variances.max(initial=0.0)
        variances, directions = variances[kept], directions[:, kept]
        basis = centred @ (directions / np.sqrt(variances * n))
        basis = np.column_stack([np.full(n, n**-0.5), basis])
        return cls(basis, np.square(basis), variances)

    def coefficients(self, of: Array) -> Array:
        """Return the coefficients (1 + m, k) of targets (n, k) without a penalty."""
        return np.asarray(self.basis.T @ of)

    def residuals(self, of: Array, coefficients: Array, penalty: float, units: Units) -> Array:
        """Return held-out residuals of targets (n, k) with such coefficients."""
        shrunk = np.concatenate([[1.0], self.variances / (self.variances + penalty)])
        left = of - self.basis @ (shrunk[:, None] * coefficients)
        own = np.maximum(1 - self.squares @ shrunk, _LEAST)[:, None]
        if not units.of_more:
            return np.asarray(left / own)
        left[units.of_one] /= own[units.of_one]
        for rows in units.of_more:
            left[rows] = _left_out(self.basis[rows], shrunk, left[rows])
        return np.asarray(left)


def _left_out(basis: Array, shrunk: Array, left: Array) -> Array:
    """Return held-out residuals (g, s, k) of units of s rows, with their basis (g, s, 1 + m)."""
    kept, across = 1 + _DAMPING, basis.swapaxes(1, 2)
    if basis.shape[1] <= basis.shape[2]:
        own = kept * np.eye(basis.shape[1]) - (basis * shrunk) @ across
        return np.asarray(np.linalg.solve(own, left))
    own = kept * np.diag(1 / shrunk) - across @ basis  # the same by Woodbury, for large units
    return np.asarray((left + basis @ np.linalg.solve(own, across @ left)) / kept)


def residuals(of: Array, ridges: Sequence[Ridge], units: Units, smoothness: float = 1.0) -> Array:
    """Return the held-out residuals of targets (n, k), each under its best regression.

    Args:
        of: Targets.
        ridges: On several sets of features.
        units: Rows that are left out together.
        smoothness: Factor on the chosen penalties; below 1, bias is smaller than is best for
            prediction.
    """
    chosen: list[tuple[Ridge, float]] = [(ridges[0], 0.0)] * of.shape[1]
    least, best = np.full(of.shape[1], np.inf), np.zeros_like(of)
    for ridge in ridges:
        coefficients = ridge.coefficients(of)
        for penalty in _PENALTIES:
            left = ridge.residuals(of, coefficients, penalty, units)
            errors = np.square(left).mean(axis=0)
            for j in np.flatnonzero(errors < least).tolist():
                least[j], best[:, j], chosen[j] = errors[j], left[:, j], (ridge, penalty)
    if smoothness == 1:
        return best
    for j, (ridge, penalty) in enumerate(chosen):
        column = of[:, [j]]
        coefficients = ridge.coefficients(column)
        best[:, [j]] = ridge.residuals(column, coefficients, smoothness * penalty, units)
    return best


def smooth_ridge(numbers: Array, indicators: Array) -> Ridge:
    """Return regressions on smooth functions of each column, and on products of two columns.

    Args:
        numbers: (n, d) normal scores.
        indicators: (n, p) of labels, standardised.
    """
    d, u = numbers.shape[1], ndtr(numbers)
    parts = [numbers, indicators]
    frequencies = min(_FREQUENCIES, _COSINES // max(d, 1))
    if frequencies:
        parts += [_QUADRATIC * (numbers**2 - 1), _CUBIC * (numbers**3 - 3 * numbers)]
    parts += [np.cos(np.pi * j * u) * (np.sqrt(2) / j) for j in range(2, frequencies + 1)]
    columns = np.hstack([numbers, indicators])
    if 1 < columns.shape[1] <= _CROSSED:
        i, j = np.triu_indices(columns.shape[1], 1)
        parts.append(_PRODUCT * columns[:, i] * columns[:, j])
    return Ridge.on(np.hstack(parts))


def kernel_ridge(columns: Array, width: float, centres: Places) -> Ridge:
    """Return regressions on Gaussian kernels around some rows, and on the columns themselves.

    Args:
        columns: (n, d) of unit variance.
        width: Of the kernels, in units of the root of d.
        centres: (k,) the numbers of these rows.
    """
    squares, at = np.square(columns).sum(axis=1), columns[centres]
    distances = squares[:, None] + squares[centres] - 2 * columns @ at.T
    kernels = np.exp(-np.maximum(distances, 0) / (2 * columns.shape[1] * width**2))
    return Ridge.on(np.hstack([kernels, _LINEAR * columns]))
