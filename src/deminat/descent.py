"""One step down: AdamW, the length of a gradient, the moving average of weights.

Weights are listed once a training: to walk through a small module takes as long as to move it.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.optim.swa_utils import get_ema_multi_avg_fn

__all__ = ["AdamW", "Average", "clip"]


class AdamW:
    """AdamW as torch has it, without the bookkeeping of an optimizer around the fused call.

    In a step of a small network that bookkeeping takes longer than the call itself.
    """

    def __init__(self, module: nn.Module, weight_decay: float):
        self.weight_decay = weight_decay
        self.state = [  # the weight, the mean of its gradient, of its square, the steps taken
            (w, torch.zeros_like(w), torch.zeros_like(w), torch.zeros((), device=w.device))
            for w in module.parameters()
        ]

    def grads(self) -> list[Tensor]:
        """Return the gradients that there are."""
        return [weight.grad for weight, *_ in self.state if weight.grad is not None]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for weight, *_ in self.state:
            weight.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move the weights that have a gradient."""
        moving = [(w.grad, w, *rest) for w, *rest in self.state if w.grad is not None]
        grads, weights, means, squares, steps = map(list, zip(*moving, strict=True))
        adamw(
            weights,
            grads,
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )


def clip(grads: list[Tensor], largest: float) -> None:
    """Shorten the gradient if it is longer than `largest`."""
    length = math.sqrt(sum(float(torch.dot(g.flatten(), g.flatten())) for g in grads))
    if length > largest:
        for grad in grads:
            grad.mul_(largest / length)


class Average:
    """A copy of a module, whose weights are the moving average of the module's own."""

    def __init__(self, module: nn.Module):
        self.module = copy.deepcopy(module)
        self.means, self.weights = list(self.module.parameters()), list(module.parameters())
        buffers = self.module.buffers(), module.buffers()
        self.buffers = list(zip(*buffers, strict=True))

    @torch.no_grad()
    def move(self, decay: float) -> None:
        """Move it towards the current weights; buffers are copied."""
        get_ema_multi_avg_fn(decay)(self.means, self.weights, 0)  # type: ignore[no-untyped-call]
        for old, new in self.buffers:
            old.copy_(new)
