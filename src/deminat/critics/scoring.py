"""Scores of pairs by any critic: of a batch, of held-out pairs, of all pairs of a batch."""

from collections.abc import Iterator
from typing import Protocol, TypeGuard

import torch
from torch import Tensor, nn

from ..data.pairs import Batch
from .composed import (
    BaselineCritic,
    ClosedForm,
    MeanCritic,
    NormalisedCritic,
    StagedCritic,
    SumCritic,
)
from .features import Features, Inputs, select_rows

__all__ = [
    "all_pairs",
    "batch_scores",
    "is_separable",
    "joint_scores",
    "product_scores",
    "score_table",
    "split_table",
]

_TAKES_FEATURES = (
    *(BaselineCritic, ClosedForm, MeanCritic),
    *(NormalisedCritic, StagedCritic, SumCritic),
)
_TABLE = 8  # rows a partner up to which all scores are cheaper than the few that are wanted
_ROWS_AT_ONCE = 1 << 12  # of a forward pass without gradient: bounds its memory
_TERMS_AT_ONCE = 1 << 20  # of sums of exponentials: as many as stay in the cache


class _Separable(Protocol):
    def left(self, x: Inputs) -> Tensor: ...
    def right(self, y: Inputs) -> Tensor: ...


def is_separable(critic: object) -> TypeGuard[_Separable]:
    """Tell whether a critic scores pairs by the inner product of two embeddings."""
    if isinstance(critic, BaselineCritic):
        return is_separable(critic.critic)
    return all(callable(getattr(type(critic), side, None)) for side in ("left", "right"))


def batch_scores(critic: nn.Module, x: Inputs, y: Inputs, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the scores of a batch of rows of x and y: joint (b,) and product (c, k)."""
    if batch.partners is None:
        return all_pairs(critic, x[batch.joint], y[batch.joint])
    k, b = batch.partners.shape[1], len(batch.joint)
    x_rows, y_rows = batch.rows()
    scores = _scored(critic, select_rows(x, x_rows), select_rows(y, y_rows))
    joint, product = torch.split(scores, [b, len(scores) - b])  # one node of the graph, not two
    return joint, product.view(-1, k)


@torch.no_grad()
def joint_scores(critic: nn.Module, x: Inputs, y: Inputs) -> Tensor:
    """Return the scores (n,) of pairs, without gradient, in tiles."""
    return torch.cat([_scored(critic, x[rows], y[rows]) for rows in _tiles(len(x))])


@torch.no_grad()
def product_scores(critic: nn.Module, x: Inputs, y: Inputs, partners: Tensor) -> Tensor:
    """Return the scores (n, k) of each x with k other rows of y, without gradient, in tiles."""
    if not is_separable(critic):
        return torch.stack([joint_scores(critic, x, y[rows]) for rows in partners.T], dim=1)
    u = torch.cat([critic.left(_as_accepted(critic, x[rows])) for rows in _tiles(len(x))])
    v = torch.cat([critic.right(_as_accepted(critic, y[rows])) for rows in _tiles(len(y))])
    if len(x) < _TABLE * partners.shape[1]:
        tiles = _tiles(len(x))
        return torch.cat([(u[rows] @ v.T).gather(1, partners[rows]) for rows in tiles])
    return torch.stack([(u * v[rows]).sum(dim=1) for rows in partners.T], dim=1)


def all_pairs(critic: nn.Module, x: Inputs, y: Inputs) -> tuple[Tensor, Tensor]:
    """Return the n joint scores and the (n, n - 1) others of a batch."""
    n = len(x)
    if is_separable(critic):
        left, right = critic.left(_as_accepted(critic, x)), critic.right(_as_accepted(critic, y))
        table = left @ right.T
    else:
        rows = torch.arange(n)
        table = _scored(critic, x[rows.repeat_interleave(n)], y[rows.repeat(n)]).view(n, n)
    return split_table(table)


@torch.no_grad()
def score_table(critic: nn.Module, x: Features, y: Features) -> Tensor:
    """Return the scores (m, k) of each of m rows of x with each of k rows of y."""
    if is_separable(critic):
        left, right = critic.left(_as_accepted(critic, x)), critic.right(_as_accepted(critic, y))
        return left @ right.T
    if isinstance(critic, ClosedForm):
        return _closed_form_table(critic.components, x.baseline, y.baseline)
    rows, k = torch.arange(len(x)), len(y)
    tiles = torch.split(rows, max(1, _ROWS_AT_ONCE // k))
    everything = torch.arange(k)
    scores = [
        _scored(critic, x[some.repeat_interleave(k)], y[everything.repeat(len(some))])
        for some in tiles
    ]
    return torch.cat(scores).view(len(x), k)


def _closed_form_table(components: int, left: Tensor, right: Tensor) -> Tensor:
    """Return the scores (m, k) of left factors (m, components r) with right ones (k, ...)."""
    of_x = left.view(len(left), components, -1).movedim(1, 0)
    of_y = right.view(len(right), components, -1).permute(1, 2, 0).contiguous()
    if components == 1:
        return of_x[0] @ of_y[0]
    found = []
    for rows in torch.split(of_x, max(1, _TERMS_AT_ONCE // (components * len(right))), dim=1):
        # Factors may nearly cancel, so products are precise. Their exponentials need not be.
        terms = torch.bmm(rows, of_y).float()
        highest = terms.amax(dim=0)
        found.append(terms.sub_(highest).exp_().sum(dim=0).log_().add_(highest))
    return torch.cat(found)


def split_table(table: Tensor) -> tuple[Tensor, Tensor]:
    """Return the joint scores (a, ...) and the others (a, n - 1, ...) of a table (a, n, ...).

    The i-th row has its own partner in the i-th column; there are at least as many columns.
    """
    a, n = table.shape[:2]
    # Flat, the diagonal is every (n+1)-th entry: leave the first out and it is a column.
    flat, end = table.flatten(0, 1), 1 + (a - 1) * (n + 1)
    others = flat[1:end].view(a - 1, n + 1, *flat.shape[1:])[:, :-1]
    if a < n:
        others = torch.cat([others.flatten(0, 1), flat[end:]])
    return table.diagonal().movedim(-1, 0), others.reshape(a, n - 1, *table.shape[2:])


def _scored(critic: nn.Module, x: Inputs, y: Inputs) -> Tensor:
    """Return the scores of pairs; check their shape, since the critic may be a user's own."""
    scores: Tensor = critic(_as_accepted(critic, x), _as_accepted(critic, y))
    if scores.shape != (len(x),):
        raise ValueError(f"a critic must return scores of shape ({len(x)},), got {scores.shape}")
    return scores


def _as_accepted(critic: object, a: Inputs) -> Inputs:
    """Return features for critics made of others, and the inputs of networks for plain ones."""
    return a.seen if isinstance(a, Features) and not isinstance(critic, _TAKES_FEATURES) else a


def _tiles(n: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS_AT_ONCE) for start in range(0, n, _ROWS_AT_ONCE))
