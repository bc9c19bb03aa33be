r"""Losses by their scores: the value, and its slope in each score.

They are written out for the cross-entropy: with $z$ the log odds of the wrong answer, $z = \mp(f +
\mathrm{prior})$ for joint and unpaired pairs, and $w$ the weight of a pair, the loss is $\sum w
\log(1 + e^z)$ and its slope in $f$ is $\mp w\,\sigma(z)$. Those of other losses are automatic.

Of a table of all pairs, the slopes are exact, but the value of the cross-entropy has the unpaired
scores of the first `LOSS_ROWS` rows only, and all joint ones: it is only reported, and computing
all of it would take longer than any other part of a step.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import TypeGuard

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ...critics.scoring import split_table
from ...objectives import DEMI, Loss, Objective

__all__ = [
    "LOSS_ROWS",
    "ListSlopes",
    "TableSlopes",
    "conditional_slopes",
    "list_slopes",
    "table_slopes",
]

LOSS_ROWS = 16

TableSlopes = Callable[[Tensor], tuple[float, Tensor]]  # of scores: a loss, its slope by each
ListSlopes = Callable[[Tensor, int, int], tuple[float, Tensor]]  # joint ones first; their number


def list_slopes(objective: Objective, loss: Loss) -> ListSlopes:
    """Return the slopes of scores, given how many are joint, and how many rows the others have."""
    if not _is_cross_entropy(objective):
        return lambda scores, joint, anchors: _automatic(
            loss, lambda s: (s[:joint], s[joint:].view(anchors, -1))
        )(scores)
    of_sizes = cache(partial(_slopes, objective))
    return lambda scores, joint, anchors: of_sizes(joint, len(scores) - joint, scores.dtype)(scores)


def table_slopes(objective: Objective, loss: Loss) -> TableSlopes:
    """Return the slopes of scores (n, n), joint ones on the diagonal."""
    if not _is_cross_entropy(objective):
        return _automatic(loss, split_table)
    return partial(_cross_entropy_of_table, objective)


def conditional_slopes(table: Tensor) -> tuple[float, Tensor]:
    """Return minus the mean log odds that a row, and a column, picks its own, and the slopes.

    The mean of both directions is that of InfoNCE, less its constant.
    """
    n = len(table)
    of_rows, of_columns = table.log_softmax(dim=1), table.log_softmax(dim=0)
    loss = -(of_rows.diagonal().mean() + of_columns.diagonal().mean()).item() / 2
    slopes = of_rows.exp_().add_(of_columns.exp_()).div_(2 * n)
    slopes.diagonal().sub_(1 / n)
    return loss, slopes


def _is_cross_entropy(objective: Objective) -> TypeGuard[DEMI]:
    """Tell whether an objective descends the cross-entropy of all examples."""
    return isinstance(objective, DEMI) and not objective.draw


def _automatic(loss: Loss, parts: Callable[[Tensor], tuple[Tensor, Tensor]]) -> TableSlopes:
    """Return the map from scores to a loss and its slope by each, whatever the loss."""

    def slopes(scores: Tensor) -> tuple[float, Tensor]:
        scores = scores.detach().requires_grad_()
        value = loss(*parts(scores))
        (slope,) = torch.autograd.grad(value, scores)
        return value.item(), slope

    return slopes


def _slopes(objective: DEMI, joint: int, product: int, dtype: torch.dtype) -> TableSlopes:
    """Return the map from scores, joint ones first, to the loss and its slope by each."""
    sign = torch.ones(joint + product, dtype=dtype)
    sign[:joint] = -1
    weight = sign * ((1 - objective.alpha) / product)
    weight[:joint] = objective.alpha / joint
    shift, slope = objective.prior * sign, sign * weight

    def slopes(scores: Tensor) -> tuple[float, Tensor]:
        wrong = torch.addcmul(shift, scores, sign)
        return torch.dot(softplus(wrong), weight).item(), wrong.sigmoid_().mul_(slope)

    return slopes


def _cross_entropy_of_table(objective: DEMI, table: Tensor) -> tuple[float, Tensor]:
    """Return the loss of scores (n, n), joint ones on the diagonal, and its slope by each."""
    n = len(table)
    wrong = table.add_(objective.prior)
    joint = -wrong.diagonal()  # a copy
    wrong.fill_diagonal_(-torch.inf)
    apart = (1 - objective.alpha) / (n * (n - 1))
    some = softplus(wrong[:LOSS_ROWS]).sum() / min(n, LOSS_ROWS)
    loss = some * (apart * n) + softplus(joint).mean() * objective.alpha
    slopes = wrong.sigmoid_().mul_(apart)
    slopes.diagonal().copy_(joint.sigmoid_().mul_(-objective.alpha / n))
    return loss.item(), slopes
