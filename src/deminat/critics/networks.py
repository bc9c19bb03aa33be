r"""Critics: networks that score a pair, $f(x, y) \approx \log\frac{p(x, y)}{p(x)\,p(y)}$.

A critic is built by a constructor `critic(x_shape, y_shape)` from the shapes of one row a side
and maps (x, y) to scores (n,). Any `nn.Module` that does so will serve. A critic may also be
separable, $f = \langle u(x), v(y) \rangle$ with methods `left` and `right`: then all n^2 pairs of
a batch cost only the 2n embeddings and one matrix product.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = [
    "CONV_CHANNELS",
    "FEW_INPUTS",
    "ConvCritic",
    "CriticFactory",
    "MLPCritic",
    "SeparableConvCritic",
    "SeparableCritic",
    "build_critic",
]

Shape = tuple[int, ...]
CriticFactory = Callable[[Shape, Shape], nn.Module]
CONV_CHANNELS = 16, 32  # of the two convolutions of a separable critic
FEW_INPUTS = 5  # a side, as one column has with its views: narrow networks suffice


def build_critic(factory: CriticFactory, x_shape: Shape, y_shape: Shape) -> nn.Module:
    """Return the critic of a constructor; it remembers its shapes, by which it can be loaded."""
    critic = factory(x_shape, y_shape)
    critic.shapes = x_shape, y_shape  # type: ignore[assignment]
    return critic


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
    r"""$f(x, y) = \langle u(x), v(y) \rangle + a(x) + b(y) + c$, zero before training.

    The last layer of the x side starts at zero, so the untrained critic says that x and y are
    independent, and early stopping may return to it.

    Args:
        x_shape: Shape of one x; flattened.
        y_shape: Shape of one y; flattened.
        hidden: Units of each hidden layer, on each side; `None` takes three layers of 128, of 64
            where no side has more than 5 inputs, and two of 32 where none has more than 4.
        rank: Length of u and v.
    """

    def __init__(
        self, x_shape: Shape, y_shape: Shape, hidden: Sequence[int] | None = None, rank: int = 16
    ):
        super().__init__()
        if hidden is None:
            inputs = max(math.prod(x_shape), math.prod(y_shape))
            hidden = (32, 32) if inputs <= 4 else (64,) * 3 if inputs <= FEW_INPUTS else (128,) * 3
        self.u = _fully_connected([math.prod(x_shape), *hidden, rank + 1], nn.SiLU)
        self.v = _fully_connected([math.prod(y_shape), *hidden, rank + 1], nn.SiLU)
        self.offset = nn.Parameter(torch.zeros(()))
        _start_at_zero(self.u, self.v)

    def left(self, x: Tensor) -> Tensor:
        """Return (n, rank + 2) of x: u, a + c, 1."""
        return _left_factors(self.u(x.flatten(1)), self.offset)

    def right(self, y: Tensor) -> Tensor:
        """Return (n, rank + 2) of y: v, 1, b."""
        return _right_factors(self.v(y.flatten(1)))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return scores (n,) of pairs x (n, ...), y (n, ...)."""
        return (self.left(x) * self.right(y)).sum(dim=1)


class SeparableConvCritic(nn.Module):
    """A separable critic that sees images through two convolutions, and other rows flattened.

    Args:
        x_shape: Shape of one x; (channels, height, width) of an image.
        y_shape: Shape of one y. The sides may differ.
        rank: Length of u and v.
    """

    def __init__(self, x_shape: Shape, y_shape: Shape, rank: int = 16):
        super().__init__()
        self.u, self.v = _encoder(x_shape, rank + 1), _encoder(y_shape, rank + 1)
        self.offset = nn.Parameter(torch.zeros(()))
        _start_at_zero(self.u, self.v)

    def left(self, x: Tensor) -> Tensor:
        """Return (n, rank + 2) of x: u, a + c, 1."""
        return _left_factors(self.u(x), self.offset)

    def right(self, y: Tensor) -> Tensor:
        """Return (n, rank + 2) of y: v, 1, b."""
        return _right_factors(self.v(y))

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


def _encoder(shape: Shape, outputs: int) -> nn.Sequential:
    """Return a network from rows of a shape to outputs: convolutions first, of images."""
    if len(shape) != 3:
        inner = _fully_connected([math.prod(shape), 128, 128, outputs], nn.SiLU)
        return nn.Sequential(nn.Flatten(), *inner)
    first, second = CONV_CHANNELS
    pixels = math.prod(math.ceil(math.ceil(side / 2) / 2) for side in shape[1:])
    return nn.Sequential(
        nn.Conv2d(shape[0], first, 5, stride=2, padding=2),
        nn.SiLU(),
        nn.Conv2d(first, second, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Flatten(),
        *_fully_connected([second * pixels, 128, outputs], nn.SiLU),
    )


def _start_at_zero(u: nn.Sequential, v: nn.Sequential) -> None:
    """Make scores zero before training, so that early stopping may return to independence."""
    for last in list(u.parameters())[-2:]:
        nn.init.zeros_(last)
    for last in list(v.parameters())[-2:]:  # of v only b: v itself gives u a gradient
        nn.init.zeros_(last[-1])


def _left_factors(u: Tensor, offset: Tensor) -> Tensor:
    return torch.cat([u[:, :-1], u[:, -1:] + offset, torch.ones_like(u[:, :1])], dim=1)


def _right_factors(v: Tensor) -> Tensor:
    return torch.cat([v[:, :-1], torch.ones_like(v[:, :1]), v[:, -1:]], dim=1)


def _fully_connected(sizes: Sequence[int], activation: Callable[[], nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])
