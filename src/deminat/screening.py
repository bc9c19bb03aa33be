r"""Which columns of one side have to do with any column of the other.

A network that sees 25 columns of which 3 matter learns noise from the other 22. So a stage of its
own sees only those that matter: columns made normal by their ranks, z, of which one of the first
three Hermite polynomials, $z$, $z^2 - 1$, $z^3 - 3z$, correlates with one of the other side's. For
independent columns the largest of $9 d_x d_y$ correlations grows like $\sqrt{2\log(9 d_x d_y)/n}$.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .transforms import Array, RankToNormal

__all__ = ["related_columns"]

_BEYOND = 1.0  # standard errors above what chance is expected to reach


def related_columns(x: Array, y: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which columns of x (n, dx) and of y (n, dy) depend on any of the other side."""
    n, (dx, dy) = len(x), (x.shape[1], y.shape[1])
    crossed = np.abs(_polynomials(x).T @ _polynomials(y)) / n
    pairs = crossed.reshape(3, dx, 3, dy).max(axis=(0, 2))
    edge = (math.sqrt(2 * math.log(9 * dx * dy)) + _BEYOND) / math.sqrt(n)
    return pairs.max(axis=1) > edge, pairs.max(axis=0) > edge


def _polynomials(a: Array) -> Array:
    """Return (n, 3 d): Hermite polynomials of the ranks, standardised."""
    z = RankToNormal.fit(a)(a)
    terms = np.hstack([z, z**2 - 1, z**3 - 3 * z])
    terms -= terms.mean(axis=0)
    return np.asarray(terms / np.maximum(terms.std(axis=0), 1e-12))
