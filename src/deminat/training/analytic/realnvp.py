r"""The likelihood of RealNVP flows with its gradient, written by hand.

A coupling leaves half of the columns, $a$, as they are and moves the others, $b' = e^s b + t$,
where a network of $a$ gives $t$ and $r$, and $s = r / (1 + |r| / 3\log 10)$ is bounded. Couplings
take turns. With $z$ the output and $d$ its columns, $-\log p = \frac12 |z|^2 + \frac d2 \log 2\pi -
\sum s$. If $g$ holds its slopes by $b'$, those by $t$, $r$ and $b$ are $g$,
$(g e^s b - 1)(s/r)^2$ and $g e^s$.

Differentiated automatically, a step takes two to three times as long as its matrix products. The
modules and weights stay zuko's. Flows to which zuko gives another density are left to it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .layers import RELU, AnalyticLoss, Layers, are_plain, names_of, trains

__all__ = ["Density", "likelihood_loss"]

_BOUND = 3 * math.log(10)  # of the logarithm of a scale, in zuko


def likelihood_loss(
    flows: Sequence[nn.Module],
) -> Callable[[Sequence[Tensor]], AnalyticLoss] | None:
    """Return minus the mean log likelihood, summed over flows, of a table (n, columns) for each.

    `None` if a flow is not a RealNVP as zuko builds it.
    """
    if not all(_is_as_built(flow) for flow in flows):
        return None
    densities = [Density(flow) for flow in flows]
    if not all(_agree(*each) for each in zip(densities, flows, strict=True)):
        return None
    weights = [weight for density in densities for weight in density.weights]

    def loss(tables: Sequence[Tensor]) -> AnalyticLoss:
        logs = [density(table) for density, table in zip(densities, tables, strict=True)]
        grads = [grad for density in densities for grad in density.gradients()]
        return AnalyticLoss(-torch.stack(logs).sum(dim=0).mean().item(), weights, grads)

    return loss


class Density:
    """The log density of a RealNVP flow; its last pass is stored for the gradients."""

    def __init__(self, flow: nn.Module):
        self.couplings = [_Coupling(block.hyper) for block in _blocks(flow).values()]
        self.weights = [weight for each in self.couplings for weight in each.layers.weights]

    def __call__(self, table: Tensor) -> Tensor:
        """Return the log density (n,) of rows (n, columns)."""
        halves = [table[:, ::2].contiguous(), table[:, 1::2].contiguous()]
        growth = torch.zeros_like(table[:, 0])
        for i, coupling in enumerate(self.couplings):
            still, moved = i % 2, 1 - i % 2
            halves[moved], log_scale = coupling(halves[still], halves[moved])
            growth += log_scale.sum(dim=1)
        self.halves = halves
        square = sum(half.square().sum(dim=1) for half in halves)
        return growth - (square + table.shape[1] * math.log(2 * math.pi)) / 2

    def gradients(self) -> list[Tensor]:
        """Return the gradient of minus the mean log density by each weight."""
        grads: list[Tensor] = []
        slopes = [half / len(half) for half in self.halves]
        for i, coupling in reversed(list(enumerate(self.couplings))):
            still, moved = i % 2, 1 - i % 2
            found, first, slopes[moved] = coupling.gradients(slopes[moved])
            grads = [*found, *grads]
            if i > 0:
                slopes[still].addmm_(first, coupling.layers.pairs[0][0])
        return grads


class _Coupling:
    """One block of a flow; its last pass is stored for the gradients."""

    def __init__(self, network: nn.Sequential):
        self.layers = Layers(network, RELU)

    def __call__(self, still: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """Return the other columns (n, k) as they are moved, and the logarithm of their scales."""
        output = self.layers(still)
        shift, raw = output[:, ::2], output[:, 1::2]
        self.damping = 1 + raw.abs() / _BOUND
        log_scale = raw / self.damping
        self.scale = log_scale.exp()
        self.scaled = others * self.scale
        return self.scaled + shift, log_scale

    def gradients(self, slopes: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """Return the gradients, the slopes of the first layer's output, and of what was moved.

        Args:
            slopes: (n, k) of minus the mean log density by the moved columns.
        """
        of_raw = (slopes * self.scaled - 1 / len(slopes)) / self.damping.square()
        grads, first = self.layers.gradients(torch.stack([slopes, of_raw], dim=2).flatten(1))
        return grads, first, slopes * self.scale


def _blocks(flow: nn.Module) -> dict[str, Any]:
    """Return the couplings of a flow by their names: modules with a network and a mask."""
    modules = flow.named_modules()
    return {name: m for name, m in modules if hasattr(m, "hyper") and hasattr(m, "mask")}


def _is_as_built(flow: nn.Module) -> bool:
    """Tell whether couplings have plain networks, are all trained, and take turns by column.

    zuko has a linear layer of its own; `_agree` checks that it is linear.
    """
    blocks = _blocks(flow)
    networks = {f"{name}.hyper": block.hyper for name, block in blocks.items()}
    masks = [block.mask for block in blocks.values()]
    return (
        len(blocks) > 0
        and all(are_plain(network, nn.ReLU, type(network[0])) for network in networks.values())
        and trains(flow, [name for each in networks.items() for name in names_of(*each)])
        and all(torch.equal(m, torch.arange(len(m)) % 2 == i % 2) for i, m in enumerate(masks))
    )


@torch.no_grad()
def _agree(density: Density, flow: nn.Module) -> bool:
    """Tell whether a flow has this density, at large values too: versions of zuko may differ."""
    first, last = density.couplings[0].layers.weights[0], density.couplings[0].layers.weights[-1]
    columns = first.shape[1] + len(last) // 2  # still and moved ones
    probe = torch.linspace(-10, 10, 8 * columns, dtype=first.dtype).view(8, columns)
    return torch.allclose(density(probe), flow().log_prob(probe), rtol=1e-4)
