r"""The loss of all pairs of a batch with its gradient, by hand.

Of the $n^2$ pairs of a batch, what belongs to one side is done once a row:
- a separable critic gives $f = L R^\top$, and if $G$ holds the slopes, those of $L$ and $R$ are
  $G R$ and $G^\top L$;
- in one that concatenates, the first layer, a convolution too, is a sum, $A x_i + B y_j$, and its
  slopes, summed over j or i, are those of $A x_i$ and $B y_j$;
- where all images $y_j$ of a batch are alike, as they are at a black margin, what a convolution
  makes of a pair there is known from $x_i$.

Where information is high nearly all slopes of such a table are next to nothing: those that together
change the gradient by no more than rounding does are left out, and few pairs are pulled back.

Where torch may multiply in bfloat16, `torch.set_float32_matmul_precision("medium")`, the hidden
layers of a table are kept in it: on processors made for it that takes less than half of the time.
Weights, scores and what becomes of them stay in float32.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from ...critics.networks import ConvCritic, MLPCritic, SeparableCritic
from .layers import RELU, SILU, Layers, Written
from .loss_gradients import Slopes

__all__ = ["ConcatTable", "ConvTable", "SeparableTable", "split"]

_BLOCK = 256  # pairs of a table that are left out together
_FEW = 2 / 3  # share of a table up to which picking pairs takes less time than it saves


class _Pulled(NamedTuple):
    """A loss pulled back to the sums that it was made of.

    Args:
        loss: Of the table.
        grads: That of each weight after the sums.
        hidden: Slopes of the first layer's output, (m, hidden).
        sums: Slopes of the sums, (m, units).
        rows: (m,) which pairs these are, in the flattened table; `None` for all.
    """

    loss: float
    grads: list[Tensor]
    hidden: Tensor
    sums: Tensor
    rows: Tensor | None


class _Sums:
    """What follows the first layer of all pairs of a batch, a sum of a half of x and one of y.

    Args:
        rest: The layers after the first one and its activation.
        slopes: Those of the loss by each score.
        dtype: Of the weights.
    """

    def __init__(self, rest: nn.Sequential, slopes: Slopes, dtype: torch.dtype):
        self.dtype = _hidden_dtype(dtype)
        self.rest, self.slopes = Layers(rest, RELU, self.dtype), slopes

    def __call__(
        self, left: Tensor, right: Tensor, first: tuple[Tensor, Tensor] | None = None
    ) -> _Pulled:
        """Return the loss and where it was pulled back to.

        Args:
            left: Halves of x, (n, units).
            right: Halves of y, (n, units).
            first: Weight of the layer that follows, if not its own, and an offset of each x,
                (n, hidden).
        """
        n = len(left)
        sums = left.to(self.dtype).unsqueeze(1) + right.to(self.dtype)  # (n, n, units)
        if first is not None:
            first = first[0], first[1].to(self.dtype).repeat_interleave(n, dim=0)
        scores = self.rest(sums.relu_().flatten(0, 1), first).to(left.dtype).view(n, n)
        loss, slopes = self.slopes(scores)
        rows: Tensor | None = None
        matter = _that_matter(slopes, self.dtype)
        slopes = slopes.reshape(-1, 1).to(self.dtype)
        if len(matter) <= _FEW * n**2:
            self.rest.keep(matter)
            rows, slopes = matter, slopes.index_select(0, matter)
        grads, hidden = self.rest.pulled(slopes)
        sums = RELU.back(hidden @ self.rest.pairs[0][0], self.rest.seen[0])
        return _Pulled(loss, [grad.to(left.dtype) for grad in grads], hidden, sums, rows)


class ConcatTable:
    """The loss of all pairs of a batch under an `MLPCritic`, gradients included."""

    def __init__(self, critic: MLPCritic, slopes: Slopes):
        self.first = [w.detach() for w in critic.layers[0].parameters()]
        self.sums = _Sums(nn.Sequential(*list(critic.layers)[2:]), slopes, self.first[0].dtype)
        self.weights = list(critic.parameters())

    def __call__(self, x: Tensor, y: Tensor) -> Written:
        """Return the loss of x (n, ...) and y (n, ...)."""
        x, y = x.flatten(1), y.flatten(1)
        (weight, bias), n = self.first, len(x)
        of_x, of_y = weight[:, : x.shape[1]], weight[:, x.shape[1] :]
        loss, inner, _, slopes, rows = self.sums(torch.addmm(bias, x, of_x.T), y @ of_y.T)
        if rows is None:
            by_x, by_y = (_summed(slopes, None, n, side, x.dtype) for side in (0, 1))
            outer = [torch.cat([by_x.T @ x, by_y.T @ y], dim=1), by_x.sum(dim=0)]
        else:
            pairs = torch.cat([x.index_select(0, rows // n), y.index_select(0, rows % n)], dim=1)
            outer = [slopes.T @ pairs.to(slopes.dtype), slopes.sum(dim=0)]
        return Written(loss, self.weights, [*(grad.to(x.dtype) for grad in outer), *inner])


class ConvTable:
    """The loss of all pairs of a batch under a `ConvCritic`, gradients included.

    What is done once an image is differentiated automatically: it takes next to no time.
    """

    def __init__(self, critic: ConvCritic, slopes: Slopes):
        self.convolution = critic.convolution
        self.sums = _Sums(critic.layers, slopes, critic.convolution.weight.dtype)
        self.weights = list(critic.parameters())

    def __call__(self, x: Tensor, y: Tensor) -> Written:
        """Return the loss of x (n, c, h, w) and y (n, c', h, w)."""
        own, n = self.weights[:4], len(x)  # of the convolution and the layer that follows
        parts = self._once(x, y)
        left, right, *first = (part.detach() for part in parts)
        pulled = self.sums(left, right, (first[0], first[1]))
        slopes = [
            _summed(pulled.sums, pulled.rows, n, 0, x.dtype),
            _summed(pulled.sums, pulled.rows, n, 1, x.dtype),
            pulled.grads[0],
            _summed(pulled.hidden, pulled.rows, n, 0, x.dtype),
        ]
        outer = torch.autograd.grad(parts, own, slopes)
        return Written(pulled.loss, self.weights, [*outer, *pulled.grads[2:]])

    def _once(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return both halves and the weight where images y differ, and what the rest of x adds."""
        weight, bias, following, offset = self.weights[:4]
        left = self._convolved(x, weight[:, : x.shape[1]], bias)
        right = self._convolved(y, weight[:, x.shape[1] :])
        box = (slice(None), slice(None), *self._box(y))
        alike = torch.ones_like(left[:1])
        alike[box] = 0
        known = (left + right[:1]).relu() * alike
        added = linear(known.flatten(1), following, offset)
        apart = (left, right, following.view(-1, *left.shape[1:]))
        of_x, of_y, of_both = (each[box].flatten(1) for each in apart)
        return of_x, of_y, of_both, added

    def _convolved(self, images: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return what the convolution makes of one side, (n, channels, height, width)."""
        return conv2d(images, weight, bias, self.convolution.stride, self.convolution.padding)

    def _box(self, images: Tensor) -> tuple[slice, slice]:
        """Return the rows and columns of windows outside of which all images agree."""
        pixels = (images != images[0]).any(dim=0).any(dim=0).to(images.dtype)
        window = images.new_ones(1, 1, *self.convolution.kernel_size)
        differ = self._convolved(pixels.view(1, 1, *pixels.shape), window)[0, 0] > 0
        return _extent(differ.any(dim=1)), _extent(differ.any(dim=0))


def _extent(there: Tensor) -> slice:
    """Return the places from the first to the last of those (n,) that are true."""
    places = there.nonzero().flatten().tolist()
    return slice(places[0], places[-1] + 1) if places else slice(0, 0)


def _summed(slopes: Tensor, pairs: Tensor | None, n: int, side: int, dtype: torch.dtype) -> Tensor:
    """Return sums (n, units) of the slopes of pairs by their x, side 0, or by their y, side 1."""
    if pairs is None:
        return slopes.view(n, n, -1).sum(dim=1 - side).to(dtype)
    own = pairs % n if side else pairs // n
    sums = slopes.new_zeros(n, slopes.shape[1], dtype=dtype)
    return sums.index_add_(0, own, slopes.to(dtype))


class SeparableTable:
    """The loss of all pairs of a batch under a separable critic, gradients included."""

    def __init__(self, critic: SeparableCritic, columns: int, slopes: Slopes):
        self.u, self.v = Layers(critic.u, SILU), Layers(critic.v, SILU)
        self.offset, self.columns, self.slopes = critic.offset, columns, slopes
        self.weights = [self.offset, *self.u.weights, *self.v.weights]

    def __call__(self, x: Tensor, y: Tensor) -> Written:
        """Return the loss of x (n, d) and y (n, d')."""
        (x, x_start), (y, y_start) = split(x, self.columns), split(y, self.columns)
        u, v = self.u(x), self.v(y)
        rank, ones = u.shape[1] - 1, torch.ones_like(u[:, :1])
        u[:, rank] += self.offset.detach()
        left = torch.cat([u, ones, x_start], dim=1)
        right = torch.cat([v[:, :rank], ones, v[:, rank:], y_start], dim=1)
        loss, slopes = self.slopes(left @ right.T)
        of_u = slopes @ right[:, : rank + 1]
        of_v = slopes.T @ torch.cat([u[:, :rank], ones], dim=1)
        (u_grads, _), (v_grads, _) = self.u.pulled(of_u), self.v.pulled(of_v)
        return Written(loss, self.weights, [of_u[:, rank].sum(), *u_grads, *v_grads])


def split(a: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Return what a critic sees of rows (n, ...), and the last columns, of a start."""
    a = a.flatten(1)
    seen = a.shape[1] - columns
    return a[:, :seen], a[:, seen:]


def _hidden_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return what hidden layers of a table are computed in."""
    medium = torch.get_float32_matmul_precision() == "medium"
    return torch.bfloat16 if medium and dtype == torch.float32 else dtype


def _that_matter(slopes: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the places, in the flattened table (n, n), of slopes that rounding would not drown.

    All others together are less than rounding to `dtype` takes off the largest. They are left out
    by the block: products of ever new shapes are slow.
    """
    sizes, places = slopes.abs().flatten().sort()  # what is not a number comes last: all matter
    drowned = int((sizes.cumsum(0) < sizes[-1] * torch.finfo(dtype).eps).sum())
    matter = torch.ones_like(places, dtype=torch.bool)
    matter[places[: drowned // _BLOCK * _BLOCK]] = False
    return matter.nonzero().squeeze(1)
