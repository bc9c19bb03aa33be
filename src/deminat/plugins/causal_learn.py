"""For causal-learn: `pc(data, indep_test=register())`.

`register` adds the test to causal-learn's registry under the name "deminat". Every search that
takes `indep_test` by name can then use it. Data are a matrix of numbers; a column of few values is
read as a label.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import columns_result, missing

try:
    from causallearn.utils.cit import NO_SPECIFIED_PARAMETERS_MSG, CIT_Base, register_ci_test
except ImportError:
    CIT_Base = object
    register_ci_test = None

__all__ = ["NAME", "DeminatTest", "register"]

NAME = "deminat"


class DeminatTest(CIT_Base):  # type: ignore[misc, valid-type, unused-ignore]
    """A test of columns x and y of a matrix given other columns.

    Args:
        data: (n, d) numbers.
        seed: Of the test.
        options: Of causal-learn, such as `cache_path`.
    """

    def __init__(self, data: NDArray[Any], seed: int = 0, **options: Any) -> None:
        if register_ci_test is None:
            raise missing("causal-learn")
        super().__init__(data, **options)
        self.check_cache_method_consistent(NAME, f"{NO_SPECIFIED_PARAMETERS_MSG} seed={seed}")
        self.assert_input_data_is_valid()
        self.seed = seed

    def __call__(self, X: Any, Y: Any, condition_set: Any = None) -> float:  # noqa: N803
        """Return the p-value of columns X and Y, numbers or lists of them, given others."""
        x, y = sorted(map(_numbers, (X, Y)))
        given = _numbers(() if condition_set is None else condition_set)
        self.save_to_local_cache()
        key = f"{x};{y}|{given}"
        if key not in self.pvalue_cache:
            rows = self.data.astype(np.float64)
            result = columns_result(rows[:, x], rows[:, y], rows[:, given], self.seed)
            self.pvalue_cache[key] = result.p_value
        return float(self.pvalue_cache[key])


def _numbers(columns: Any) -> list[int]:
    """Return the numbers of one column or of several, in their order."""
    several = columns if isinstance(columns, Iterable) else [columns]
    return sorted({int(column) for column in several})


def register() -> str:
    """Add the test to causal-learn's registry, and return its name there."""
    if register_ci_test is None:
        raise missing("causal-learn")
    register_ci_test(NAME, DeminatTest)
    return NAME
