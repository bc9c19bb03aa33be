"""Critics made of others: a baseline in closed form, and networks added to it.

These take `Features`; plain networks take tensors.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .features import Features

__all__ = ["BaselineCritic", "ClosedForm", "ColumnCritic", "StagedCritic", "SumCritic"]


class BaselineCritic(nn.Module):
    """A critic added to a baseline.

    Args:
        critic: Learns what the baseline misses.
    """

    def __init__(self, critic: nn.Module):
        super().__init__()
        self.critic = critic

    def forward(self, x: Features, y: Features) -> Tensor:
        """Return scores (n,) of pairs."""
        learnt: Tensor = self.critic(x.seen, y.seen)
        return learnt + (x.baseline * y.baseline).sum(dim=1)

    def left(self, x: Features) -> Tensor:
        """Return the left factors of critic and baseline, side by side, of a separable critic."""
        return torch.cat([self.critic.left(x.seen), x.baseline], dim=1)  # type: ignore[operator]

    def right(self, y: Features) -> Tensor:
        """Return the right factors of critic and baseline, side by side, of a separable critic."""
        return torch.cat([self.critic.right(y.seen), y.baseline], dim=1)  # type: ignore[operator]


class ColumnCritic(nn.Module):
    """A separable critic that sees some of the columns.

    Args:
        critic: Separable.
        x_columns: (k,) columns of x that it sees.
        y_columns: (k',) columns of y.
    """

    x_columns: Tensor
    y_columns: Tensor

    def __init__(self, critic: nn.Module, x_columns: Tensor, y_columns: Tensor):
        super().__init__()
        self.critic = critic
        self.register_buffer("x_columns", x_columns)
        self.register_buffer("y_columns", y_columns)

    def left(self, x: Tensor) -> Tensor:
        """Return (n, r) of x (n, d)."""
        return self.critic.left(x[:, self.x_columns])  # type: ignore[operator, no-any-return]

    def right(self, y: Tensor) -> Tensor:
        """Return (n, r) of y (n, d')."""
        return self.critic.right(y[:, self.y_columns])  # type: ignore[operator, no-any-return]


class StagedCritic(nn.Module):
    """A baseline and separable critics, added up.

    Args:
        critics: The stages, a `ColumnCritic` each.
    """

    def __init__(self, critics: Sequence[nn.Module]):
        super().__init__()
        self.critics = nn.ModuleList(critics)

    def left(self, x: Features) -> Tensor:
        """Return the left factors of all stages and of the baseline, side by side."""
        factors = [critic.left(x.seen) for critic in self.critics]  # type: ignore[operator]
        return torch.cat([*factors, x.baseline], dim=1)

    def right(self, y: Features) -> Tensor:
        """Return the right factors of all stages and of the baseline, side by side."""
        factors = [critic.right(y.seen) for critic in self.critics]  # type: ignore[operator]
        return torch.cat([*factors, y.baseline], dim=1)

    def forward(self, x: Features, y: Features) -> Tensor:
        """Return scores (n,) of pairs."""
        return (self.left(x) * self.right(y)).sum(dim=1)


class SumCritic(nn.Module):
    """A staged critic and one that concatenates x and y, added up.

    Args:
        staged: Includes the baseline.
        concat: Sees all columns.
    """

    def __init__(self, staged: StagedCritic, concat: nn.Module):
        super().__init__()
        self.staged, self.concat = staged, concat

    def forward(self, x: Features, y: Features) -> Tensor:
        """Return scores (n,) of pairs."""
        learnt: Tensor = self.concat(x.seen, y.seen)
        known: Tensor = self.staged(x, y)
        return learnt + known


class ClosedForm(nn.Module):
    """A baseline alone.

    Args:
        components: How many terms its sum has.
    """

    def __init__(self, components: int):
        super().__init__()
        self.components = components

    def forward(self, x: Features, y: Features) -> Tensor:
        """Return scores (n,) of pairs."""
        products = x.baseline * y.baseline
        return products.view(len(x), self.components, -1).sum(dim=2).logsumexp(dim=1)
