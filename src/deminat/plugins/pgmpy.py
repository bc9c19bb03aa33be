"""For pgmpy: `PC(ci_test=DeminatTest(frame)).fit(frame)`.

pgmpy takes any callable of two names, a list of names and a level. This one remembers its answers,
since PC asks for the same ones again. It needs nothing of pgmpy.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from ..results import IndependenceResult
from .columns import columns_result

__all__ = ["DeminatTest"]


class DeminatTest:
    """A test of columns of a frame, by their names.

    Args:
        data: A pandas frame, of numbers, text or categories.
        seed: Of the test.
    """

    def __init__(self, data: Any, seed: int = 0) -> None:
        self.data = data
        self.seed = seed
        self.p_value_: float | None = None
        self.effect_size_: float | None = None
        self._known: dict[tuple[frozenset[Hashable], frozenset[Hashable]], IndependenceResult] = {}

    def __call__(
        self,
        X: Hashable,  # noqa: N803 (pgmpy's names)
        Y: Hashable,  # noqa: N803
        Z: Iterable[Hashable] = (),  # noqa: N803
        significance_level: float = 0.05,
        **_: Any,
    ) -> bool:
        """Tell whether X and Y may be independent given Z: p is at least the level."""
        given = tuple(Z)
        key = frozenset((X, Y)), frozenset(given)
        if key not in self._known:
            z = self.data[list(given)] if given else None
            self._known[key] = columns_result(self.data[X], self.data[Y], z, self.seed)
        found = self._known[key]
        self.p_value_, self.effect_size_ = found.p_value, found.statistic
        return bool(found.p_value >= significance_level)
