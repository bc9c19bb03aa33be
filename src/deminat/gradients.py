r"""The loss of a batch with its gradient: by hand where that pays, otherwise automatic.

Automatic differentiation serves any critic and objective, but in a step of the paper's small
network its bookkeeping takes a third of the time. So for that network under the cross-entropy the
gradient is written out. With $z$ the log odds of the wrong answer, $z = \mp(f + \mathrm{prior})$
for joint and unpaired pairs, and $w$ the weight of a pair, the loss is $\sum w \log(1 + e^z)$ and
its slope in $f$ is $\mp w\,\sigma(z)$; the rest is the chain rule through layers and ReLUs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .critics import MLPCritic, batch_scores
from .objectives import DEMI, Objective, training_loss
from .pairs import Batch
from .training import Descent

__all__ = ["batch_loss"]

Slopes = Callable[[Tensor], tuple[float, Tensor]]


def batch_loss(
    critic: nn.Module, x: Tensor, y: Tensor, objective: Objective
) -> Callable[[Batch], Descent]:
    """Return the loss of one training, as a function of a batch of rows of x and y."""
    if isinstance(objective, DEMI) and not objective.draw and _is_as_built(critic):
        return _ByHand(critic, x, y, objective)
    loss = training_loss(objective)
    return lambda batch: loss(*batch_scores(critic, x, y, batch))


def _is_as_built(critic: nn.Module) -> TypeGuard[MLPCritic]:
    """Tell an `MLPCritic` of which no layer was exchanged, wrapped or frozen."""
    if type(critic) is not MLPCritic:
        return False
    kinds = [type(layer) for layer in critic.layers]
    names = [f"layers.{i}.{part}" for i in range(0, len(kinds), 2) for part in ("weight", "bias")]
    return (
        set(kinds[::2]) == {nn.Linear}
        and set(kinds[1::2]) <= {nn.ReLU}
        and [name for name, w in critic.named_parameters() if w.requires_grad] == names
    )


@dataclass(frozen=True)
class _Written:
    """A loss whose gradients are there already."""

    loss: float
    weights: list[nn.Parameter]
    grads: list[Tensor]

    def item(self) -> float:
        return self.loss

    def backward(self) -> None:
        for weight, grad in zip(self.weights, self.grads, strict=True):
            weight.grad = grad


class _ByHand:
    """The cross-entropy of batches under an `MLPCritic`, gradients included."""

    def __init__(self, critic: MLPCritic, x: Tensor, y: Tensor, objective: DEMI):
        self.x, self.y = x.flatten(1), y.flatten(1)
        self.weights = list(critic.parameters())
        flat = [w.detach() for w in self.weights]  # the same numbers, of which no graph is made
        self.layers = list(zip(flat[::2], flat[1::2], strict=True))
        self.slopes = cache(lambda joint, product: _slopes(objective, joint, product, x.dtype))

    def __call__(self, batch: Batch) -> Descent:
        x_rows, y_rows = batch.rows()
        inputs = torch.cat([self.x.index_select(0, x_rows), self.y.index_select(0, y_rows)], dim=1)
        seen = [inputs]  # by each layer
        for weight, bias in self.layers[:-1]:
            seen.append(torch.addmm(bias, seen[-1], weight.T).relu_())
        weight, bias = self.layers[-1]
        scores = torch.addmm(bias, seen[-1], weight.T)
        joint = len(batch.joint)
        loss, slopes = self.slopes(joint, len(x_rows) - joint)(scores.squeeze(1))
        return _Written(loss, self.weights, self._pulled(slopes.unsqueeze(1), seen))

    def _pulled(self, slopes: Tensor, seen: list[Tensor]) -> list[Tensor]:
        """Return the gradient of each weight, given the slopes (n, 1) of the scores."""
        grads: list[Tensor] = []
        for i in reversed(range(len(seen))):
            grads = [slopes.T @ seen[i], slopes.sum(dim=0), *grads]
            if i > 0:  # the data need no gradient
                slopes = (slopes @ self.layers[i][0]).mul_(seen[i].sign())  # 1 where ReLU let pass
        return grads


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
