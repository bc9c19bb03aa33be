"""Which start: cross-entropy decides while it can see, likelihood where it is blind.

Where values are repeated, columns have no density, and no mixture is tried; where some are
frequent, a sum over columns competes with the copula.
"""

import time
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ...data.transforms import Array, RankToNormal, SmoothRanks, Standardize
from .additive import Additive
from .base import Baseline, Frames, log_ratio
from .copula import GaussianCopula, cross_entropy
from .ica import independent_frames
from .mixture import Mixture, View, mixture_on, views

__all__ = ["choose_baseline"]

_BLIND = 0.075  # nats of cross-entropy below which it no longer tells good critics from better
_FAR = 0.3  # ... above which more components will not get there
_TURN = 0.005  # nats that independent components must gain, since they may undo sparsity
_LEAST = 300  # rows below which nothing but a copula is tried
_ATOM = 0.05  # share of the rows that makes a value frequent
_WIDEST = 300  # columns beyond which no sum over columns is tried: functions of all fill memory
_MORE = (8, 16, 32)
_WORSE = 0.05  # nats of likelihood that more components may lose before no more are tried


def choose_baseline(
    x: Array, y: Array, x_held: Array, y_held: Array, deadline: float | None = None
) -> Baseline | None:
    """Return the start that suits pairs x (n, dx), y (n, dy), judged by rows held out.

    After the deadline, on the monotonic clock, nothing more is tried.
    """
    rows = _Rows(x, y, x_held, y_held, deadline)
    copula = GaussianCopula.choose(x, y, x_held, y_held)
    if rows.is_late() or len(x) < _LEAST:
        return copula
    if not (_is_continuous(x) and _is_continuous(y)):
        few = x.shape[1] + y.shape[1] <= _WIDEST
        return _summed(copula, rows) if few and (_has_atoms(x) or _has_atoms(y)) else copula
    turned = independent_frames(x, y)
    if turned is not None:
        copula = _turned(copula, turned, rows)
    enough = np.log(2) if copula is None else rows.loss(copula)
    mixture, lowest = _best_mixture(views(x, y, turned), rows, enough)
    # If anything tells joint pairs from unpaired ones that well, cross-entropy is saturated for all
    # candidates; likelihood, by which the mixture was chosen, is not. A wrong copula alone may look
    # informative.
    if mixture is None or lowest >= _BLIND:
        return copula
    return _denoised(mixture, rows) if mixture.components == 1 else mixture


@dataclass(frozen=True)
class _Rows:
    """Rows to fit to, rows to judge by, and how long that may take."""

    x: Array
    y: Array
    x_held: Array
    y_held: Array
    deadline: float | None

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def loss(self, start: Baseline) -> float:
        """Return the cross-entropy of a start on the held-out rows."""
        left, right = start.left(self.x_held), start.right(self.y_held)
        return cross_entropy(left, right, start.components)

    def mixture(self, view: View, components: int, few: bool = False) -> Mixture | None:
        """Return a mixture, unless it collapses or it is late."""
        return None if self.is_late() else mixture_on(view, self.x, self.y, components, few)

    def likelihood(self, mixture: Mixture) -> float:
        """Return the conditional likelihood of the held-out rows."""
        return mixture.conditional_likelihood(self.x_held, self.y_held)


def _is_continuous(a: Array) -> bool:
    """Tell whether ties are rare: an atom has no density, and so no likelihood."""
    return all(len(np.unique(column)) > 0.9 * len(column) for column in a.T)


def _has_atoms(a: Array) -> bool:
    """Tell whether a value is frequent: rounding alone leaves columns to copula and networks."""
    most = (np.unique(column, return_counts=True)[1].max() for column in a.T)
    return any(count > _ATOM * len(a) for count in most)


def _summed(copula: GaussianCopula | None, rows: _Rows) -> Baseline | None:
    """Return the sum over columns where it is better."""
    enough = np.log(2) if copula is None else rows.loss(copula)
    found = Additive.fit(rows.x, rows.y)
    return found if found is not None and rows.loss(found) < enough else copula


def _turned(copula: GaussianCopula | None, frames: Frames, rows: _Rows) -> GaussianCopula | None:
    """Return the copula of independent components where it is clearly better."""
    enough = (np.log(2) if copula is None else rows.loss(copula)) - _TURN
    for candidate in GaussianCopula.candidates(rows.x, rows.y, frames):
        if (loss := rows.loss(candidate)) < enough:
            copula, enough = candidate, loss
    return copula


def _best_mixture(seen: list[View], rows: _Rows, lowest: float) -> tuple[Mixture | None, float]:
    """Return the mixture with the best conditional likelihood of held-out rows.

    Beside it stands the lowest cross-entropy of all, the given one included. Where that is still
    high after a rough fit, the mixture stays a rough one.
    """
    best, most = None, -np.inf
    for view, components in product(seen, (1, 3)):
        found = rows.mixture(view, components, few=True)
        if found and (value := rows.likelihood(found)) > most:
            best, most = found, value
    if best is None:
        return None, lowest
    lowest = min(lowest, rows.loss(best))
    return (best, lowest) if lowest > _FAR else _grown(best, rows, lowest)


def _grown(best: Mixture, rows: _Rows, lowest: float) -> tuple[Mixture, float]:
    """Return the mixture on all rows, with more components as long as they help."""
    best = rows.mixture(best.view, best.components) or best
    most, lowest = rows.likelihood(best), min(lowest, rows.loss(best))
    for components in _MORE if best.components > 1 else ():
        found = rows.mixture(best.view, components)
        value = rows.likelihood(found) if found else -np.inf
        if found and value > most:
            best, most, lowest = found, value, min(lowest, rows.loss(found))
        elif value < most - _WORSE:  # otherwise it may be bad luck
            break
    return best, lowest


def _denoised(mixture: Mixture, rows: _Rows) -> Baseline:
    """Return the Gaussian that one component is, without the noise of its correlations."""
    scale = RankToNormal if isinstance(mixture.view.x_scale, SmoothRanks) else Standardize

    def likelihood(start: GaussianCopula) -> float:
        return float(log_ratio(start.left(rows.x_held), start.right(rows.y_held)).mean())

    candidates = GaussianCopula.candidates(rows.x, rows.y, mixture.frames, scale)
    return replace(max(candidates, key=likelihood), informative=False)
