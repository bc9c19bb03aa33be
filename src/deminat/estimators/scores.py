"""Scores of held-out pairs -> a result: the estimate, its standard error, its warnings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..objectives import Objective
from ..records import Diagnostics
from ..results import Caution, MIResult

__all__ = [
    "Correction",
    "Scores",
    "estimate_warnings",
    "held_out_loss",
    "result_from_pointwise",
    "result_from_scores",
    "standard_error",
]

_UNDERPOWERED = 500
_GROUPS = 50
_TAG = 0x6209  # rows may have been drawn by a stream of a plain seed
_NONE = Diagnostics()


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


@dataclass(frozen=True)
class Correction:
    """What is added to a mean of scores.

    Args:
        nats: In all.
        of_pairs: (n,) by pair, up to a constant, if it has noise of its own.
    """

    nats: float = 0.0
    of_pairs: NDArray[np.float64] | None = None


def result_from_scores(
    objective: Objective,
    scores: Scores,
    warnings: tuple[Caution, ...] = (),
    diagnostics: Diagnostics = _NONE,
    correction: Correction = Correction(),  # noqa: B008 - it is frozen
    units: NDArray[np.int64] | None = None,
) -> MIResult:
    """Return the result that `objective` reads off the scores.

    Args:
        objective: Whose estimate to take.
        scores: Of held-out pairs.
        warnings: Of the sample.
        diagnostics: Of the training.
        correction: Added to the estimate.
        units: (n,) rows of one unit count as one for the standard error.
    """
    n = len(scores.joint)
    mi = float(objective.estimate(*scores.tensors())) + correction.nats
    noisy = scores
    if correction.of_pairs is not None:
        noisy = replace(scores, joint=scores.joint + correction.of_pairs)
    normaliser, normaliser_error = _normaliser(scores.product)
    return MIResult(
        mi=mi,
        standard_error=standard_error(objective, noisy, units),
        n=n,
        method=objective.name,
        pointwise=scores.joint - scores.joint.mean() + mi,
        warnings=(*warnings, *estimate_warnings(mi, n), *_saturated(objective, mi, scores)),
        diagnostics=replace(
            diagnostics,
            correction=correction.nats,
            held_out_loss=held_out_loss(objective, scores),
            normaliser=normaliser,
            normaliser_error=normaliser_error,
        ),
    )


def _normaliser(product: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of exp f over scores (n, k), and its standard error.

    Scores of a critic that diverged are too large for a number: then neither is finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.exp(product).mean(axis=1)
        return float(means.mean()), float(means.std() / len(means) ** 0.5)


def result_from_pointwise(
    pointwise: NDArray[np.float64],
    method: str,
    warnings: tuple[Caution, ...] = (),
    diagnostics: Diagnostics = _NONE,
) -> MIResult:
    """Return the result of a method whose estimate is the mean of (n,) pointwise values."""
    mi, n = float(pointwise.mean()), len(pointwise)
    error = float(pointwise.std(ddof=1) / n**0.5)
    found = *warnings, *estimate_warnings(mi, n)
    return MIResult(mi, error, n, method, pointwise, found, diagnostics)


def held_out_loss(objective: Objective, scores: Scores) -> float:
    """Return the loss of an objective on scores that were not trained on."""
    return float(objective.loss(*scores.tensors()))


def standard_error(
    objective: Objective, scores: Scores, units: NDArray[np.int64] | None = None
) -> float:
    """Return the jackknife standard error of an estimate over random groups of units, or pairs.

    It serves every objective, also those whose estimate is not a mean.
    """
    joint, product = scores.tensors()
    units = np.arange(len(joint)) if units is None else units
    count = int(units.max()) + 1
    parts = min(_GROUPS, count)
    part_of = np.empty(count, dtype=np.int64)
    part_of[np.random.default_rng(_TAG).permutation(count)] = np.arange(count) * parts // count
    kept = (torch.from_numpy(part_of[units] != part) for part in range(parts))
    left_out = [float(objective.estimate(joint[keep], product[keep])) for keep in kept]
    return float((parts - 1) ** 0.5 * np.std(left_out))


def _saturated(objective: Objective, mi: float, scores: Scores) -> Iterator[Caution]:
    """Warn where an estimate is near the largest value that its objective can take."""
    k = scores.product.shape[1]
    most = objective.ceiling(k)
    if not mi < most - 1:
        message = f"{objective.name} cannot exceed {most:.2f} nats with {k} partners"
        yield Caution("saturated", message, "Use method='demi', which has no ceiling")


def estimate_warnings(mi: float, n: int) -> Iterator[Caution]:
    """Warn of what depends on the estimate `mi` and on the number n of pairs alone."""
    if n < _UNDERPOWERED:
        message = f"{n} pairs are few: weak dependence will be missed"
        yield Caution("underpowered", message, f"Collect {_UNDERPOWERED} or more")
    if mi < 0:
        yield Caution(
            "negative",
            "the estimate is below 0, which mutual information never is: the true value is "
            "smaller than the error of the method",
            "Read it as near 0; the p-value says whether x and y are dependent",
        )
