"""Scores of held-out pairs -> a result: the estimate, its standard error, its diagnostics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..critics.scoring import joint_scores, product_scores
from ..data.units import PAIR_SIZE
from ..objectives import InfoNCE, Objective
from ..results import Caution, MIResult
from ..runtime.process import one_thread

__all__ = [
    "Scores",
    "Tables",
    "estimate_warnings",
    "held_out_loss",
    "result_from_pointwise",
    "result_from_scores",
    "score_pairs",
    "score_row_pairs",
    "standard_error",
]

_UNDERPOWERED = 500
_GROUPS = 50
_TAG = 0x6209  # rows may have been drawn by a stream of a plain seed


@dataclass(frozen=True)
class Scores:
    """Log ratios of pairs that no critic was trained on.

    Args:
        joint: (n,) of the pairs.
        product: (n, k) of each x with k partners that are not its own.
    """

    joint: NDArray[np.float64]
    product: NDArray[np.float64]

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Return joint (n,) and product (n, k) as objectives take them."""
        return torch.from_numpy(self.joint), torch.from_numpy(self.product)


def result_from_scores(
    objective: Objective,
    scores: Scores,
    warnings: tuple[Caution, ...] = (),
    diagnostics: Mapping[str, Any] | None = None,
    optimism: float = 0.0,
    units: NDArray[np.int64] | None = None,
) -> MIResult:
    """Return what `objective` makes of the scores, corrected by an optimism in nats.

    Rows of one unit (n,) count as one for the standard error.
    """
    mi = float(objective.estimate(*scores.tensors())) + optimism
    error = standard_error(objective, scores, units)
    normaliser, normaliser_error = _normaliser(scores.product)
    figures = {
        "correction": optimism,
        "held_out_loss": held_out_loss(objective, scores),
        "normaliser": normaliser,
        "normaliser_error": normaliser_error,
    }
    return MIResult(
        mi=mi,
        standard_error=error,
        n=len(scores.joint),
        method=objective.name,
        pointwise=scores.joint - scores.joint.mean() + mi,
        warnings=warnings
        + estimate_warnings(mi, len(scores.joint))
        + _saturated(objective, mi, scores),
        diagnostics={**figures, **(diagnostics or {})},
    )


def _normaliser(product: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of exp f over scores (n, k), and its standard error.

    Scores of a critic that ran away have none that a number could hold: then they are not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.exp(product).mean(axis=1)
        return float(means.mean()), float(means.std() / len(means) ** 0.5)


def result_from_pointwise(
    pointwise: NDArray[np.float64],
    method: str,
    warnings: tuple[Caution, ...] = (),
    diagnostics: Mapping[str, Any] | None = None,
) -> MIResult:
    """Return the result of a method whose estimate is the mean of (n,) pointwise values."""
    mi, n = float(pointwise.mean()), len(pointwise)
    error = float(pointwise.std(ddof=1) / n**0.5)
    told = warnings + estimate_warnings(mi, n)
    return MIResult(mi, error, n, method, pointwise, told, diagnostics or {})


def held_out_loss(objective: Objective, scores: Scores) -> float:
    """Return the loss of an objective on scores that were not trained on."""
    return float(objective.loss(*scores.tensors()))


def standard_error(
    objective: Objective, scores: Scores, units: NDArray[np.int64] | None = None
) -> float:
    """Return the jackknife standard error of an estimate over random groups of units, or pairs.

    It serves every objective, also those whose estimate is no plain mean.
    """
    n = len(scores.joint)
    joint, product = scores.tensors()
    units = np.arange(n) if units is None else units
    count = int(units.max()) + 1
    parts = min(_GROUPS, count)
    part_of = np.empty(count, dtype=np.int64)
    part_of[np.random.default_rng(_TAG).permutation(count)] = np.arange(count) * parts // count
    groups = [np.flatnonzero(part_of[units] == part) for part in range(parts)]
    keep = torch.ones(n, dtype=torch.bool)
    left_out = []
    for rows in map(torch.from_numpy, groups):
        keep[rows] = False
        left_out.append(float(objective.estimate(joint[keep], product[keep])))
        keep[rows] = True
    return float((len(groups) - 1) ** 0.5 * np.std(left_out))


def _saturated(objective: Objective, mi: float, scores: Scores) -> tuple[Caution, ...]:
    """Say so where InfoNCE is near the largest value that it can take."""
    ceiling = math.log(scores.product.shape[1] + 1)
    if not isinstance(objective, InfoNCE) or mi < ceiling - 1:
        return ()
    message = f"InfoNCE cannot exceed log(k + 1) = {ceiling:.2f} nats here"
    return (Caution("saturated", message, "Use method='demi', which has no ceiling"),)


def estimate_warnings(mi: float, n: int) -> tuple[Caution, ...]:
    """Return what any estimate of `mi` nats from `n` pairs should be read with."""
    found = []
    if n < _UNDERPOWERED:
        found.append(
            Caution(
                "underpowered",
                f"{n} pairs are few: weak dependence will be missed",
                f"Collect {_UNDERPOWERED} or more",
            )
        )
    if mi < 0:
        found.append(
            Caution(
                "negative",
                "the estimate is below 0, which mutual information never is: what there is, is "
                "less than the error of the method",
                "Read it as near 0; whether there is anything at all, a p-value tells",
            )
        )
    return tuple(found)


Tables = NDArray[np.float64]
_AT_ONCE = 1 << 12  # bounds the memory


def score_pairs(critic: nn.Module, x: Tensor, y: Tensor, others: Tensor) -> Scores:
    """Return the scores of pairs and of unpaired partners `others` (n, k), in float64."""
    with one_thread():
        joint, product = joint_scores(critic, x, y), product_scores(critic, x, y, others)
    return Scores(joint.double().numpy(), product.double().numpy())


def score_row_pairs(critic: nn.Module, x: Tensor, y: Tensor, rows: NDArray[np.int64]) -> Tables:
    """Return (draws, couples, 2, 2) scores of each x of a couple with each y, in float64."""
    found = []
    with one_thread():
        for some in torch.split(torch.from_numpy(rows).view(-1, PAIR_SIZE), _AT_ONCE):
            left, right = some.repeat_interleave(PAIR_SIZE, dim=1), some.repeat(1, PAIR_SIZE)
            found.append(joint_scores(critic, x[left.flatten()], y[right.flatten()]))
    scores = torch.cat(found) if rows.size else torch.empty(0)
    return scores.double().numpy().reshape(*rows.shape, PAIR_SIZE)
