r"""Joint batches and their unpaired partners.

An unpaired partner stands for a draw from $p(x)p(y)$, so it must never be a joint pair. If it
were one with probability $1/K$, the best classifier could not tell the two apart beyond odds of
$K$, and no estimate could pass $\log K$: in-batch shuffles of 64 cap at 4.2 nats, independent
draws from 160,000 pairs at 12. A cyclic shift of a shuffled order is a derangement, uses each
$y$ once, and has no cap. Rows with the same label (copies of one observation) count as the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import DataError
from .sample import Sample

__all__ = ["Batch", "batches", "draw_partners", "label_tensor", "partners"]


@dataclass(frozen=True)
class Batch:
    """Rows of one training step.

    Args:
        joint: (b,) rows taken with their own partner.
        anchors: (c,) rows whose x is taken with another row's y.
        partners: (c, k) those other rows; `None` for all the other rows of the batch.
    """

    joint: Tensor
    anchors: Tensor
    partners: Tensor | None

    def rows(self) -> tuple[Tensor, Tensor]:
        """Return the rows of x and of y of all named pairs (b + c k,), the joint ones first."""
        if self.partners is None:
            raise ValueError("the partners of this batch are all its other rows, none is named")
        k = self.partners.shape[1]
        anchors = self.anchors if k == 1 else self.anchors.repeat_interleave(k)
        y_rows = torch.cat([self.joint, self.partners.flatten()])
        return torch.cat([self.joint, anchors]), y_rows


def partners(n: int, k: int, generator: torch.Generator, labels: Tensor | None = None) -> Tensor:
    """Return (n, k) rows, none of them the row itself nor one with its label."""
    _some_differ(labels)
    order = torch.randperm(n, generator=generator)
    shifted = torch.empty(n, k, dtype=torch.int64)
    shifted[order] = _shifts(order, k, generator)
    return shifted if labels is None else _apart(shifted, labels, generator)


def batches(
    n: int,
    size: int,
    k: int | None,
    generator: torch.Generator,
    *,
    labels: Tensor | None = None,
    alpha: float | None = None,
) -> Iterator[Batch]:
    """Yield batches for ever, each epoch in a fresh order with fresh partners.

    Args:
        n: Number of rows.
        size: Joint pairs a batch, at most n; an incomplete last batch is left out.
        k: Unpaired partners for each; `None` for all the other rows of the batch.
        generator: Source of randomness.
        labels: (n,) rows with equal labels are never partners.
        alpha: If given, draw for each of 2 `size` examples whether it is a joint pair, with
            probability alpha, or an unpaired one: the paper's z. Otherwise every row serves as
            both and the loss weighs the two.
    """
    if k is None and alpha is not None:
        raise ValueError("drawing z needs explicit partners")
    _some_differ(labels)
    size = min(size, n)
    while True:
        order = torch.randperm(n, generator=generator)
        others = None if k is None else partners(n, k, generator, labels)
        for start in range(0, n - size + 1, size):
            rows = order[start : start + size]
            if others is None:
                rows = rows if labels is None else _one_per_label(rows, labels)
                if len(rows) > 1:
                    yield Batch(rows, rows, None)
            else:
                apart = others[rows]
                batch = Batch(rows, rows, apart)
                yield batch if alpha is None else _drawn(rows, apart, alpha, generator)


def _some_differ(labels: Tensor | None) -> None:
    if labels is not None and bool((labels == labels[0]).all()):
        raise DataError("all rows are of one group or copies of one: nothing can be unpaired")


def _shifts(order: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Return (n, k): the shuffled `order` moved on by k different distances."""
    n = len(order)
    if not 1 <= k < n:
        raise DataError(f"{n} rows have {n - 1} unpaired partners each, {k} were asked for")
    distances = (torch.randperm(n - 1, generator=generator)[:k] + 1).tolist()
    return torch.stack([order.roll(-d) for d in distances], dim=1)


def _apart(others: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Draw again, among the rows of other labels, where a partner (n, k) has its row's label."""
    _, codes, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    row, column = (labels[others] == labels[:, None]).nonzero(as_tuple=True)
    by_label, width = codes.argsort(stable=True), counts[codes[row]]
    start = (counts.cumsum(0) - counts)[codes[row]]
    uniform = torch.rand(len(row), generator=generator, dtype=torch.float64)
    drawn = (uniform * (len(labels) - width)).long()
    others[row, column] = by_label[drawn + width * (drawn >= start)]  # step over the own label
    return others


def _one_per_label(rows: Tensor, labels: Tensor) -> Tensor:
    """Keep the first of the rows that share a label, so that all pairs of the batch differ."""
    seen: set[int] = set()
    keep = [not (c in seen or seen.add(c)) for c in labels[rows].tolist()]  # type: ignore[func-returns-value]
    return rows[torch.tensor(keep)]


def _drawn(rows: Tensor, others: Tensor, alpha: float, generator: torch.Generator) -> Batch:
    """Let each of two examples a row be joint with probability alpha, unpaired otherwise."""
    rows = rows.repeat(2)
    z = torch.rand(len(rows), generator=generator) < alpha
    return Batch(rows[z], rows[~z], others.repeat(2, 1)[~z])


def draw_partners(sample: Sample, k: int, seed: int) -> Tensor:
    """Return (n, k) rows that are unpaired with each row of a sample; fewer if n is small."""
    generator = torch.Generator().manual_seed(seed)
    return partners(len(sample), min(k, len(sample) - 1), generator, label_tensor(sample))


def label_tensor(sample: Sample) -> Tensor | None:
    """Return the labels (n,) of copied rows as a tensor, if there are any."""
    return None if sample.labels is None else torch.from_numpy(sample.labels)
