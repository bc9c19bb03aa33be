"""An estimator fitted once, by the recipe of the paper, with products of a given precision."""

from typing import Any, TypeVar

import torch
from numpy.typing import NDArray

from ...data.sample import as_sample
from ...errors import DataError, TrainingError
from ...estimators.flows import GM
from ...estimators.neural import Estimator
from ...runtime.process import multiplies_bfloat16
from ...runtime.rowstore import Cell
from ...runtime.sweep import report_progress

__all__ = ["FULL", "check_bfloat16", "check_precision", "fit_once", "precision_key"]

Trained = TypeVar("Trained", Estimator, GM)

FULL = "float32"
_PRECISIONS = {FULL: "highest", "bfloat16": "medium"}  # with torch's names


def check_precision(precision: str) -> None:
    """Refuse a precision that there is not."""
    if precision not in _PRECISIONS:
        raise DataError(f"precision must be {' or '.join(_PRECISIONS)}")


def check_bfloat16(precision: str) -> None:
    """Refuse bfloat16 on a processor that cannot multiply in it."""
    if precision == "bfloat16" and not multiplies_bfloat16():
        raise DataError("this processor cannot multiply in bfloat16: leave --precision out")


def precision_key(precision: str) -> Cell:
    """Return what a cell says of its precision: of the usual one nothing."""
    return {} if precision == FULL else {"precision": precision}


def fit_once(
    estimator: Trained, train: tuple[NDArray[Any], NDArray[Any]], precision: str = FULL
) -> Trained:
    """Fit to training pairs, and refuse what is not the paper's recipe any more.

    Args:
        estimator: What to fit.
        train: Both sides of the pairs.
        precision: Of matrix products in training: `float32`, or `bfloat16` with sums in float32.
    """
    check_bfloat16(precision)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(_PRECISIONS[precision])
    try:
        fitted = estimator.fit_sample(as_sample(*train), report_progress)
    finally:
        torch.set_float32_matmul_precision(before)
    if fitted.history_.restarts:
        raise TrainingError("the loss was not finite; it would have gone on at a lower rate")
    return fitted
