"""For tigramite: `PCMCI(dataframe, cond_ind_test=DeminatTest())`.

The statistic is not an amount of information: it says how small p-values of parts of the test are
together. Rows must be independent given the lagged columns that tigramite conditions on, as for its
own tests.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..results import IndependenceResult
from .columns import columns_result, missing

try:
    from tigramite.independence_tests.independence_tests_base import CondIndTest
except ImportError:
    CondIndTest = object

__all__ = ["DeminatTest"]


class DeminatTest(CondIndTest):  # type: ignore[misc, valid-type, unused-ignore]
    """A `CondIndTest`.

    Args:
        seed: Of the test.
        options: Of tigramite's base class, such as `mask_type` or `verbosity`.
    """

    def __init__(self, seed: int = 0, **options: Any) -> None:
        if CondIndTest is object:
            raise missing("tigramite")
        self.seed = seed
        self.two_sided = False
        self.residual_based = False
        self._last: tuple[NDArray[Any], IndependenceResult] | None = None
        # tigramite passes the rows on to this kind of significance alone
        super().__init__(seed=seed, significance="shuffle_test", **options)

    @property
    def measure(self) -> str:
        """What tigramite calls the test."""
        return "deminat"

    def get_dependence_measure(
        self, array: NDArray[Any], xyz: NDArray[Any], data_type: Any = None
    ) -> float:
        """Return the statistic of rows `array` (d, n), whose sides `xyz` (d,) tells."""
        return self._result(array, xyz).statistic

    def get_shuffle_significance(
        self,
        array: NDArray[Any],
        xyz: NDArray[Any],
        value: float,
        data_type: Any = None,
        return_null_dist: bool = False,
    ) -> float:
        """Return the p-value of the same rows."""
        return self._result(array, xyz).p_value

    def _result(self, array: NDArray[Any], xyz: NDArray[Any]) -> IndependenceResult:
        """Return the test of rows; the statistic and the p-value are asked for in turn."""
        if self._last is None or self._last[0] is not array:
            x, y, z = (np.asarray(array[xyz == side].T, dtype=np.float64) for side in range(3))
            self._last = array, columns_result(x, y, z, self.seed)
        return self._last[1]
