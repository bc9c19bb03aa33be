r"""Critics: networks that score a pair, $f(x, y) \approx \log\frac{p(x, y)}{p(x)\,p(y)}$.

A critic is built by a constructor `critic(x_shape, y_shape)` from the shapes of one row a side
and maps (x, y) to scores (n,). Any `nn.Module` that does so will serve. A critic may also be
separable, $f = \langle u(x), v(y) \rangle$ with methods `left` and `right`: then all n^2 pairs of
a batch cost only the 2n embeddings and one matrix product.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol, TypeGuard

import torch
from torch import Tensor, nn

from .pairs import Batch

__all__ = [
    "FEW_INPUTS",
    "ClosedForm",
    "ConvCritic",
    "CriticFactory",
    "MLPCritic",
    "SeparableCritic",
    "StagedCritic",
    "StartedCritic",
    "SumCritic",
    "all_pairs",
    "batch_scores",
    "is_separable",
    "joint_scores",
    "parted",
    "product_scores",
]

Shape = tuple[int, ...]
CriticFactory = Callable[[Shape, Shape], nn.Module]

FEW_INPUTS = 5  # a side, as one column has with its views: narrow networks suffice
_TABLE = 8  # rows a partner up to which all scores are cheaper than the few that are wanted
_ROWS_AT_ONCE = 1 << 12  # of a forward pass without gradient: bounds its memory


class MLPCritic(nn.Module):
    """The paper's critic: concat(x, y) through fully connected ReLU layers.

    Args:
        x_shape: Shape of one x; flattened.
        y_shape: Shape of one y; flattened.
        hidden: Units of each hidden layer.
    """

    def __init__(self, x_shape: Shape, y_shape: Shape, hidden: Sequence[int] = (256, 256)):
        super().__init__()
        inputs = math.prod(x_shape) + math.prod(y_shape)
        self.layers = _fully_connected([inputs, *hidden, 1], nn.ReLU)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, ...), y (n, ...)."""
        both = torch.cat([x.flatten(1), y.flatten(1)], dim=1)
        return self.layers(both).squeeze(1)  # type: ignore[no-any-return]


class SeparableCritic(nn.Module):
    r"""$f(x, y) = \langle u(x), v(y) \rangle + a(x) + b(y) + c$, silent at the start.

    The last layer of the x side starts at zero, so the untrained critic says that x and y are
    independent and learning may stop right there.

    Args:
        x_shape: Shape of one x; flattened.
        y_shape: Shape of one y; flattened.
        hidden: Units of each hidden layer, on each side; `None` takes three layers of 128, of 64
            where no side has more than 5 inputs, and two of 32 where none has more than 4.
        rank: Length of u and v.
    """

    def __init__(
        self,
        x_shape: Shape,
        y_shape: Shape,
        hidden: Sequence[int] | None = None,
        rank: int = 16,
    ):
        super().__init__()
        if hidden is None:
            inputs = max(math.prod(x_shape), math.prod(y_shape))
            hidden = (32, 32) if inputs <= 4 else (64,) * 3 if inputs <= FEW_INPUTS else (128,) * 3
        self.u = _fully_connected([math.prod(x_shape), *hidden, rank + 1], nn.SiLU)
        self.v = _fully_connected([math.prod(y_shape), *hidden, rank + 1], nn.SiLU)
        for last in list(self.u.parameters())[-2:]:
            nn.init.zeros_(last)
        for last in list(self.v.parameters())[-2:]:  # of v only b: v itself gives u a gradient
            nn.init.zeros_(last[-1])
        self.offset = nn.Parameter(torch.zeros(()))

    def left(self, x: Tensor) -> Tensor:
        """Return (n, rank + 2) of x: u, a + c, 1."""
        u = self.u(x.flatten(1))
        return torch.cat([u[:, :-1], u[:, -1:] + self.offset, torch.ones_like(u[:, :1])], dim=1)

    def right(self, y: Tensor) -> Tensor:
        """Return (n, rank + 2) of y: v, 1, b."""
        v = self.v(y.flatten(1))
        return torch.cat([v[:, :-1], torch.ones_like(v[:, :1]), v[:, -1:]], dim=1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, ...), y (n, ...)."""
        return (self.left(x) * self.right(y)).sum(dim=1)


class ConvCritic(nn.Module):
    """The paper's critic for images: channels side by side, one convolution, two layers.

    Args:
        x_shape: (channels, height, width) of one x.
        y_shape: (channels, height, width) of one y; height and width as of x.
        channels: Output channels of the 5 x 5 convolution, stride 2.
        hidden: Units of the fully connected layer.
    """

    def __init__(self, x_shape: Shape, y_shape: Shape, channels: int = 64, hidden: int = 1024):
        super().__init__()
        if len(x_shape) != 3 or len(y_shape) != 3 or x_shape[1:] != y_shape[1:]:
            raise ValueError(
                "ConvCritic needs (channels, height, width) with equal height and width on both "
                f"sides, got {x_shape} and {y_shape}; MLPCritic takes any shape"
            )
        self.convolution = nn.Conv2d(x_shape[0] + y_shape[0], channels, 5, stride=2, padding=2)
        pixels = math.ceil(x_shape[1] / 2) * math.ceil(x_shape[2] / 2)
        self.layers = _fully_connected([channels * pixels, hidden, 1], nn.ReLU)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, c, h, w), y (n, c', h, w)."""
        features = self.convolution(torch.cat([x, y], dim=1)).relu()
        return self.layers(features.flatten(1)).squeeze(1)  # type: ignore[no-any-return]


class _Separable(Protocol):
    def left(self, x: Tensor) -> Tensor: ...
    def right(self, y: Tensor) -> Tensor: ...


class StartedCritic(nn.Module):
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


def is_separable(critic: object) -> TypeGuard[_Separable]:
    """Tell whether a critic scores pairs by the inner product of two embeddings."""
    if isinstance(critic, StartedCritic):
        return is_separable(critic.critic)
    return all(callable(getattr(type(critic), side, None)) for side in ("left", "right"))


def batch_scores(critic: nn.Module, x: Tensor, y: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the scores of a batch of rows of x and y: joint (b,) and product (c, k)."""
    if batch.partners is None:
        return all_pairs(critic, x[batch.joint], y[batch.joint])
    k, b = batch.partners.shape[1], len(batch.joint)
    x_rows, y_rows = batch.rows()
    scores = _scored(critic, x.index_select(0, x_rows), y.index_select(0, y_rows))
    joint, product = torch.split(scores, [b, len(scores) - b])  # one node of the graph, not two
    return joint, product.view(-1, k)


@torch.no_grad()
def joint_scores(critic: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the scores (n,) of pairs, without gradient, in tiles."""
    tiles = zip(torch.split(x, _ROWS_AT_ONCE), torch.split(y, _ROWS_AT_ONCE), strict=True)
    return torch.cat([_scored(critic, a, b) for a, b in tiles])


@torch.no_grad()
def product_scores(critic: nn.Module, x: Tensor, y: Tensor, partners: Tensor) -> Tensor:
    """Return the scores (n, k) of each x with k other rows of y, without gradient, in tiles."""
    if not is_separable(critic):
        return torch.stack([joint_scores(critic, x, y[rows]) for rows in partners.T], dim=1)
    u = torch.cat([critic.left(tile) for tile in torch.split(x, _ROWS_AT_ONCE)])
    v = torch.cat([critic.right(tile) for tile in torch.split(y, _ROWS_AT_ONCE)])
    if len(x) < _TABLE * partners.shape[1]:
        tiles = zip(
            torch.split(u, _ROWS_AT_ONCE), torch.split(partners, _ROWS_AT_ONCE), strict=True
        )
        return torch.cat([(a @ v.T).gather(1, rows) for a, rows in tiles])
    return torch.stack([(u * v[rows]).sum(dim=1) for rows in partners.T], dim=1)


def _scored(critic: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return what a critic says of pairs; a user's own may have the wrong shape."""
    scores: Tensor = critic(x, y)
    if scores.shape != (len(x),):
        raise ValueError(f"a critic must return scores of shape ({len(x)},), got {scores.shape}")
    return scores


def all_pairs(critic: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the n joint scores and the (n, n - 1) others of a batch."""
    n = len(x)
    if is_separable(critic):
        table = critic.left(x) @ critic.right(y).T
    else:
        rows = torch.arange(n)
        table = critic(x[rows.repeat_interleave(n)], y[rows.repeat(n)]).view(n, n)
    return parted(table)


def parted(table: Tensor) -> tuple[Tensor, Tensor]:
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


def _fully_connected(sizes: Sequence[int], activation: Callable[[], nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])
