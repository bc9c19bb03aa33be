"""One step of training: AdamW, the norm of a gradient, the moving average of weights.

The class `torch.optim.AdamW` imports torch's compiler when it is first used, which takes each
process 1.5 seconds. Its functional form does not, and gives the same bits.
"""

import copy
import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

__all__ = ["AdamW", "Average", "clip"]


class AdamW:
    """`torch.optim.AdamW(fused=True)`, in its functional form.

    Args:
        module: Whose weights to move.
        weight_decay: Decoupled.
    """

    def __init__(self, module: nn.Module, weight_decay: float):
        self.weight_decay = weight_decay
        self.weights: list[Tensor] = list(module.parameters())
        self.state = [(torch.zeros_like(w), torch.zeros_like(w)) for w in self.weights]
        self.counts = [torch.zeros((), device=w.device) for w in self.weights]

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move the weights that have a gradient."""
        moving = [i for i, weight in enumerate(self.weights) if weight.grad is not None]
        adamw(
            [self.weights[i] for i in moving],
            [self.weights[i].grad for i in moving],  # type: ignore[misc]
            [self.state[i][0] for i in moving],
            [self.state[i][1] for i in moving],
            [],
            [self.counts[i] for i in moving],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )


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
