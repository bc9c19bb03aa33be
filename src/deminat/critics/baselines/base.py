"""What baselines have in common: left and right factors of a score, and frames of the rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...data.transforms import Array

__all__ = ["Baseline", "BaselineFactory", "Frames", "log_ratio", "whitener"]


@dataclass(frozen=True)
class Frames:
    """Invertible linear maps of both sides, which do not change the information.

    `None` is the identity.

    Args:
        x: (dx, dx).
        y: (dy, dy).
        name: What results append to the name of a baseline in these frames.
    """

    x: Array | None = None
    y: Array | None = None
    name: str = ""

    def of_x(self, x: Array) -> Array:
        """Return rows x (m, dx) in their frame."""
        return x if self.x is None else x @ self.x.T

    def of_y(self, y: Array) -> Array:
        """Return rows y (m, dy) in their frame."""
        return y if self.y is None else y @ self.y.T


class Baseline(Protocol):
    r"""A log ratio in closed form, $\log \sum_k \exp \langle l_k(x), r_k(y) \rangle$.

    The $l_k$ are the left factors, the $r_k$ the right ones.
    """

    @property
    def components(self) -> int:
        """How many terms the sum over k has; with one, it is an inner product."""

    @property
    def frames(self) -> Frames:
        """The frames in which a network sees the rows."""

    @property
    def informative(self) -> bool:
        """Whether cross-entropy is not saturated, so that a network can improve the baseline."""

    @property
    def name(self) -> str:
        """What results call it."""

    def refit(self, x: Array, y: Array) -> "Baseline":
        """Return the same kind of baseline, fitted to other pairs."""

    def left(self, x: Array) -> Array:
        """Return the left factors (m, components * r) of rows x (m, dx)."""

    def right(self, y: Array) -> Array:
        """Return the right factors (m, components * r) of rows y (m, dy)."""


# From x (n, dx), y (n, dy) to fit to, held-out x and y to choose by, and a deadline on the
# monotonic clock or None. Returns None where no baseline is better than a log ratio of zero.
BaselineFactory = Callable[[Array, Array, Array, Array, float | None], Baseline | None]


def log_ratio(left: Array, right: Array, components: int = 1) -> NDArray[np.float64]:
    """Return the log ratio (m,) of pairs from their left and right factors."""
    each = (left * right).reshape(len(left), components, -1).sum(axis=2)
    return np.asarray(np.logaddexp.reduce(each, axis=1))


def whitener(a: Array, flat: float) -> Array:
    """Return W (d, r) with a @ W uncorrelated and of unit variance, for centred rows a (n, d).

    Directions whose variance is at most the share `flat` of the largest are left out.
    """
    values, vectors = np.linalg.eigh(a.T @ a / len(a))
    keep = values > flat * max(values.max(initial=0), 1e-300)
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))
