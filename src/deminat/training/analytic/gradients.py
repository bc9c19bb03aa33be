r"""The loss of a batch with its gradient: by hand where that pays, otherwise automatic.

Automatic differentiation serves any critic, but in a step of a small network its bookkeeping takes
up to a third of the time. So two networks of the default recipe are differentiated by the chain
rule written out, from the slopes of the loss by each score (`loss_gradients`) back to the weights:

- listed pairs of an `MLPCritic`;
- all pairs of a batch of a `SeparableCritic`: $f = L R^\top$, and if $G$ holds the slopes, those of
  $L$ and $R$ are $G R$ and $G^\top L$.

docs/measured.md has what each gains.
"""

from collections.abc import Callable
from typing import TypeGuard

import torch
from torch import nn

from ...critics.composed import BaselineCritic
from ...critics.features import Features, Inputs, as_features, select_rows
from ...critics.networks import MLPCritic, SeparableConvCritic, SeparableCritic
from ...critics.scoring import batch_scores
from ...data.pairs import Batch
from ...objectives import Objective
from ..loop import Descent
from .layers import RELU, SILU, AnalyticLoss, Layers, are_plain, names_of, trains
from .loss_gradients import (
    ListSlopes,
    TableSlopes,
    conditional_slopes,
    list_slopes,
    table_slopes,
)

__all__ = ["batch_loss", "conditional_loss"]


def batch_loss(
    critic: nn.Module, x: Inputs, y: Inputs, objective: Objective
) -> Callable[[Batch], Descent]:
    """Return the loss of one training, as a function of a batch of rows of x and y."""
    loss = objective.training_loss()
    bare = critic.critic if isinstance(critic, BaselineCritic) else critic
    by_hand: _Pairs | _Table | None = None
    if _is_mlp_as_built(bare):
        by_hand = _Pairs(bare, as_features(x), as_features(y), list_slopes(objective, loss))
    elif _is_separable_as_built(bare):
        by_hand = _Table(bare, x, y, table_slopes(objective, loss))

    def of_batch(batch: Batch) -> Descent:
        if by_hand is not None and by_hand.all_pairs == (batch.partners is None):
            return by_hand(batch)
        return loss(*batch_scores(critic, x, y, batch))

    return of_batch


def conditional_loss(
    critic: SeparableCritic | SeparableConvCritic, x: Features, y: Features
) -> Callable[[Batch], Descent]:
    """Return minus the conditional likelihood of batches, each row with all others as partners."""
    if _is_separable_as_built(critic):
        return _Table(critic, x, y, conditional_slopes)
    whole = BaselineCritic(critic)

    def of_batch(batch: Batch) -> Descent:
        left, right = whole.left(x[batch.joint]), whole.right(y[batch.joint])
        table = left @ right.T
        own = table.diagonal()
        return (table.logsumexp(dim=0) + table.logsumexp(dim=1) - 2 * own).mean() / 2

    return of_batch


def _is_mlp_as_built(critic: object) -> TypeGuard[MLPCritic]:
    """Tell an `MLPCritic` of which no layer was exchanged, wrapped or frozen."""
    return (
        type(critic) is MLPCritic
        and are_plain(critic.layers, nn.ReLU)
        and trains(critic, names_of("layers", critic.layers))
    )


def _is_separable_as_built(critic: object) -> TypeGuard[SeparableCritic]:
    """Tell a `SeparableCritic` of which no layer was exchanged, wrapped or frozen."""
    return (
        type(critic) is SeparableCritic
        and are_plain(critic.u, nn.SiLU)
        and are_plain(critic.v, nn.SiLU)
        and trains(critic, ["offset", *names_of("u", critic.u), *names_of("v", critic.v)])
    )


class _Pairs:
    """The loss of listed pairs under an `MLPCritic`, gradients included."""

    all_pairs = False

    def __init__(self, critic: MLPCritic, x: Features, y: Features, slopes: ListSlopes):
        self.x, self.y = x.seen.flatten(1), y.seen.flatten(1)
        self.x_baseline, self.y_baseline = x.baseline, y.baseline
        self.layers, self.slopes = Layers(critic.layers, RELU), slopes

    def __call__(self, batch: Batch) -> AnalyticLoss:
        x_rows, y_rows = batch.rows()
        inputs = torch.cat([self.x.index_select(0, x_rows), self.y.index_select(0, y_rows)], dim=1)
        scores = self.layers(inputs).squeeze(1)
        if self.x_baseline.shape[1] > 0:
            left = self.x_baseline.index_select(0, x_rows)
            scores += (left * self.y_baseline.index_select(0, y_rows)).sum(dim=1)
        loss, slopes = self.slopes(scores, len(batch.joint), len(batch.anchors))
        grads, _ = self.layers.gradients(slopes.unsqueeze(1))
        return AnalyticLoss(loss, self.layers.weights, grads)


class _Table:
    """The loss of all pairs of a batch under a separable critic, gradients included."""

    all_pairs = True

    def __init__(self, critic: SeparableCritic, x: Inputs, y: Inputs, slopes: TableSlopes):
        self.x, self.y = x, y
        self.u, self.v = Layers(critic.u, SILU), Layers(critic.v, SILU)
        self.offset, self.slopes = critic.offset, slopes
        self.weights = [self.offset, *self.u.weights, *self.v.weights]

    def __call__(self, batch: Batch) -> AnalyticLoss:
        x = as_features(select_rows(self.x, batch.joint))
        y = as_features(select_rows(self.y, batch.joint))
        u, v = self.u(x.seen.flatten(1)), self.v(y.seen.flatten(1))
        rank, ones = u.shape[1] - 1, torch.ones_like(u[:, :1])
        u[:, rank] += self.offset.detach()
        left = torch.cat([u, ones, x.baseline], dim=1)
        right = torch.cat([v[:, :rank], ones, v[:, rank:], y.baseline], dim=1)
        loss, slopes = self.slopes(left @ right.T)
        of_u = slopes @ right[:, : rank + 1]
        of_v = slopes.T @ torch.cat([u[:, :rank], ones], dim=1)
        (u_grads, _), (v_grads, _) = self.u.gradients(of_u), self.v.gradients(of_v)
        return AnalyticLoss(loss, self.weights, [of_u[:, rank].sum(), *u_grads, *v_grads])
