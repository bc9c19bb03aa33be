"""One step down: AdamW, the length of a gradient, the moving average of weights."""

import math

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

__all__ = ["AdamW", "clip", "move"]


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


@torch.no_grad()
def move(averaged: nn.Module, module: nn.Module, decay: float) -> None:
    """Move the moving average towards the current weights; buffers are copied."""
    for mean, weight in zip(averaged.parameters(), module.parameters(), strict=True):
        mean.lerp_(weight, 1 - decay)
    for old, new in zip(averaged.buffers(), module.buffers(), strict=True):
        old.copy_(new)
