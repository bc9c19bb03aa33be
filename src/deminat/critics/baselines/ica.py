r"""Independent components: frames in which the columns of a side are independent of each other.

Cubes of Gaussians that were mixed by a rotation have no Gaussian copula; unmixed they have one.
FastICA finds the mixing, but only among frames that make the sample covariance the identity. With
heavy tails that covariance is noisy: at 8,000 pairs about a hundredth of one column is left in
another, and the cube root of a hundredth is large. So Newton steps follow without that constraint.
For components $s$, a score function $\psi$ and the frame $W$, the likelihood is stationary where
$\mathbb E\,\psi(s_i)\,s_j = 0$ for all $i \ne j$. The score function is that of a Cauchy density,
$\psi(s) = s / (1 + s^2)$ at median absolute value 1, which is robust to outliers. Of both frames,
the more independent one is used.

References:
    Hyvarinen (1999), Fast and robust fixed-point algorithms for independent component analysis.
    Ablin et al. (2018), Faster independent component analysis by preconditioning with Hessian
        approximations.
"""

import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from ...data.transforms import Array, SmoothRanks, Standardize
from .base import Frames

__all__ = ["independent_frames"]

_WIDEST = 100  # columns of a side; of more, too few rows tell the components
_FEW = 4_000  # rows for FastICA, and to compare two frames
_MANY = 16_000  # rows for Newton steps
_STEPS = 10
_LARGEST = 0.3  # share of one component that a step may add to another
_CLOSE = 1e-3  # largest entry of a step after which no more follow
_LEAST_CURVATURE = 0.1


def independent_frames(x: Array, y: Array) -> Frames | None:
    """Return frames in which the columns of each side are independent components.

    It is None if both sides have one column, if one has very many, or if columns are collinear.
    """
    widest = max(x.shape[1], y.shape[1])
    if widest == 1 or widest > _WIDEST or _is_collinear(x) or _is_collinear(y):
        return None
    x_frame, y_frame = (_independent(a[:_MANY]) for a in (x, y))
    return Frames(x_frame, y_frame, " of independent components")


def _is_collinear(a: Array) -> bool:
    """Tell whether the columns are linearly dependent."""
    few = Standardize.fit(a[:_FEW])(a[:_FEW])
    return bool(np.linalg.matrix_rank(few, rtol=1e-6) < a.shape[1])


def _independent(a: Array) -> Array | None:
    if a.shape[1] == 1:
        return None
    model = FastICA(whiten="unit-variance", max_iter=60, tol=1e-3, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        first = np.asarray(model.fit(a[:_FEW]).components_)
    return max((first, _refined(a, first)), key=lambda frame: _independence(a[:_FEW], frame))


def _refined(a: Array, frame: Array) -> Array:
    """Return the frame after some Newton steps, which need not decorrelate the columns."""
    centred = a - np.median(a, axis=0)
    for _ in range(_STEPS):
        s = centred @ frame.T
        sizes = np.median(np.abs(s), axis=0)
        if not sizes.all():
            return frame
        s, frame = s / sizes, frame / sizes[:, None]
        step = _newton_step(s)
        largest = np.abs(step).max()
        if not np.isfinite(largest):
            return frame
        frame = frame - min(1.0, _LARGEST / largest) * step @ frame
        if largest < _CLOSE:
            break
    return frame


def _newton_step(s: Array) -> Array:
    """Return the Newton step (d, d) for components s (n, d).

    The Hessian is that of independent components: one block of two by two for each pair of them.
    """
    square = s * s
    score, slope = s / (1 + square), (1 - square) / (1 + square) ** 2
    own = (score * s).mean(axis=0)  # 1 if the density is right
    gradient = (score / own).T @ s / len(s)
    np.fill_diagonal(gradient, 0)  # sizes are fixed by the median
    there = np.outer(slope.mean(axis=0) / own, square.mean(axis=0))
    back = there.T
    lowest = (there + back - np.sqrt((there - back) ** 2 + 4)) / 2  # eigenvalue of each block
    shift = np.maximum(_LEAST_CURVATURE - lowest, 0)
    there, back = there + shift, back + shift
    return np.asarray((back * gradient - gradient.T) / (there * back - 1))


def _independence(a: Array, frame: Array) -> float:
    """Return the mean log likelihood of rows with independent components, up to a constant.

    The density of each component is estimated from its ranks.
    """
    s = a @ frame.T
    ranks = SmoothRanks.fit(s)
    z = ranks(s)
    each = ranks.log_slope(s) - (z * z).sum(axis=1) / 2
    return float(each.mean() + np.linalg.slogdet(frame)[1])
