"""What critics see of one side: the inputs of networks, and the factors of a baseline."""

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Features", "Inputs", "as_features", "select_rows"]


@dataclass(frozen=True)
class Features:
    """One side of the pairs, as critics take it.

    Args:
        seen: (n, ...) inputs of networks.
        baseline: (n, r) factors of the baseline, whose inner products are its log ratios; r is 0
            without one.
    """

    seen: Tensor
    baseline: Tensor

    def __len__(self) -> int:
        return len(self.seen)

    def __getitem__(self, rows: Tensor | slice) -> "Features":
        return Features(self.seen[rows], self.baseline[rows])


Inputs = Tensor | Features  # a plain tensor where there is no baseline


def select_rows(a: Inputs, rows: Tensor) -> Inputs:
    """Return the features of some rows (k,)."""
    if isinstance(a, Tensor):
        return a.index_select(0, rows)
    return Features(a.seen.index_select(0, rows), a.baseline.index_select(0, rows))


def as_features(a: Inputs) -> Features:
    """Return features as they are, and a tensor (n, ...) as features without a baseline."""
    return a if isinstance(a, Features) else Features(a, a.new_empty(len(a), 0))
