"""Critics made of others: a baseline plus networks."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["BaselineCritic", "ClosedForm", "StagedCritic", "SumCritic"]


class BaselineCritic(nn.Module):
    """A critic added to a start in closed form, whose halves are the last columns of x and y.

    Args:
        critic: What learns the rest; it sees the other columns.
        columns: How many columns a side belong to the start.
    """

    def __init__(self, critic: nn.Module, columns: int):
        super().__init__()
        self.critic, self.columns = critic, columns

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, d), y (n, d')."""
        (x, left), (y, right) = self._parts(x), self._parts(y)
        learnt: Tensor = self.critic(x, y)
        return learnt + (left * right).sum(dim=1)

    def left(self, x: Tensor) -> Tensor:
        """Return the left halves of critic and start, side by side, if the critic has one."""
        x, known = self._parts(x)
        return torch.cat([self.critic.left(x), known], dim=1)  # type: ignore[operator]

    def right(self, y: Tensor) -> Tensor:
        """Return the right halves of critic and start, side by side, if the critic has one."""
        y, known = self._parts(y)
        return torch.cat([self.critic.right(y), known], dim=1)  # type: ignore[operator]

    def _parts(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the critic sees and the halves of the start."""
        seen = a.shape[1] - self.columns
        return a[:, :seen], a[:, seen:]


class StagedCritic(nn.Module):
    """Separable critics added up, each with its own columns, and a start in closed form.

    Args:
        critics: The stages.
        x_columns: (number of columns,) of x that each stage sees.
        y_columns: The same of y.
        columns: How many of the last columns a side belong to the start.
    """

    def __init__(
        self,
        critics: Sequence[nn.Module],
        x_columns: Sequence[Tensor],
        y_columns: Sequence[Tensor],
        columns: int,
    ):
        super().__init__()
        self.critics = nn.ModuleList(critics)
        self.x_columns, self.y_columns, self.columns = list(x_columns), list(y_columns), columns

    def left(self, x: Tensor) -> Tensor:
        """Return the left halves of all stages and of the start, side by side."""
        seen = zip(self.critics, self.x_columns, strict=True)
        halves = [critic.left(x[:, columns]) for critic, columns in seen]  # type: ignore[operator]
        return torch.cat([*halves, x[:, x.shape[1] - self.columns :]], dim=1)

    def right(self, y: Tensor) -> Tensor:
        """Return the right halves of all stages and of the start, side by side."""
        seen = zip(self.critics, self.y_columns, strict=True)
        halves = [critic.right(y[:, columns]) for critic, columns in seen]  # type: ignore[operator]
        return torch.cat([*halves, y[:, y.shape[1] - self.columns :]], dim=1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, d), y (n, d')."""
        return (self.left(x) * self.right(y)).sum(dim=1)


class SumCritic(nn.Module):
    """Staged critics and one that concatenates, added up.

    Args:
        staged: Separable ones, with their start.
        concat: Sees all columns but those of the start.
    """

    def __init__(self, staged: StagedCritic, concat: nn.Module):
        super().__init__()
        self.staged, self.concat = staged, concat

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, d), y (n, d')."""
        c = self.staged.columns
        learnt: Tensor = self.concat(x[:, : x.shape[1] - c], y[:, : y.shape[1] - c])
        known: Tensor = self.staged(x, y)
        return learnt + known


class ClosedForm(nn.Module):
    """A start alone, of several components, whose halves are the last columns of x and y.

    Args:
        components: How many terms are added up.
        columns: How many columns a side belong to the start.
    """

    def __init__(self, components: int, columns: int):
        super().__init__()
        self.components, self.columns = components, columns

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, d), y (n, d')."""
        products = x[:, -self.columns :] * y[:, -self.columns :]
        return products.view(len(x), self.components, -1).sum(dim=2).logsumexp(dim=1)
