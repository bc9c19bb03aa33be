"""One step down: AdamW, the length of a gradient, the moving average of weights.

Weights are listed once a training: to walk through a small module takes as long as to move it.
"""

import copy
import math
from itertools import compress

import torch
from torch import Tensor, nn

__all__ = ["AdamW", "Average", "clip"]


class AdamW:
    """AdamW as torch has it, by the call that its optimizer makes in the end.

    In a step of a small network all that stands around that call takes longer than the call itself.
    """

    def __init__(self, module: nn.Module, weight_decay: float):
        self.weight_decay = weight_decay
        self.weights: list[Tensor] = list(module.parameters())
        self.means, self.squares = ([torch.zeros_like(w) for w in self.weights] for _ in range(2))
        # Of steps, whether or not all weights had a gradient.
        self.count = torch.zeros((), device=self.weights[0].device if self.weights else None)

    def grads(self) -> list[Tensor]:
        """Return the gradients that there are."""
        return [weight.grad for weight in self.weights if weight.grad is not None]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move the weights that have a gradient."""
        moving = [self.weights, self.means, self.squares]
        grads = self.grads()
        if len(grads) < len(self.weights):
            has = [weight.grad is not None for weight in self.weights]
            moving = [list(compress(each, has)) for each in moving]
        weights, means, squares = moving
        self.count += 1
        torch._fused_adamw_(
            weights,
            grads,
            means,
            squares,
            [],
            [self.count] * len(weights),
            lr=rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self.weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


def clip(grads: list[Tensor], largest: float) -> None:
    """Shorten the gradient if it is longer than `largest`."""
    length = math.sqrt(sum(torch.dot(g, g).item() for g in map(torch.flatten, grads)))
    if length > largest:
        for grad in grads:
            grad.mul_(largest / length)


class Average:
    """A copy of a module, whose weights are the moving average of the module's own."""

    def __init__(self, module: nn.Module):
        self.module = copy.deepcopy(module)
        self.means: list[Tensor] = list(self.module.parameters())
        self.weights: list[Tensor] = list(module.parameters())
        buffers = self.module.buffers(), module.buffers()
        self.buffers = list(zip(*buffers, strict=True))

    @torch.no_grad()
    def move(self, decay: float) -> None:
        """Move it towards the current weights; buffers are copied."""
        torch._foreach_lerp_(self.means, self.weights, 1 - decay)
        for old, new in self.buffers:
            old.copy_(new)
