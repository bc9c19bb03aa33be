r"""Objectives as losses of an encoder: maximise the information of one view about another.

An encoder makes an *anchor* of each example and a *partner*, which may have several locations; a
critic scores anchors with partners. In a table of scores, `table[i, j]` or `table[i, j, location]`
is of the i-th anchor with the j-th partner: the diagonal holds joint pairs, the rest unpaired ones.

Each loss is made of the contributions of single anchors. For most objectives it is their mean. MINE
needs the mean of exp f over all pairs, which is the mean of the means of the anchors. It follows
that

- anchors may be scored in tiles, whose scores are recomputed for the gradient, so that memory does
  not grow with the square of the batch;
- processes may score their own anchors with the partners of all, and exchange contributions.

With several processes each has the loss of the joined batch, and each embedding has the gradient
times the number of processes. `DistributedDataParallel` divides by that number, so that weights
have the gradient of one process with the joined batch. Batches must be equally large.

References:
    Hjelm et al. (2019), Learning deep representations by mutual information estimation and
    maximization. Liao et al. (2020), section 3.2.
"""

import math
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.utils.checkpoint import checkpoint

from ..critics.scoring import split_table
from ..objectives import DEMI, MINE, Objective, log_mean_exp

__all__ = ["InfoMaxLoss", "gathered"]

_AT_ONCE = 1 << 24  # scores in memory at a time


class InfoMaxLoss(nn.Module):
    r"""An objective as a loss to minimise, over tables of scores, scores of pairs, or embeddings.

    It is a module because MINE has a moving average, which belongs in a checkpoint. Scores of low
    precision are converted to float32 first.

    Args:
        objective: The objective; your own must be a mean over anchors.
        normalise: Subtract from each anchor's scores the log of the mean of exp f over its unpaired
            samples. The exact log ratio has mean $E_{p(y)}[e^{f(x, y)}] = 1$ for every x, so the
            critic need not learn this. InfoNCE is unchanged.
        gather: Compute the loss over all processes, if `torch.distributed` is initialised.
    """

    log_average: Tensor

    def __init__(
        self, objective: Objective | None = None, *, normalise: bool = False, gather: bool = True
    ):
        super().__init__()
        self.objective = DEMI() if objective is None else objective
        if getattr(self.objective, "draw", False):
            raise ValueError("DEMI(draw=True) draws single examples; a table needs draw=False")
        self.normalise, self.gather = normalise, gather
        self.register_buffer("log_average", torch.tensor(torch.nan))

    def forward(self, scores: Tensor, product: Tensor | None = None) -> Tensor:
        """Return the loss.

        Args:
            scores: A table (n, m) or (n, m, locations); or, with `product`, scores of joint pairs,
                (n,) or (n, locations). A table of m > n partners, gathered from several processes,
                has those of this process where `gathered` puts them.
            product: Scores of unpaired samples, (n, k) or (n, k, locations).
        """
        return self._combined(self._each(*self._parts(scores, product)))

    def all_pairs(self, anchors: Tensor, partners: Tensor) -> Tensor:
        """Return the loss of all inner products, in tiles and over all processes.

        Args:
            anchors: Embeddings (n, r).
            partners: Embeddings (n, r) or (n, locations, r).
        """
        all_partners = self._gathered(partners)
        own = self._rank() * len(anchors)
        rows = max(1, _AT_ONCE // all_partners[..., 0].numel())
        if rows >= len(anchors):
            return self._combined(self._tile(anchors, all_partners, own))
        tiles = [
            checkpoint(self._tile, tile, all_partners, own + i * rows, use_reentrant=False)
            for i, tile in enumerate(torch.split(anchors, rows))
        ]
        return self._combined(torch.cat(tiles))

    @torch.no_grad()
    def estimate(self, scores: Tensor, product: Tensor | None = None) -> Tensor:
        """Return mutual information in nats, mean over locations; arguments as of `forward`."""
        joint, others = self._normalised(*self._parts(scores, product))
        return self.objective.estimate(joint.T, others).mean()

    def _parts(self, scores: Tensor, product: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return scores of joint pairs (n, locations) and unpaired ones (n, k), as floats."""
        if product is None:
            if scores.ndim not in (2, 3) or not 2 <= len(scores) <= scores.shape[1]:
                raise ValueError(
                    "a table of scores is (n, m) or (n, m, locations) with 2 <= n <= m, got "
                    f"{tuple(scores.shape)}; pass loss(joint, product) for scores of pairs"
                )
            square = len(scores) == scores.shape[1]
            return self._split(scores, 0 if square else self._rank() * len(scores))
        if product.ndim < 2 or len(product) != len(scores):
            raise ValueError(
                f"joint and product must be (n, ...) and (n, k, ...), got {tuple(scores.shape)} "
                f"and {tuple(product.shape)}"
            )
        return _precise(scores).reshape(len(scores), -1), _precise(product).flatten(1)

    def _tile(self, anchors: Tensor, all_partners: Tensor, own: int) -> Tensor:
        """Return the contributions of some anchors, whose own partners begin at `own`."""
        table = anchors @ all_partners.flatten(0, -2).T
        return self._each(*self._split(table.view(len(anchors), *all_partners.shape[:-1]), own))

    def _split(self, table: Tensor, own: int) -> tuple[Tensor, Tensor]:
        table = table if own == 0 else table.roll(-own, dims=1)
        joint, others = split_table(_precise(table))
        return joint.reshape(len(joint), -1), others.flatten(1)

    def _normalised(self, joint: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores, normalised so that the mean of exp f is 1 for each anchor, if wanted."""
        if not self.normalise:
            return joint, others
        level = others.logsumexp(1, keepdim=True) - math.log(others.shape[1])
        return joint - level, others - level

    def _each(self, joint: Tensor, others: Tensor) -> Tensor:
        """Return the contribution of each anchor, (n, ...)."""
        joint, others = self._normalised(joint, others)
        if isinstance(self.objective, MINE):
            return torch.stack([joint.mean(1), log_mean_exp(others[:, None])], dim=1)
        return self.objective.loss(joint, others[:, None])

    def _combined(self, each: Tensor) -> Tensor:
        """Return the loss, from the contributions of the anchors of all processes."""
        each = self._gathered(each)
        if not isinstance(self.objective, MINE):
            return each.mean()
        joint, others = each[:, 0], each[:, 1:]
        if not self.training:
            return self.objective.loss(joint, others)
        known = None if self.log_average.isnan() else self.log_average
        loss, average = self.objective.corrected(joint, others, known)
        self.log_average.copy_(average)
        return loss

    def _gathered(self, rows: Tensor) -> Tensor:
        return gathered(rows) if self.gather else rows

    def _rank(self) -> int:
        return distributed.get_rank() if self.gather and _several() else 0


def gathered(rows: Tensor) -> Tensor:
    """Return the rows (n, ...) of all processes, in the order of their ranks, with gradient."""
    found: Tensor = _Gather.apply(rows) if _several() else rows  # type: ignore[no-untyped-call]
    return found


class _Gather(torch.autograd.Function):
    """Rows of all processes; backward, the sum over processes of the gradient of the own rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(distributed.get_world_size())]
        distributed.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(gradient)
        return gradient.chunk(distributed.get_world_size())[distributed.get_rank()]


def _several() -> bool:
    """Return whether there are several processes."""
    return (
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


def _precise(scores: Tensor) -> Tensor:
    """Return scores in at least float32: exp and log of bfloat16 have only two digits."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
