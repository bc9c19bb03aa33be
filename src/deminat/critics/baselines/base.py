"""What starts have in common: two halves a pair, and the frames that they look from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...data.transforms import Array

__all__ = ["Baseline", "BaselineFactory", "Frames", "log_ratio"]


@dataclass(frozen=True)
class Frames:
    """Invertible linear maps of both sides, which keep the information; None is the identity.

    Args:
        x: (dx, dx).
        y: (dy, dy).
        name: What results call them.
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
    r"""A log ratio in closed form, $\log \sum_k \exp \langle l_k(x), r_k(y) \rangle$."""

    @property
    def components(self) -> int:
        """How many terms the sum over k has; with one, it is an inner product."""
        ...

    @property
    def frames(self) -> Frames:
        """The frames in which a network had better look at the rows."""
        ...

    @property
    def informative(self) -> bool:
        """Whether cross-entropy can still see what is missing, so that a network may go on."""
        ...

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    def refit(self, x: Array, y: Array) -> "Baseline":
        """Return the same kind of start of other pairs."""
        ...

    def left(self, x: Array) -> Array:
        """Return (m, components * r) of rows x (m, dx)."""
        ...

    def right(self, y: Array) -> Array:
        """Return (m, components * r) of rows y (m, dy)."""
        ...


# From x (n, dx), y (n, dy) to fit, x, y to judge by and a deadline on the monotonic clock, if any;
# None where nothing is better than silence.
BaselineFactory = Callable[[Array, Array, Array, Array, float | None], Baseline | None]


def log_ratio(left: Array, right: Array, components: int = 1) -> NDArray[np.float64]:
    """Return the log ratio (m,) of the halves of pairs."""
    each = (left * right).reshape(len(left), components, -1).sum(axis=2)
    return np.asarray(np.logaddexp.reduce(each, axis=1))
