r"""The loss of a batch with its gradient: by hand where that pays, otherwise automatic.

Automatic differentiation serves any critic, but in a step of a small network its bookkeeping takes
a third of the time. So the networks that come with deminat are differentiated by the chain rule
written out, from the slopes of the loss by each score (`slopes.py`) back to the weights.

Where all pairs of a batch are scored, $n^2$ of them, what belongs to one side is done once a row:
- a separable critic gives $f = L R^\top$, and if $G$ holds the slopes, those of $L$ and $R$ are
  $G R$ and $G^\top L$;
- in one that concatenates, the first layer, a convolution too, is a sum, $A x_i + B y_j$, and its
  slopes, summed over j or i, are those of $A x_i$ and $B y_j$.

Where information is high nearly all slopes of such a table are next to nothing: those that together
change the gradient by no more than rounding does are left out, and few pairs are pulled back.

Where torch may multiply in bfloat16, `torch.set_float32_matmul_precision("medium")`, the hidden
layers of a table are kept in it: on processors made for it that takes less than half of the time.
Weights, scores and what becomes of them stay in float32.
"""

from collections.abc import Callable
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from .critics import (
    ConvCritic,
    MLPCritic,
    SeparableCritic,
    StartedCritic,
    all_pairs,
    batch_scores,
    parted,
)
from .layers import RELU, SILU, Layers, Written, are_plain, names_of, trains
from .objectives import Loss, Objective, training_loss
from .pairs import Batch
from .slopes import ListSlopes, Slopes, automatic, list_slopes, table_slopes
from .training import Descent

__all__ = ["all_pairs_loss", "batch_loss"]

_CONVOLUTION = "convolution.weight", "convolution.bias"
_BLOCK = 256  # pairs of a table that are left out together
_FEW = 2 / 3  # share of a table up to which picking pairs takes less time than it saves


def batch_loss(
    critic: nn.Module, x: Tensor, y: Tensor, objective: Objective
) -> Callable[[Batch], Descent]:
    """Return the loss of one training, as a function of a batch of rows of x and y."""
    loss = training_loss(objective)
    bare, columns = _taken_apart(critic)
    pairs: Callable[[Batch], Descent] | None = None
    table: Callable[[Tensor, Tensor], Descent] | None = None
    if _is_as_built(bare):
        pairs = _Pairs(bare, columns, x, y, list_slopes(objective, loss))
        table = None if columns else _table(bare, table_slopes(objective, loss))
    elif _is_separable_as_built(bare):
        table = _SeparableTable(bare, columns, table_slopes(objective, loss))
    elif _is_convolutional_as_built(bare) and not columns:
        table = _ConvTable(bare, table_slopes(objective, loss))

    def of_batch(batch: Batch) -> Descent:
        if batch.partners is not None and pairs is not None:
            return pairs(batch)
        if batch.partners is None and table is not None:
            return table(x.index_select(0, batch.joint), y.index_select(0, batch.joint))
        return loss(*batch_scores(critic, x, y, batch))

    return of_batch


def all_pairs_loss(critic: nn.Module, loss: Loss) -> Callable[[Tensor, Tensor], Descent]:
    """Return a loss of all pairs of x (n, ...) and y (n, ...), as a function of both."""
    by_hand = _table(critic, automatic(loss, parted)) if _is_as_built(critic) else None
    return by_hand or (lambda x, y: loss(*all_pairs(critic, x, y)))


def _taken_apart(critic: nn.Module) -> tuple[nn.Module, int]:
    """Return the bare critic, and how many of the last columns belong to a start."""
    return (critic.critic, critic.columns) if type(critic) is StartedCritic else (critic, 0)


def _is_as_built(critic: nn.Module) -> TypeGuard[MLPCritic]:
    """Tell an `MLPCritic` of which no layer was exchanged, wrapped or frozen."""
    return (
        type(critic) is MLPCritic
        and are_plain(critic.layers, nn.ReLU)
        and trains(critic, names_of("layers", critic.layers))
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
        and are_plain(critic.u, nn.SiLU)
        and are_plain(critic.v, nn.SiLU)
        and trains(critic, ["offset", *names_of("u", critic.u), *names_of("v", critic.v)])
    )


def _is_convolutional_as_built(critic: nn.Module) -> TypeGuard[ConvCritic]:
    """Tell a `ConvCritic` of which no layer was exchanged, wrapped or frozen."""
    if type(critic) is not ConvCritic:
        return False
    built, names = critic.convolution, ("padding_mode", "dilation", "groups")
    return (
        type(built) is nn.Conv2d
        and [getattr(built, name) for name in names] == ["zeros", (1, 1), 1]
        and are_plain(critic.layers, nn.ReLU)
        and trains(critic, [*_CONVOLUTION, *names_of("layers", critic.layers)])
    )


class _Pairs:
    """The loss of listed pairs under an `MLPCritic`, gradients included."""

    def __init__(self, critic: MLPCritic, columns: int, x: Tensor, y: Tensor, slopes: ListSlopes):
        (self.x, self.x_start), (self.y, self.y_start) = _split(x, columns), _split(y, columns)
        self.layers, self.slopes = Layers(critic.layers, RELU), slopes

    def __call__(self, batch: Batch) -> Descent:
        x_rows, y_rows = batch.rows()
        inputs = torch.cat([self.x.index_select(0, x_rows), self.y.index_select(0, y_rows)], dim=1)
        scores = self.layers(inputs).squeeze(1)
        if self.x_start.shape[1] > 0:
            left, right = self.x_start.index_select(0, x_rows), self.y_start.index_select(0, y_rows)
            scores += (left * right).sum(dim=1)
        loss, slopes = self.slopes(scores, len(batch.joint), len(batch.anchors))
        grads, _ = self.layers.pulled(slopes.unsqueeze(1))
        return Written(loss, self.layers.weights, grads)


class _Sums:
    """What follows the first layer of all pairs of a batch, a sum of a half of x and one of y.

    Args:
        rest: The layers after the first one and its activation.
        slopes: Those of the loss by each score.
        dtype: Of the weights.
    """

    def __init__(self, rest: nn.Sequential, slopes: Slopes, dtype: torch.dtype):
        self.dtype = _hidden_dtype(dtype)
        self.rest, self.slopes = Layers(rest, RELU, self.dtype), slopes

    def __call__(
        self, left: Tensor, right: Tensor
    ) -> tuple[float, list[Tensor], Tensor, Tensor | None]:
        """Return the loss, the gradient of each weight, the slopes of sums, and of which sums.

        Args:
            left: Halves of x, (n, units).
            right: Halves of y, (n, units).
        """
        n = len(left)
        sums = left.to(self.dtype).unsqueeze(1) + right.to(self.dtype)  # (n, n, units)
        scores = self.rest(sums.relu_().flatten(0, 1)).to(left.dtype).view(n, n)
        loss, slopes = self.slopes(scores)
        rows: Tensor | None = None
        matter = _that_matter(slopes, self.dtype)
        slopes = slopes.reshape(-1, 1).to(self.dtype)
        if len(matter) <= _FEW * n**2:
            self.rest.keep(matter)
            rows, slopes = matter, slopes.index_select(0, matter)
        grads, slopes = self.rest.pulled(slopes)
        slopes = RELU.back(slopes @ self.rest.pairs[0][0], self.rest.seen[0])
        return loss, [grad.to(left.dtype) for grad in grads], slopes, rows


class _ConcatTable:
    """The loss of all pairs of a batch under an `MLPCritic`, gradients included."""

    def __init__(self, critic: MLPCritic, slopes: Slopes):
        self.first = [w.detach() for w in critic.layers[0].parameters()]
        self.sums = _Sums(nn.Sequential(*list(critic.layers)[2:]), slopes, self.first[0].dtype)
        self.weights = list(critic.parameters())

    def __call__(self, x: Tensor, y: Tensor) -> Descent:
        x, y = x.flatten(1), y.flatten(1)
        (weight, bias), n = self.first, len(x)
        of_x, of_y = weight[:, : x.shape[1]], weight[:, x.shape[1] :]
        loss, inner, slopes, rows = self.sums(torch.addmm(bias, x, of_x.T), y @ of_y.T)
        if rows is None:
            by_x, by_y = (slopes.view(n, n, -1).sum(dim=axis).to(x.dtype) for axis in (1, 0))
            outer = [torch.cat([by_x.T @ x, by_y.T @ y], dim=1), by_x.sum(dim=0)]
        else:
            pairs = torch.cat([x.index_select(0, rows // n), y.index_select(0, rows % n)], dim=1)
            outer = [slopes.T @ pairs.to(slopes.dtype), slopes.sum(dim=0)]
        return Written(loss, self.weights, [*(grad.to(x.dtype) for grad in outer), *inner])


class _ConvTable:
    """The loss of all pairs of a batch under a `ConvCritic`, gradients included.

    The convolution, of n images a side, is differentiated automatically: it takes next to no time.
    """

    def __init__(self, critic: ConvCritic, slopes: Slopes):
        self.convolution = critic.convolution
        self.sums = _Sums(critic.layers, slopes, critic.convolution.weight.dtype)
        self.weights = list(critic.parameters())

    def __call__(self, x: Tensor, y: Tensor) -> Descent:
        own, n = list(self.convolution.parameters()), len(x)
        weight, bias = own
        of_x, of_y = weight[:, : x.shape[1]], weight[:, x.shape[1] :]
        halves = self._convolved(x, of_x, bias), self._convolved(y, of_y)
        loss, inner, slopes, rows = self.sums(*(half.detach() for half in halves))
        if rows is None:
            sides = [slopes.view(n, n, -1).sum(dim=axis).to(x.dtype) for axis in (1, 0)]
        else:
            sides = [
                torch.zeros_like(half).index_add_(0, of, slopes.to(x.dtype))
                for half, of in zip(halves, (rows // n, rows % n), strict=True)
            ]
        return Written(loss, self.weights, [*torch.autograd.grad(halves, own, sides), *inner])

    def _convolved(self, images: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return what the convolution makes of one side, (n, units)."""
        stride, padding = self.convolution.stride, self.convolution.padding
        return conv2d(images, weight, bias, stride, padding).flatten(1)


def _hidden_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return what hidden layers of a table are computed in."""
    medium = torch.get_float32_matmul_precision() == "medium"
    return torch.bfloat16 if medium and dtype == torch.float32 else dtype


def _that_matter(slopes: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the places, in the flattened table (n, n), of slopes that rounding would not drown.

    All others together are less than rounding to `dtype` takes off the largest. They are left out
    by the block: products of ever new shapes are slow.
    """
    sizes, places = slopes.abs().flatten().sort()  # what is not a number comes last: all matter
    drowned = int((sizes.cumsum(0) < sizes[-1] * torch.finfo(dtype).eps).sum())
    matter = torch.ones_like(places, dtype=torch.bool)
    matter[places[: drowned // _BLOCK * _BLOCK]] = False
    return matter.nonzero().squeeze(1)


class _SeparableTable:
    """The loss of all pairs of a batch under a separable critic, gradients included."""

    def __init__(self, critic: SeparableCritic, columns: int, slopes: Slopes):
        self.u, self.v = Layers(critic.u, SILU), Layers(critic.v, SILU)
        self.offset, self.columns, self.slopes = critic.offset, columns, slopes
        self.weights = [self.offset, *self.u.weights, *self.v.weights]

    def __call__(self, x: Tensor, y: Tensor) -> Descent:
        (x, x_start), (y, y_start) = _split(x, self.columns), _split(y, self.columns)
        u, v = self.u(x), self.v(y)
        rank, ones = u.shape[1] - 1, torch.ones_like(u[:, :1])
        u[:, rank] += self.offset.detach()
        left = torch.cat([u, ones, x_start], dim=1)
        right = torch.cat([v[:, :rank], ones, v[:, rank:], y_start], dim=1)
        loss, slopes = self.slopes(left @ right.T)
        of_u = slopes @ right[:, : rank + 1]
        of_v = slopes.T @ torch.cat([u[:, :rank], ones], dim=1)
        (u_grads, _), (v_grads, _) = self.u.pulled(of_u), self.v.pulled(of_v)
        return Written(loss, self.weights, [of_u[:, rank].sum(), *u_grads, *v_grads])


def _table(critic: MLPCritic, slopes: Slopes) -> _ConcatTable | None:
    """Return the loss of all pairs; without a hidden layer nothing is done once a row."""
    return _ConcatTable(critic, slopes) if len(critic.layers) > 1 else None
