r"""Joint batches and their unpaired partners.

A row with an unpaired partner stands for a draw from $p(x)p(y)$, so it must never be a joint pair.
If it were one with probability $1/K$, the odds of the best classifier would not exceed $K$, and no
estimate could exceed $\log K$: 4.2 nats for shuffles within a batch of 64, 12 nats for independent
draws from 160,000 pairs. A cyclic shift of a shuffled order is a derangement. It uses each $y$
once, and has no such ceiling. Rows with the same label (of one group, or copies of one row) are
never partners.
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
        joint: (b,) rows of joint pairs.
        anchors: (c,) rows whose x is paired with the y of other rows.
        partners: (c, k) those other rows; `None` for all the other rows of the batch.
    """

    joint: Tensor
    anchors: Tensor
    partners: Tensor | None

    def rows(self) -> tuple[Tensor, Tensor]:
        """Return the rows of x and of y of all listed pairs (b + c k,), the joint ones first."""
        if self.partners is None:
            raise ValueError("this batch lists no partners: all its other rows are partners")
        k = self.partners.shape[1]
        anchors = self.anchors if k == 1 else self.anchors.repeat_interleave(k)
        y_rows = torch.cat([self.joint, self.partners.flatten()])
        return torch.cat([self.joint, anchors]), y_rows


def partners(n: int, k: int, generator: torch.Generator, labels: Tensor | None = None) -> Tensor:
    """Return (n, k) rows, none of them the row itself nor one with its label."""
    _check_labels(labels)
    order = torch.randperm(n, generator=generator)
    shifted = torch.empty(n, k, dtype=torch.int64)
    shifted[order] = _shifts(order, k, generator)
    if labels is None:
        return shifted
    return _redraw_same_labels(shifted, torch.arange(n), labels, generator)


def batches(
    n: int,
    size: int,
    k: int | None,
    generator: torch.Generator,
    *,
    labels: Tensor | None = None,
    alpha: float | None = None,
    in_batch: bool = False,
) -> Iterator[Batch]:
    """Yield batches without end, each epoch in a new order with new partners.

    Args:
        n: Number of rows.
        size: Joint pairs in a batch, at most n; an incomplete last batch is left out.
        k: Unpaired partners of each row; `None` for all the other rows of the batch.
        generator: Source of randomness.
        labels: (n,) rows with equal labels are never partners.
        alpha: If given, draw for each of 2 `size` examples whether it is a joint pair, with
            probability alpha, or an unpaired one: the paper's z. Otherwise every row is used as
            both, and the loss has the weights.
        in_batch: Whether the partners of a row are those next to it in its batch, as in the
            authors' code; otherwise they come from all rows. One with the row's label is replaced
            by any other row.
    """
    if k is None and alpha is not None:
        raise ValueError("alpha needs explicit partners: set k")
    _check_labels(labels)
    size = min(size, n)
    while True:
        order = torch.randperm(n, generator=generator)
        others = None if k is None or in_batch else partners(n, k, generator, labels)
        for start in range(0, n - size + 1, size):
            rows = order[start : start + size]
            if k is None:
                rows = rows if labels is None else _one_per_label(rows, labels)
                if len(rows) > 1:
                    yield Batch(rows, rows, None)
                continue
            unpaired = _next(rows, k, labels, generator) if others is None else others[rows]
            batch = Batch(rows, rows, unpaired)
            yield batch if alpha is None else _draw_z(rows, unpaired, alpha, generator)


def _check_labels(labels: Tensor | None) -> None:
    if labels is not None and bool((labels == labels[0]).all()):
        raise DataError("all rows are of one group or copies of one row: no two can be unpaired")


def _shifts(order: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Return (n, k): the shuffled `order`, shifted by k different distances."""
    n = len(order)
    if not 1 <= k < n:
        raise DataError(f"{n} rows have {n - 1} unpaired partners each, not {k}")
    distances = (torch.randperm(n - 1, generator=generator)[:k] + 1).tolist()
    return torch.stack([order.roll(-d) for d in distances], dim=1)


def _next(rows: Tensor, k: int, labels: Tensor | None, generator: torch.Generator) -> Tensor:
    """Return (b, k): for each of `rows` the k rows that come next among them."""
    if not 1 <= k < len(rows):
        raise DataError(f"{len(rows)} rows of a batch have {len(rows) - 1} partners, not {k}")
    others = torch.stack([rows.roll(-distance) for distance in range(1, k + 1)], dim=1)
    return others if labels is None else _redraw_same_labels(others, rows, labels, generator)


def _redraw_same_labels(
    others: Tensor, rows: Tensor, labels: Tensor, generator: torch.Generator
) -> Tensor:
    """Return partners (b, k) of rows (b,), redrawn where one has the label of its row."""
    place, column = (labels[others] == labels[rows][:, None]).nonzero(as_tuple=True)
    if len(place) == 0:
        return others
    _, codes, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    own = codes[rows[place]]
    by_label, width = codes.argsort(stable=True), counts[own]
    first = (counts.cumsum(0) - counts)[own]
    uniform = torch.rand(len(place), generator=generator, dtype=torch.float64)
    drawn = (uniform * (len(labels) - width)).long()
    others[place, column] = by_label[drawn + width * (drawn >= first)]  # skip the own label
    return others


def _one_per_label(rows: Tensor, labels: Tensor) -> Tensor:
    """Return the first row of each label, so that no two rows of the batch share one."""
    seen: set[int] = set()
    keep = [not (c in seen or seen.add(c)) for c in labels[rows].tolist()]  # type: ignore[func-returns-value]
    return rows[torch.tensor(keep)]


def _draw_z(rows: Tensor, others: Tensor, alpha: float, generator: torch.Generator) -> Batch:
    """Return two examples of each row, each joint with probability alpha and unpaired otherwise."""
    rows = rows.repeat(2)
    z = torch.rand(len(rows), generator=generator) < alpha
    return Batch(rows[z], rows[~z], others.repeat(2, 1)[~z])


def draw_partners(sample: Sample, k: int, seed: int) -> Tensor:
    """Return unpaired partners (n, k) of the rows of a sample; fewer than k if n is small."""
    generator = torch.Generator().manual_seed(seed)
    return partners(len(sample), min(k, len(sample) - 1), generator, label_tensor(sample))


def label_tensor(sample: Sample) -> Tensor | None:
    """Return the labels (n,) of copied rows as a tensor, if there are any."""
    return None if sample.labels is None else torch.from_numpy(sample.labels)
