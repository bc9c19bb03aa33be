"""The recipe of the paper: one fit to training pairs, estimates on held-out pairs, rows of them."""

import time
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray

from ...data.sample import as_sample
from ...errors import DataError, TrainingError
from ...estimators.flows import GM
from ...estimators.neural import Estimator
from ...estimators.scores import result_from_scores
from ...objectives import Objective
from ...results import MIResult
from ...runtime.process import multiplies_bfloat16
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import report_progress

__all__ = [
    "check_bfloat16",
    "check_study",
    "fit_once",
    "held_out_results",
    "precision_key",
    "result_rows",
    "unchecked",
]

Trained = TypeVar("Trained", Estimator, GM)
Pairs = tuple[NDArray[Any], NDArray[Any]]

_DEFAULT = "float32"
_PRECISIONS = {_DEFAULT: "highest", "bfloat16": "medium"}  # of matrix products, with torch's names


def check_study(scale: float, precision: str = _DEFAULT) -> None:
    """Refuse a scale outside (0, 1], and an unknown precision."""
    if not 0 < scale <= 1:
        raise DataError(f"scale must be above 0 and at most 1, got {scale:g}")
    if precision not in _PRECISIONS:
        raise DataError(f"precision must be {' or '.join(_PRECISIONS)}")


def check_bfloat16(precision: str) -> None:
    """Refuse bfloat16 on a processor that cannot multiply in it."""
    if precision == "bfloat16" and not multiplies_bfloat16():
        raise DataError("this processor cannot multiply in bfloat16: leave --precision out")


def precision_key(precision: str) -> Cell:
    """Return the part of a cell that names its precision; nothing for the default."""
    return {} if precision == _DEFAULT else {"precision": precision}


def fit_once(estimator: Trained, cell: Cell, train: Pairs) -> Trained:
    """Fit to training pairs in the precision of a cell, without restarts: the paper has none."""
    precision = cell.get("precision", _DEFAULT)
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


def held_out_results(
    fitted: Estimator, objectives: Sequence[Objective], held_out: Pairs, k: int
) -> list[MIResult]:
    """Return the estimate of each objective on held-out pairs with k unpaired partners each."""
    scores = fitted.scorer_.scores(as_sample(*held_out), k, fitted.seed)
    return [result_from_scores(objective, scores) for objective in objectives]


def result_rows(cell: Cell, results: Sequence[MIResult], start: float) -> list[Row]:
    """Return a row for each result of a cell that began at `start` by the performance counter."""
    seconds = round(time.perf_counter() - start, 2)
    return [
        {
            **cell,
            "method": result.method,
            "estimate": result.mi,
            **({"error": cell["truth"] - result.mi} if "truth" in cell else {}),
            "standard_error": result.standard_error,
            "seconds": seconds,
        }
        for result in results
    ]


def unchecked(row: Cell) -> str:
    """Return a note on images that were not checked."""
    return "" if row["check"] else ", which need not be the published ones"
