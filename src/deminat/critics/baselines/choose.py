"""Choice of a baseline: by cross-entropy while it is informative, by likelihood where saturated.

Columns with repeated values have no density, so that no mixture is fitted to them. If some values
are frequent, a sum over pairs of columns competes with the copula.
"""

import time
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ...data.transforms import Array, RankToNormal, SmoothRanks, Standardize
from .additive import Additive
from .base import Baseline, log_ratio
from .copula import GaussianCopula, best_of, held_out_loss
from .ica import independent_frames
from .mixture import Mixture, View, mixture_on, views

__all__ = ["choose_baseline"]

_SATURATED = 0.075  # nats of cross-entropy below which it no longer ranks good critics
_FAR = 0.3  # ... above which more components will not reach saturation
_MIN_GAIN = 0.005  # nats by which independent components must be better: they may undo sparsity
_LEAST = 300  # rows below which only a copula is fitted
_FREQUENT = 0.05  # share of the rows that makes a value frequent
_WIDEST = 300  # columns beyond which no sum over pairs of columns is fitted, to save memory
_MORE = (8, 16, 32)
_WORSE = 0.05  # nats of likelihood that may be lost before no more components are added


def choose_baseline(
    x: Array, y: Array, x_held: Array, y_held: Array, deadline: float | None = None
) -> Baseline | None:
    """Return the best baseline for pairs x (n, dx), y (n, dy), chosen by held-out pairs.

    It is None if a log ratio of zero does as well. After the deadline, on the monotonic clock, no
    further candidate is fitted.
    """
    rows = _Rows(x, y, x_held, y_held, deadline)
    copula = GaussianCopula.choose(x, y, x_held, y_held)
    if rows.is_late() or len(x) < _LEAST:
        return copula
    if not (_is_continuous(x) and _is_continuous(y)):
        if x.shape[1] + y.shape[1] > _WIDEST or not _has_frequent_values(x, y):
            return copula
        return best_of(filter(None, [Additive.fit(x, y)]), x_held, y_held, copula)
    frames = independent_frames(x, y)
    if frames is not None:
        independent = GaussianCopula.candidates(x, y, frames)
        copula = best_of(independent, x_held, y_held, copula, _MIN_GAIN)
    mixture, lowest = _best_mixture(views(x, y, frames), rows, rows.loss(copula))
    # If any candidate separates joint pairs from unpaired samples that well, cross-entropy is
    # saturated for all of them. Likelihood, which chose the mixture, is not. The cross-entropy of a
    # wrong copula alone may seem informative.
    if mixture is None or lowest >= _SATURATED:
        return copula
    return _denoised(mixture, rows) if mixture.components == 1 else mixture


@dataclass(frozen=True)
class _Rows:
    """Rows to fit to, held-out rows to choose by, and the deadline."""

    x: Array
    y: Array
    x_held: Array
    y_held: Array
    deadline: float | None

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def loss(self, baseline: Baseline | None) -> float:
        """Return the cross-entropy of a baseline, or of zero, on the held-out rows."""
        return held_out_loss(baseline, self.x_held, self.y_held)

    def mixture(self, view: View, components: int, few: bool = False) -> Mixture | None:
        """Return a mixture; None if it collapses or the deadline has passed."""
        return None if self.is_late() else mixture_on(view, self.x, self.y, components, few)

    def likelihood(self, mixture: Mixture) -> float:
        """Return the conditional likelihood of the held-out rows."""
        return mixture.conditional_likelihood(self.x_held, self.y_held)


def _is_continuous(a: Array) -> bool:
    """Return whether ties are rare. Repeated values have no density, and so no likelihood."""
    return all(len(np.unique(column)) > 0.9 * len(column) for column in a.T)


def _has_frequent_values(x: Array, y: Array) -> bool:
    """Return whether any column has a frequent value. Rounding alone makes none."""
    most = (np.unique(column, return_counts=True)[1].max() for a in (x, y) for column in a.T)
    return any(count > _FREQUENT * len(x) for count in most)


def _best_mixture(
    candidates: list[View], rows: _Rows, lowest: float
) -> tuple[Mixture | None, float]:
    """Return the mixture with the highest conditional likelihood, and the lowest cross-entropy.

    The latter is that of all candidates and of `lowest`. If it is high after a fit to some rows,
    the mixture is not fitted to all.
    """
    best, most = None, -np.inf
    for view, components in product(candidates, (1, 3)):
        found = rows.mixture(view, components, few=True)
        if found and (value := rows.likelihood(found)) > most:
            best, most = found, value
    if best is None:
        return None, lowest
    lowest = min(lowest, rows.loss(best))
    return (best, lowest) if lowest > _FAR else _grown(best, rows, lowest)


def _grown(best: Mixture, rows: _Rows, lowest: float) -> tuple[Mixture, float]:
    """Return the mixture fitted to all rows, with more components while likelihood rises."""
    best = rows.mixture(best.view, best.components) or best
    most, lowest = rows.likelihood(best), min(lowest, rows.loss(best))
    for components in _MORE if best.components > 1 else ():
        found = rows.mixture(best.view, components)
        value = rows.likelihood(found) if found else -np.inf
        if found and value > most:
            best, most, lowest = found, value, min(lowest, rows.loss(found))
        elif value < most - _WORSE:  # a smaller loss may be sampling noise
            break
    return best, lowest


def _denoised(mixture: Mixture, rows: _Rows) -> Baseline:
    """Return a mixture of one component as a Gaussian with denoised correlations."""
    scale = RankToNormal if isinstance(mixture.view.x_scale, SmoothRanks) else Standardize

    def likelihood(baseline: GaussianCopula) -> float:
        return float(log_ratio(baseline.left(rows.x_held), baseline.right(rows.y_held)).mean())

    candidates = GaussianCopula.candidates(rows.x, rows.y, mixture.frames, scale)
    return replace(max(candidates, key=likelihood), informative=False)
