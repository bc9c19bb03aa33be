"""What all libraries ask for: the test of some columns given others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inference import independence_test
from ..results import IndependenceResult

__all__ = ["columns_result", "missing"]


def columns_result(x: Any, y: Any, z: NDArray[Any] | None, seed: int) -> IndependenceResult:
    """Return the test of x and y given z; without columns in z, the exact one.

    Rows are taken as independent: a library passes lagged columns where they are not.

    Args:
        x: (n,) or (n, d).
        y: The same number of rows.
        z: (n, d) what is given.
        seed: Of the test.
    """
    given = None if z is None or not np.shape(z)[1] else z
    return independence_test(x, y, given=given, order=False, seed=seed)


def missing(package: str) -> ImportError:
    """Return the error that a package is not installed."""
    return ImportError(f"{package} is not installed: pip install 'deminat[causal]'")
