"""Critics made of others: a baseline in closed form, and networks added to it.

These take `Features`; plain networks take tensors.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .features import Features

__all__ = [
    "BaselineCritic",
    "ClosedForm",
    "ColumnCritic",
    "MeanCritic",
    "NormalisedCritic",
    "StagedCritic",
    "SumCritic",
]

_TINY = 1e-300  # mean ratio of a y that is far from every x
_SINKHORN = 8  # rounds; each nearly squares what is left of the error


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


class MeanCritic(nn.Module):
    """The mean of separable critics, added to a baseline.

    Args:
        critics: Separable.
    """

    def __init__(self, critics: Sequence[nn.Module]):
        super().__init__()
        self.critics = nn.ModuleList(critics)

    def left(self, x: Features) -> Tensor:
        """Return the left factors of all critics and of the baseline, side by side."""
        factors = [critic.left(x.seen) / len(self.critics) for critic in self.critics]  # type: ignore[operator]
        return torch.cat([*factors, x.baseline], dim=1)

    def right(self, y: Features) -> Tensor:
        """Return the right factors of all critics and of the baseline, side by side."""
        factors = [critic.right(y.seen) for critic in self.critics]  # type: ignore[operator]
        return torch.cat([*factors, y.baseline], dim=1)


class NormalisedCritic(nn.Module):
    r"""A separable critic less $a(x) + b(y)$, so that Z is 1 for every x and every y.

    With reference rows $(x_i, y_i)$, $a(x) = \log \frac1m \sum_j e^{f(x, y_j) - b_j}$, and the same
    for b. Their values at the reference rows solve both equations (Sinkhorn).

    Args:
        critic: Separable; takes features.
        x_rows: (m, r) left factors of the reference rows.
        y_rows: (m, r) right factors.
        x_logs: (m,) a at those rows.
        y_logs: (m,) b.
    """

    x_rows: Tensor
    y_rows: Tensor
    x_logs: Tensor
    y_logs: Tensor

    def __init__(
        self, critic: nn.Module, x_rows: Tensor, y_rows: Tensor, x_logs: Tensor, y_logs: Tensor
    ):
        super().__init__()
        self.critic = critic
        self.register_buffer("x_rows", x_rows)
        self.register_buffer("y_rows", y_rows)
        self.register_buffer("x_logs", x_logs)
        self.register_buffer("y_logs", y_logs)

    @classmethod
    @torch.no_grad()
    def fit(
        cls, critic: nn.Module, x: Features, y: Features, labels: Tensor | None = None
    ) -> "NormalisedCritic":
        """Return the critic normalised by pairs of rows, of which those of one label are joint."""
        x_rows, y_rows = critic.left(x), critic.right(y)  # type: ignore[operator]
        labels = torch.arange(len(x)) if labels is None else labels
        joint = labels[:, None] == labels
        table = (x_rows @ y_rows.T).double().masked_fill_(joint, -torch.inf)
        highest = table.amax(dim=1)
        ratios = (table - highest[:, None]).exp_()
        unpaired = len(x) - joint.sum(dim=1, dtype=torch.float64)
        of_x = of_y = torch.ones(len(x), dtype=torch.float64)
        for _ in range(_SINKHORN):
            of_x = ratios @ of_y / unpaired
            of_y = 1 / (ratios.T @ (1 / of_x) / unpaired).clamp_min(_TINY)
        a, b = (of_x.log() + highest).float(), -of_y.log().float()
        return cls(critic, x_rows, y_rows, a, b)

    def left(self, x: Features) -> Tensor:
        """Return the left factors."""
        u = self.critic.left(x)  # type: ignore[operator]
        a = (u @ self.y_rows.T - self.y_logs).logsumexp(dim=1) - math.log(len(self.y_rows))
        return torch.cat([u, -a[:, None], torch.ones(len(u), 1)], dim=1)

    def right(self, y: Features) -> Tensor:
        """Return the right factors."""
        v = self.critic.right(y)  # type: ignore[operator]
        b = (v @ self.x_rows.T - self.x_logs).logsumexp(dim=1) - math.log(len(self.x_rows))
        return torch.cat([v, torch.ones(len(v), 1), -b[:, None]], dim=1)

    def forward(self, x: Features, y: Features) -> Tensor:
        """Return scores (n,) of pairs."""
        return (self.left(x) * self.right(y)).sum(dim=1)


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
