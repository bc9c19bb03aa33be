r"""Losses by their scores: the value, and its slope in each score.

They are written out for the cross-entropy: with $z$ the log odds of the wrong answer, $z = \mp(f +
\mathrm{prior})$ for joint and unpaired pairs, and $w$ the weight of a pair, the loss is $\sum w
\log(1 + e^z)$ and its slope in $f$ is $\mp w\,\sigma(z)$. MINE's are written out, too; those of
other losses are automatic.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TypeGuard

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ...critics.scoring import split_table
from ...objectives import DEMI, MINE, Loss, Objective

__all__ = ["ListSlopes", "Slopes", "automatic", "list_slopes", "table_slopes"]

_TOLD = 16  # rows of a table whose loss is told: softplus takes longer than any other step

Slopes = Callable[[Tensor], tuple[float, Tensor]]  # of scores: a loss, its derivative by each
ListSlopes = Callable[[Tensor, int, int], tuple[float, Tensor]]  # joint ones first; their number


def list_slopes(objective: Objective, loss: Loss) -> ListSlopes:
    """Return the slopes of scores, given how many are joint, and how many rows the others have."""
    if type(objective) is MINE:
        return _mine_slopes(objective)
    if not _is_written_out(objective):
        return lambda scores, joint, anchors: automatic(
            loss, lambda s: (s[:joint], s[joint:].view(anchors, -1))
        )(scores)
    of_sizes = cache(partial(_slopes, objective))
    return lambda scores, joint, anchors: of_sizes(joint, len(scores) - joint, scores.dtype)(scores)


def table_slopes(objective: Objective, loss: Loss) -> Slopes:
    """Return the slopes of scores (n, n), joint ones on the diagonal."""
    if not _is_written_out(objective):
        return automatic(loss, split_table)
    return partial(_cross_entropy_of_table, objective)


def _is_written_out(objective: Objective) -> TypeGuard[DEMI]:
    """Tell whether an objective descends the cross-entropy of all examples."""
    return isinstance(objective, DEMI) and not objective.draw


def automatic(loss: Loss, parts: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Slopes:
    """Return the map from scores to a loss and its derivative by each, whatever the loss."""

    def slopes(scores: Tensor) -> tuple[float, Tensor]:
        scores = scores.detach().requires_grad_()
        value = loss(*parts(scores))
        (slope,) = torch.autograd.grad(value, scores)
        return value.item(), slope

    return slopes


def _slopes(objective: DEMI, joint: int, product: int, dtype: torch.dtype) -> Slopes:
    """Return the map from scores, joint ones first, to the loss and its derivative by each."""
    sign = torch.ones(joint + product, dtype=dtype)
    sign[:joint] = -1
    weight = sign * ((1 - objective.alpha) / product)
    weight[:joint] = objective.alpha / joint
    shift, slope = objective.prior * sign, sign * weight

    def slopes(scores: Tensor) -> tuple[float, Tensor]:
        wrong = torch.addcmul(shift, scores, sign)
        return torch.dot(softplus(wrong), weight).item(), wrong.sigmoid_().mul_(slope)

    return slopes


def _mine_slopes(objective: MINE) -> ListSlopes:
    """Return the slopes of one training by MINE, which remembers the mean of exp f.

    The slope of a joint pair is that of their mean, that of an unpaired one $e^f$ over the
    remembered mean.
    """
    log_average: float | None = None

    def slopes(scores: Tensor, joint: int, anchors: int) -> tuple[float, Tensor]:
        nonlocal log_average
        product = scores[joint:]
        log_mean = product.logsumexp(0).item() - math.log(len(product))
        log_average = _moved(log_average, log_mean, objective.rate)
        loss = log_mean - scores[:joint].mean().item()
        slope = scores.new_full((joint,), -1 / joint)
        return loss, torch.cat([slope, product.sub(log_average + math.log(len(product))).exp_()])

    return slopes


def _moved(log_average: float | None, log_mean: float, rate: float) -> float:
    """Return the log of a moving average after one more value, whose log is given."""
    if log_average is None or rate == 1:
        return log_mean
    old, new = log_average + math.log1p(-rate), log_mean + math.log(rate)
    return max(old, new) + math.log1p(math.exp(-abs(old - new)))


def _cross_entropy_of_table(objective: DEMI, table: Tensor) -> tuple[float, Tensor]:
    """Return the loss of scores (n, n), joint ones on the diagonal, and its derivative by each.

    The slopes are exact; the loss, which is only told, is that of some of the rows.
    """
    n = len(table)
    wrong = table.add_(objective.prior)
    joint = -wrong.diagonal()  # a copy
    wrong.fill_diagonal_(-torch.inf)
    apart = (1 - objective.alpha) / (n * (n - 1))
    some = softplus(wrong[:_TOLD]).sum() / min(n, _TOLD)
    loss = some * (apart * n) + softplus(joint).mean() * objective.alpha
    slopes = wrong.sigmoid_().mul_(apart)
    slopes.diagonal().copy_(joint.sigmoid_().mul_(-objective.alpha / n))
    return loss.item(), slopes
