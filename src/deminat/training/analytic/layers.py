"""Fully connected layers with the chain rule written out.

It holds only for layers that nobody replaced, wrapped or froze: see `are_plain` and `trains`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

__all__ = [
    "RELU",
    "SILU",
    "Activation",
    "AnalyticLoss",
    "Layers",
    "are_plain",
    "names_of",
    "trains",
]


@dataclass(frozen=True)
class Activation:
    """An activation, and the map from the slopes of its output to those of its input."""

    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor], Tensor]


RELU = Activation(
    torch.relu, lambda slopes, inputs: torch.ops.aten.threshold_backward(slopes, inputs, 0)
)
SILU = Activation(silu, torch.ops.aten.silu_backward)


def are_plain(
    layers: nn.Sequential, activation: type[nn.Module], linear: type[nn.Module] = nn.Linear
) -> bool:
    """Tell whether these are linear layers with an activation between any two of them."""
    kinds = [type(layer) for layer in layers]
    return set(kinds[::2]) == {linear} and set(kinds[1::2]) <= {activation}


def names_of(prefix: str, layers: nn.Sequential) -> list[str]:
    """Return the names of the parameters of layers that a module has as `prefix`."""
    return [f"{prefix}.{i}.{part}" for i in range(0, len(layers), 2) for part in ("weight", "bias")]


def trains(module: nn.Module, names: list[str]) -> bool:
    """Tell whether the named parameters are trained, and no others."""
    return sorted(names) == sorted(n for n, w in module.named_parameters() if w.requires_grad)


@dataclass(frozen=True)
class AnalyticLoss:
    """A loss whose gradients are known already."""

    loss: float
    weights: list[nn.Parameter]
    grads: list[Tensor]

    def item(self) -> float:
        """Return the loss."""
        return self.loss

    def backward(self) -> None:
        """Store the gradients in the weights."""
        for weight, grad in zip(self.weights, self.grads, strict=True):
            weight.grad = grad


class Layers:
    """A fully connected network that stores its last pass for the gradients."""

    def __init__(self, layers: nn.Sequential, activation: Activation):
        self.weights = list(layers.parameters())
        flat = [w.detach() for w in self.weights]  # the same memory, without a graph
        self.pairs = list(zip(flat[::2], flat[1::2], strict=True))  # weight and bias of each layer
        self.activation = activation

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the output (n, k') of inputs (n, k)."""
        self.seen, self.inputs = [inputs], []  # by each layer, by each activation
        for weight, bias in self.pairs[:-1]:
            self.inputs.append(torch.addmm(bias, self.seen[-1], weight.T))
            self.seen.append(self.activation.forward(self.inputs[-1]))
        weight, bias = self.pairs[-1]
        return torch.addmm(bias, self.seen[-1], weight.T)

    def gradients(self, slopes: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the gradient of each weight, and the slopes (n, h) of the first layer's output.

        Args:
            slopes: (n, k') of the loss by the output of the last pass.
        """
        grads: list[Tensor] = []
        for i in reversed(range(len(self.seen))):
            grads = [slopes.T @ self.seen[i], slopes.sum(dim=0), *grads]
            if i > 0:
                slopes = self.activation.backward(slopes @ self.pairs[i][0], self.inputs[i - 1])
        return grads, slopes
