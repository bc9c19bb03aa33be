r"""Independent components: frames in which the columns of a side tell nothing of each other.

Cubes of Gaussians mixed by a rotation have no Gaussian copula; unmixed they have. FastICA finds the
mixing, but only among frames that make the sample covariance the identity, and with heavy tails
that covariance is noisy: at 8,000 pairs what leaks between two columns is a hundredth, and of a
cube root of a hundredth much is left. So Newton steps follow that are not bound to it. With the
components $s$, a score $\psi$ and $W$ the frame, likelihood is stationary where
$\mathbb E\,\psi(s_i)\,s_j = 0$ for all $i \ne j$. The score is that of a Cauchy density,
$\psi(s) = s / (1 + s^2)$ at median length 1: no outlier moves it. Of both frames, the more
independent one is taken.

References:
    Hyvarinen (1999), Fast and robust fixed-point algorithms for independent component analysis.
    Ablin et al. (2018), Faster independent component analysis by preconditioning with Hessian
        approximations.
"""

import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from ...data.transforms import Array, SmoothRanks
from .base import Frames

__all__ = ["independent_frames"]

_FEW = 4_000  # rows that suffice for a first guess, and to tell which of two is better
_MANY = 16_000  # rows beyond which more would not tell much more
_STEPS = 10
_LARGEST = 0.3  # share of one component that a step may move into another
_CLOSE = 1e-3
_LEAST_CURVATURE = 0.1


def independent_frames(x: Array, y: Array) -> Frames | None:
    """Return frames in which the columns of each side are independent components, if there are."""
    if max(x.shape[1], y.shape[1]) == 1 or min(_rank(x), _rank(y)) == 0:
        return None
    of_x, of_y = (_independent(a[:_MANY]) for a in (x, y))
    return Frames(of_x, of_y, " of independent components")


def _rank(a: Array) -> int:
    """Return the number of columns if they are linearly independent, otherwise 0."""
    few = a[:_FEW]
    values = np.linalg.svd((few - few.mean(0)) / np.maximum(few.std(0), 1e-300), compute_uv=False)
    return a.shape[1] if values[-1] > 1e-6 * values[0] else 0


def _independent(a: Array) -> Array | None:
    if a.shape[1] == 1:
        return None
    model = FastICA(whiten="unit-variance", max_iter=60, tol=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = np.asarray(model.fit(a[:_FEW]).components_)
    return max((first, _freed(a, first)), key=lambda frame: _independence(a[:_FEW], frame))


def _freed(a: Array, frame: Array) -> Array:
    """Return the frame that some Newton steps lead to, decorrelation no longer wanted."""
    centred = a - np.median(a, axis=0)
    for _ in range(_STEPS):
        s = centred @ frame.T
        lengths = np.median(np.abs(s), axis=0)
        if not lengths.all():
            return frame
        s, frame = s / lengths, frame / lengths[:, None]
        step = _newton_step(s)
        largest = np.abs(step).max()
        if not np.isfinite(largest):
            return frame
        frame = frame - min(1.0, _LARGEST / largest) * step @ frame
        if largest < _CLOSE:
            break
    return frame


def _newton_step(s: Array) -> Array:
    """Return the step (d, d) for components s (n, d), as if they were independent already.

    Then the Hessian falls apart into blocks of two by two, one for each pair of components.
    """
    square = s * s
    score, slope = s / (1 + square), (1 - square) / (1 + square) ** 2
    own = (score * s).mean(axis=0)  # would be 1 if the density were right
    gradient = (score / own).T @ s / len(s)
    np.fill_diagonal(gradient, 0)  # the lengths are known already
    there = np.outer(slope.mean(axis=0) / own, square.mean(axis=0))
    back = there.T
    lowest = (there + back - np.sqrt((there - back) ** 2 + 4)) / 2  # eigenvalue of each block
    shift = np.maximum(_LEAST_CURVATURE - lowest, 0)
    there, back = there + shift, back + shift
    return np.asarray((back * gradient - gradient.T) / (there * back - 1))


def _independence(a: Array, frame: Array) -> float:
    """Return the mean log likelihood of rows whose components are independent, but for a constant.

    Each component has the density that its ranks give it.
    """
    s = a @ frame.T
    ranks = SmoothRanks.fit(s)
    z = ranks(s)
    each = ranks.log_slope(s) - (z * z).sum(axis=1) / 2
    return float(each.mean() + np.linalg.slogdet(frame)[1])
