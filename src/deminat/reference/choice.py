"""Which start: cross-entropy decides while it can see, likelihood where it is blind."""

import time
from dataclasses import replace
from itertools import product

import numpy as np

from ..transforms import Array, RankToNormal, SmoothRanks, Standardize
from .copula import GaussianCopula, cross_entropy
from .mixture import Mixture, View, independent_frames, mixture_on, views
from .start import Frames, Start, log_ratio

__all__ = ["choose_start"]

_BLIND = 0.075  # nats of cross-entropy below which it no longer tells good critics from better
_FAR = 0.3  # ... above which more components will not get there
_TURN = 0.005  # nats that independent components must gain, since they may undo sparsity
_LEAST = 300  # rows below which nothing but a copula is tried
_MORE = (8, 16, 32)


def choose_start(
    x: Array, y: Array, x_held: Array, y_held: Array, deadline: float | None = None
) -> Start | None:
    """Return the start that suits pairs x (n, dx), y (n, dy), judged by rows held out.

    After the deadline, on the monotonic clock, nothing more is tried.
    """
    copula = GaussianCopula.choose(x, y, x_held, y_held)
    if _is_late(deadline) or len(x) < _LEAST or not (_is_continuous(x) and _is_continuous(y)):
        return copula
    turned = independent_frames(x, y)
    if turned is not None:
        copula = _turned(copula, turned, x, y, x_held, y_held)
    blind = copula is not None and _loss(copula, x_held, y_held) < _BLIND
    mixture = _best_mixture(views(x, y, turned), x, y, x_held, y_held, blind, deadline)
    if mixture is None or (mixture.cross_entropy(x_held, y_held) > _BLIND and not blind):
        return copula
    if mixture.components == 1:
        return _best_gaussian(mixture, x, y, x_held, y_held)
    return mixture


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


def _loss(start: Start, x: Array, y: Array) -> float:
    return cross_entropy(start.left(x), start.right(y), start.components)


def _is_continuous(a: Array) -> bool:
    """Tell whether ties are rare: an atom has no density, and so no likelihood."""
    return all(len(np.unique(column)) > 0.9 * len(column) for column in a.T)


def _turned(
    copula: GaussianCopula | None, frames: Frames, x: Array, y: Array, x_held: Array, y_held: Array
) -> GaussianCopula | None:
    """Return the copula of independent components where it is clearly better."""
    least = np.log(2) if copula is None else _loss(copula, x_held, y_held)
    for candidate in GaussianCopula.candidates(x, y, frames):
        if (loss := _loss(candidate, x_held, y_held)) < least - _TURN:
            copula, least = candidate, loss + _TURN
    return copula


def _best_mixture(
    seen: list[View],
    x: Array,
    y: Array,
    x_held: Array,
    y_held: Array,
    blind: bool,
    deadline: float | None,
) -> Mixture | None:
    """Return the mixture with the best conditional likelihood of held-out rows."""
    best, most = None, -np.inf
    for view, components in product(seen, (1, 3)):
        found = None if _is_late(deadline) else mixture_on(view, x, y, components, few=True)
        if found and (value := found.conditional_likelihood(x_held, y_held)) > most:
            best, most = found, value
    if best is None or (not blind and best.cross_entropy(x_held, y_held) > _FAR):
        return best
    return _grown(best, x, y, x_held, y_held, deadline)


def _grown(
    best: Mixture, x: Array, y: Array, x_held: Array, y_held: Array, deadline: float | None
) -> Mixture:
    """Return the mixture on all rows, with more components as long as they help."""
    best = mixture_on(best.view, x, y, best.components) or best
    most = best.conditional_likelihood(x_held, y_held)
    for components in _MORE if best.components > 1 else ():
        found = None if _is_late(deadline) else mixture_on(best.view, x, y, components)
        if found and (value := found.conditional_likelihood(x_held, y_held)) > most:
            best, most = found, value
        elif components > 2 * best.components:  # one disappointment may be bad luck, two are not
            break
    return best


def _best_gaussian(mixture: Mixture, x: Array, y: Array, x_held: Array, y_held: Array) -> Start:
    """Return the Gaussian that one component is, without the noise of its correlations."""
    scale = RankToNormal if isinstance(mixture.view.x_scale, SmoothRanks) else Standardize

    def likelihood(start: GaussianCopula) -> float:
        return float(log_ratio(start.left(x_held), start.right(y_held)).mean())

    candidates = GaussianCopula.candidates(x, y, mixture.frames, scale)
    return replace(max(candidates, key=likelihood), sighted=False)
