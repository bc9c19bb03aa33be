"""The loss of a batch with its gradient: by hand where that pays, otherwise automatic.

Automatic differentiation serves any critic, but in a step of a small network its bookkeeping takes
a third of the time. So the networks that come with deminat are differentiated by the chain rule
written out, from the slopes of the loss by each score (`slopes.py`) back to the weights.

Those of all pairs of a batch are in `allpairs.py`.
"""

from collections.abc import Callable
from typing import TypeGuard

import torch
from torch import Tensor, nn

from ...critics.composed import BaselineCritic
from ...critics.networks import ConvCritic, MLPCritic, SeparableCritic
from ...critics.scoring import all_pairs, batch_scores, split_table
from ...data.pairs import Batch
from ...objectives import Loss, Objective, training_loss
from ..loop import Descent
from .all_pairs import ConcatTable, ConvTable, SeparableTable, split
from .layers import RELU, Layers, Written, are_plain, names_of, trains
from .loss_gradients import ListSlopes, Slopes, automatic, list_slopes, table_slopes

__all__ = ["all_pairs_loss", "batch_loss"]

_CONVOLUTION = "convolution.weight", "convolution.bias"


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
        table = SeparableTable(bare, columns, table_slopes(objective, loss))
    elif _is_convolutional_as_built(bare) and not columns:
        table = ConvTable(bare, table_slopes(objective, loss))

    def of_batch(batch: Batch) -> Descent:
        if batch.partners is not None and pairs is not None:
            return pairs(batch)
        if batch.partners is None and table is not None:
            return table(x.index_select(0, batch.joint), y.index_select(0, batch.joint))
        return loss(*batch_scores(critic, x, y, batch))

    return of_batch


def all_pairs_loss(critic: nn.Module, loss: Loss) -> Callable[[Tensor, Tensor], Descent]:
    """Return a loss of all pairs of x (n, ...) and y (n, ...), as a function of both."""
    by_hand = _table(critic, automatic(loss, split_table)) if _is_as_built(critic) else None
    return by_hand or (lambda x, y: loss(*all_pairs(critic, x, y)))


def _taken_apart(critic: nn.Module) -> tuple[nn.Module, int]:
    """Return the bare critic, and how many of the last columns belong to a start."""
    return (critic.critic, critic.columns) if type(critic) is BaselineCritic else (critic, 0)


def _is_as_built(critic: nn.Module) -> TypeGuard[MLPCritic]:
    """Tell an `MLPCritic` of which no layer was exchanged, wrapped or frozen."""
    return (
        type(critic) is MLPCritic
        and are_plain(critic.layers, nn.ReLU)
        and trains(critic, names_of("layers", critic.layers))
    )


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
        (self.x, self.x_start), (self.y, self.y_start) = split(x, columns), split(y, columns)
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


def _table(critic: MLPCritic, slopes: Slopes) -> ConcatTable | None:
    """Return the loss of all pairs; without a hidden layer nothing is done once a row."""
    return ConcatTable(critic, slopes) if len(critic.layers) > 1 else None
