"""One step of training: the norm of a gradient, the moving average of weights."""

import copy
import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

__all__ = ["Average", "clip"]


def clip(weights: Iterable[Tensor], largest: float) -> None:
    """Scale the gradient down if its norm is above `largest`."""
    grads = [weight.grad for weight in weights if weight.grad is not None]
    norm = math.sqrt(sum(torch.dot(g, g).item() for g in map(torch.flatten, grads)))
    if norm > largest:
        for grad in grads:
            grad.mul_(largest / norm)


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
