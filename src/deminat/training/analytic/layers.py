"""Fully connected layers with the chain rule written out.

What is written by hand may serve only layers that are as they were built: see `are_plain` and
`trains`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

__all__ = ["RELU", "SILU", "Activation", "Layers", "Written", "are_plain", "names_of", "trains"]


def are_plain(
    layers: nn.Sequential, activation: type[nn.Module], linear: type[nn.Module] = nn.Linear
) -> bool:
    """Tell linear layers with one activation between any two of them."""
    kinds = [type(layer) for layer in layers]
    return set(kinds[::2]) == {linear} and set(kinds[1::2]) <= {activation}


def names_of(prefix: str, layers: nn.Sequential) -> list[str]:
    """Return the names of the parameters of layers in a module that calls them `prefix`."""
    return [f"{prefix}.{i}.{part}" for i in range(0, len(layers), 2) for part in ("weight", "bias")]


def trains(module: nn.Module, names: list[str]) -> bool:
    """Tell whether exactly the named parameters want a gradient."""
    return sorted(names) == sorted(n for n, w in module.named_parameters() if w.requires_grad)


@dataclass(frozen=True)
class Written:
    """A loss whose gradients are there already."""

    loss: float
    weights: list[nn.Parameter]
    grads: list[Tensor]

    def item(self) -> float:
        """Return the loss."""
        return self.loss

    def backward(self) -> None:
        """Leave the gradients in the weights."""
        for weight, grad in zip(self.weights, self.grads, strict=True):
            weight.grad = grad


@dataclass(frozen=True)
class Activation:
    """An activation and its chain rule: from the slopes of its output to those of its input."""

    there: Callable[[Tensor], Tensor]
    back: Callable[[Tensor, Tensor], Tensor]


RELU = Activation(
    torch.relu, lambda slopes, inputs: torch.ops.aten.threshold_backward(slopes, inputs, 0)
)
SILU = Activation(silu, torch.ops.aten.silu_backward)


class Layers:
    """A fully connected network, whose last pass is remembered until it is pulled back.

    Args:
        layers: The network.
        activation: Between its layers.
        dtype: To compute in, where that is not the one of the weights.
    """

    def __init__(
        self, layers: nn.Sequential, activation: Activation, dtype: torch.dtype | None = None
    ):
        self.weights = list(layers.parameters())
        flat = [w.detach() for w in self.weights]  # the same numbers, of which no graph is made
        self.own = list(zip(flat[::2], flat[1::2], strict=True))
        self.pairs, self.dtype = self.own, dtype
        self.activation = activation

    def __call__(self, inputs: Tensor, first: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return the output (n, k') of inputs (n, k).

        Args:
            inputs: To the first layer.
            first: Weight and bias of the first layer instead of its own.
        """
        self.pairs = [first, *self.own[1:]] if first else self.own
        if self.dtype is not None:
            self.pairs = [(w.to(self.dtype), b.to(self.dtype)) for w, b in self.pairs]
        self.seen, self.inputs = [inputs], []  # by each layer, by each activation
        for weight, bias in self.pairs[:-1]:
            self.inputs.append(torch.addmm(bias, self.seen[-1], weight.T))
            self.seen.append(self.activation.there(self.inputs[-1]))
        weight, bias = self.pairs[-1]
        return torch.addmm(bias, self.seen[-1], weight.T)

    def pulled(self, slopes: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the gradient of each weight, and the slopes of the first layer's output.

        Args:
            slopes: Of the output of the last layer.
        """
        grads: list[Tensor] = []
        for i in reversed(range(len(self.seen))):
            grads = [slopes.T @ self.seen[i], slopes.sum(dim=0), *grads]
            if i > 0:
                slopes = self.activation.back(slopes @ self.pairs[i][0], self.inputs[i - 1])
        return grads, slopes

    def keep(self, rows: Tensor) -> None:
        """Forget the other rows of the last pass."""
        self.seen = [each.index_select(0, rows) for each in self.seen]
        self.inputs = [each.index_select(0, rows) for each in self.inputs]
