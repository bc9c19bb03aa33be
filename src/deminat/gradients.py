r"""The loss of a batch with its gradient: by hand where that pays, otherwise automatic.

Automatic differentiation serves any critic and objective, but in a step of a small network its
bookkeeping takes a third of the time. So for the paper's network, and for the separable one of
the default recipe, the gradient of the cross-entropy is written out. With $z$ the log odds of the
wrong answer, $z = \mp(f + \mathrm{prior})$ for joint and unpaired pairs, and $w$ the weight of a
pair, the loss is $\sum w \log(1 + e^z)$ and its slope in $f$ is $\mp w\,\sigma(z)$; the rest is the
chain rule through layers and activations. Where all pairs of a batch are scored by $f = L R^\top$
and $G$ holds the slopes, those of $L$ and $R$ are $G R$ and $G^\top L$.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.functional import silu, softplus

from .critics import MLPCritic, SeparableCritic, StartedCritic, batch_scores
from .objectives import DEMI, Objective, training_loss
from .pairs import Batch
from .training import Descent

__all__ = ["batch_loss"]

_TOLD = 16  # rows of a table whose loss is told: softplus takes longer than any other step

Slopes = Callable[[Tensor], tuple[float, Tensor]]


def batch_loss(
    critic: nn.Module, x: Tensor, y: Tensor, objective: Objective
) -> Callable[[Batch], Descent]:
    """Return the loss of one training, as a function of a batch of rows of x and y."""
    loss = training_loss(objective)

    def automatic(batch: Batch) -> Descent:
        return loss(*batch_scores(critic, x, y, batch))

    if not isinstance(objective, DEMI) or objective.draw:
        return automatic
    bare, columns = _taken_apart(critic)
    if _is_as_built(bare):
        return _ByHand(bare, columns, x, y, objective)
    if _is_separable_as_built(bare):
        tables = _TablesByHand(bare, columns, x, y, objective)
        return lambda batch: tables(batch) if batch.partners is None else automatic(batch)
    return automatic


def _taken_apart(critic: nn.Module) -> tuple[nn.Module, int]:
    """Return the bare critic, and how many of the last columns belong to a start."""
    return (critic.critic, critic.columns) if type(critic) is StartedCritic else (critic, 0)


def _is_as_built(critic: nn.Module) -> TypeGuard[MLPCritic]:
    """Tell an `MLPCritic` of which no layer was exchanged, wrapped or frozen."""
    return (
        type(critic) is MLPCritic
        and _are_plain(critic.layers, nn.ReLU)
        and _trains(critic, _names("layers", critic.layers))
    )


def _split(a: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Return what the bare critic sees and what belongs to the start."""
    a = a.flatten(1)
    seen = a.shape[1] - columns
    return a[:, :seen], a[:, seen:]


def _is_separable_as_built(critic: nn.Module) -> TypeGuard[SeparableCritic]:
    """Tell a `SeparableCritic` of which no layer was exchanged, wrapped or frozen."""
    return (
        type(critic) is SeparableCritic
        and _are_plain(critic.u, nn.SiLU)
        and _are_plain(critic.v, nn.SiLU)
        and _trains(critic, ["offset", *_names("u", critic.u), *_names("v", critic.v)])
    )


def _are_plain(layers: nn.Sequential, activation: type[nn.Module]) -> bool:
    kinds = [type(layer) for layer in layers]
    return set(kinds[::2]) == {nn.Linear} and set(kinds[1::2]) <= {activation}


def _names(prefix: str, layers: nn.Sequential) -> list[str]:
    return [f"{prefix}.{i}.{part}" for i in range(0, len(layers), 2) for part in ("weight", "bias")]


def _trains(critic: nn.Module, names: list[str]) -> bool:
    """Tell whether exactly the named parameters want a gradient."""
    return sorted(names) == sorted(n for n, w in critic.named_parameters() if w.requires_grad)


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


@dataclass(frozen=True)
class _Activation:
    """An activation and its chain rule: from the slopes of its output to those of its input."""

    there: Callable[[Tensor], Tensor]
    back: Callable[[Tensor, Tensor], Tensor]


_RELU = _Activation(torch.relu, lambda slopes, inputs: slopes.mul_(inputs > 0))
_SILU = _Activation(silu, torch.ops.aten.silu_backward)


class _Layers:
    """A fully connected network, whose last pass is remembered until it is pulled back."""

    def __init__(self, layers: nn.Sequential, activation: _Activation):
        self.weights = list(layers.parameters())
        flat = [w.detach() for w in self.weights]  # the same numbers, of which no graph is made
        self.pairs = list(zip(flat[::2], flat[1::2], strict=True))
        self.activation = activation

    def __call__(self, inputs: Tensor) -> Tensor:
        self.seen, self.inputs = [inputs], []  # by each layer, by each activation
        for weight, bias in self.pairs[:-1]:
            self.inputs.append(torch.addmm(bias, self.seen[-1], weight.T))
            self.seen.append(self.activation.there(self.inputs[-1]))
        weight, bias = self.pairs[-1]
        return torch.addmm(bias, self.seen[-1], weight.T)

    def pulled(self, slopes: Tensor) -> list[Tensor]:
        """Return the gradient of each weight, given the slopes of the output."""
        grads: list[Tensor] = []
        for i in reversed(range(len(self.seen))):
            grads = [slopes.T @ self.seen[i], slopes.sum(dim=0), *grads]
            if i > 0:  # the data need no gradient
                slopes = self.activation.back(slopes @ self.pairs[i][0], self.inputs[i - 1])
        return grads


class _ByHand:
    """The cross-entropy of batches under an `MLPCritic`, gradients included."""

    def __init__(self, critic: MLPCritic, columns: int, x: Tensor, y: Tensor, objective: DEMI):
        (self.x, self.x_start), (self.y, self.y_start) = _split(x, columns), _split(y, columns)
        self.layers = _Layers(critic.layers, _RELU)
        self.slopes = cache(lambda joint, product: _slopes(objective, joint, product, x.dtype))

    def __call__(self, batch: Batch) -> Descent:
        x_rows, y_rows = batch.rows()
        inputs = torch.cat([self.x.index_select(0, x_rows), self.y.index_select(0, y_rows)], dim=1)
        scores = self.layers(inputs).squeeze(1)
        if self.x_start.shape[1] > 0:
            left, right = self.x_start.index_select(0, x_rows), self.y_start.index_select(0, y_rows)
            scores += (left * right).sum(dim=1)
        joint = len(batch.joint)
        loss, slopes = self.slopes(joint, len(x_rows) - joint)(scores)
        return _Written(loss, self.layers.weights, self.layers.pulled(slopes.unsqueeze(1)))


class _TablesByHand:
    """The cross-entropy of all pairs of batches under a separable critic, gradients included."""

    def __init__(
        self, critic: SeparableCritic, columns: int, x: Tensor, y: Tensor, objective: DEMI
    ):
        (self.x, self.x_start), (self.y, self.y_start) = _split(x, columns), _split(y, columns)
        self.u, self.v = _Layers(critic.u, _SILU), _Layers(critic.v, _SILU)
        self.offset, self.objective = critic.offset, objective
        self.weights = [self.offset, *self.u.weights, *self.v.weights]

    def __call__(self, batch: Batch) -> Descent:
        rows = batch.joint
        u, v = self.u(self.x.index_select(0, rows)), self.v(self.y.index_select(0, rows))
        rank, ones = u.shape[1] - 1, torch.ones_like(u[:, :1])
        u[:, rank] += self.offset.detach()
        left = torch.cat([u, ones, self.x_start.index_select(0, rows)], dim=1)
        right = torch.cat([v[:, :rank], ones, v[:, rank:], self.y_start.index_select(0, rows)], 1)
        loss, slopes = _table_slopes(left @ right.T, self.objective)
        of_u = slopes @ right[:, : rank + 1]
        of_v = slopes.T @ torch.cat([u[:, :rank], ones], dim=1)
        grads = [of_u[:, rank].sum(), *self.u.pulled(of_u), *self.v.pulled(of_v)]
        return _Written(loss, self.weights, grads)


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


def _table_slopes(table: Tensor, objective: DEMI) -> tuple[float, Tensor]:
    """Return the loss of scores (n, n), joint ones on the diagonal, and its derivative by each.

    The slopes are exact; the loss, which is only told, is that of some of the rows.
    """
    n = len(table)
    wrong = table.add_(objective.prior)
    joint = -wrong.diagonal()  # a copy
    wrong.fill_diagonal_(-torch.inf)
    apart = (1 - objective.alpha) / (n * (n - 1))
    some = softplus(wrong[:_TOLD]).sum() / min(n, _TOLD)
    loss = some * (apart * n) + softplus(joint).mean() * objective.alpha
    slopes = wrong.sigmoid_().mul_(apart)
    slopes.diagonal().copy_(joint.sigmoid_().mul_(-objective.alpha / n))
    return loss.item(), slopes
