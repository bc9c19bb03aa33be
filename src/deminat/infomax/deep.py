"""Deep InfoMax: an encoder whose output is to tell much about every place of its image.

The local objective, without prior matching: the global vector of an image is the anchor, its
features at 8 x 8 places are the locations of its partner.

References:
    Hjelm et al. (2019), Learning deep representations by mutual information estimation and
    maximization. Liao et al. (2020), section 3.2, for the sizes.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .losses import InfoMaxLoss

__all__ = ["ConcatCritic", "DeepInfoMax", "DotCritic", "Encoder", "Features"]

LOCAL, CONV, FC, OUTPUT = 128, 256, 1024, 64


class Features(NamedTuple):
    """What an encoder makes of n images.

    Args:
        local: (n, places, 128), the features at each place after two convolutions.
        conv: (n, 256, h, w), after the third.
        fc: (n, 1024), after the hidden layer.
        output: (n, 64), the representation.
    """

    local: Tensor
    conv: Tensor
    fc: Tensor
    output: Tensor


class Encoder(nn.Module):
    """The paper's encoder: three convolutions, each halving the image, and two layers.

    Args:
        channels: Of the images.
        size: Height and width of the images, a multiple of 8.
    """

    def __init__(self, channels: int = 3, size: int = 32):
        super().__init__()
        if size < 8 or size % 8:
            raise ValueError(f"size must be a multiple of 8, got {size}")
        self.near = nn.Sequential(*_halving(channels, 64), *_halving(64, LOCAL))
        self.far = nn.Sequential(*_halving(LOCAL, CONV))
        inputs = CONV * (size // 8) ** 2
        # Batch norm has an offset of its own.
        self.hidden = nn.Sequential(nn.Linear(inputs, FC, bias=False), nn.BatchNorm1d(FC))
        self.last = nn.Linear(FC, OUTPUT)

    def forward(self, images: Tensor) -> Features:
        """Return the features of images (n, channels, size, size), whose values are in [-1, 1]."""
        near = self.near(images)
        conv = self.far(near)
        fc = self.hidden(conv.flatten(1)).relu()
        return Features(near.flatten(2).mT, conv, fc, self.last(fc))


class DotCritic(nn.Module):
    r"""Both sides through residual nets, then the inner product.

    Both nets end in layer normalisation, so that the product of untrained ones is of the size of
    the root of their units: far too loud for a log ratio, and a small rate takes epochs to calm it.
    The scaled critic $f = u \cdot v / \sqrt{\mathrm{units}} + a + b$ begins at size 1, and spends
    no direction of u and v on what either side, image or place, has by itself.

    Args:
        local: Length of the features at a place.
        output: Length of the global vector.
        units: Of both nets; 2,048 in the original.
        scaled: Divide by the root of the units and add offsets, which the original does not.
    """

    def __init__(
        self, local: int = LOCAL, output: int = OUTPUT, units: int = 512, *, scaled: bool = False
    ):
        super().__init__()
        self.of_output, self.of_local = _Residual(output, units), _Residual(local, units)
        sides = [nn.Linear(units, 1), nn.Linear(units, 1, bias=False)] if scaled else []
        self.offsets = nn.ModuleList(sides)

    def embedded(self, features: Features) -> tuple[Tensor, Tensor]:
        """Return anchors (n, r) and partners (n, places, r), whose inner products are scores."""
        anchors, partners = self.of_output(features.output), self.of_local(features.local)
        if not self.offsets:
            return anchors, partners
        of_image, of_place = self.offsets
        calm, one = anchors / math.sqrt(anchors.shape[-1]), torch.ones_like
        return (
            torch.cat([calm, of_image(anchors), one(anchors[:, :1])], dim=-1),
            torch.cat([partners, one(partners[..., :1]), of_place(partners)], dim=-1),
        )

    def forward(self, features: Features, strangers: Tensor | None) -> tuple[Tensor, ...]:
        """Return scores (n, places) and (n, k, places), or the table (n, n, places) of all pairs.

        Args:
            features: Of n images.
            strangers: (n, k) other images to score each with; `None` for all.
        """
        anchors, partners = self.embedded(features)
        table = (anchors @ partners.flatten(0, 1).T).view(len(anchors), *partners.shape[:2])
        if strangers is None:
            return (table,)
        joint = table.diagonal().T
        return joint, table.take_along_dim(strangers[:, :, None], dim=1)


class ConcatCritic(nn.Module):
    """Both sides beside each other through three layers.

    Args:
        local: Length of the features at a place.
        output: Length of the global vector.
        units: Of both hidden layers.
    """

    def __init__(self, local: int = LOCAL, output: int = OUTPUT, units: int = 512):
        super().__init__()
        # The first layer of two inputs side by side is the sum of a layer of each.
        self.of_output, self.of_local = nn.Linear(output, units), nn.Linear(local, units, False)
        self.rest = nn.Sequential(
            nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 1)
        )

    def forward(self, features: Features, strangers: Tensor | None) -> tuple[Tensor, ...]:
        """Return scores (n, places) and (n, k, places), or the table (n, n, places) of all pairs.

        Args:
            features: Of n images.
            strangers: (n, k) other images to score each with; `None` for all.
        """
        anchors, partners = self.of_output(features.output), self.of_local(features.local)
        if strangers is None:  # a line at a time, computed again on the way back: hidden layers of
            # all pairs would fill gigabytes
            line = partial(checkpoint, self._scores, use_reentrant=False)
            return (torch.stack([line(anchor, partners) for anchor in anchors]),)
        others = self._scores(anchors[:, None, None], partners[strangers])
        return self._scores(anchors[:, None], partners), others

    def _scores(self, anchors: Tensor, partners: Tensor) -> Tensor:
        scores: Tensor = self.rest(anchors + partners)
        return scores.squeeze(-1)


class DeepInfoMax(nn.Module):
    """An encoder with what it is trained by.

    Args:
        encoder: Its weights are what is wanted.
        critic: Scores its outputs with its local features.
        loss: Of those scores.
    """

    def __init__(self, encoder: nn.Module, critic: nn.Module, loss: InfoMaxLoss):
        super().__init__()
        self.encoder: nn.Module = encoder
        self.critic: nn.Module = critic
        self.loss: InfoMaxLoss = loss

    def forward(self, images: Tensor, strangers: Tensor | None = None) -> Tensor:
        """Return the loss of images with k strangers each, (n, k), or with all others."""
        features = self.encoder(images)
        if strangers is None and isinstance(self.critic, DotCritic):
            return self.loss.all_pairs(*self.critic.embedded(features))
        loss: Tensor = self.loss(*self.critic(features, strangers))
        return loss

    @torch.no_grad()
    def scores(self, images: Tensor) -> Tensor:
        """Return the table of scores (n, n, places) of all pairs of images."""
        table: Tensor
        (table,) = self.critic(self.encoder(images), None)
        return table


class _Residual(nn.Module):
    """Two layers beside a straight one, then layer normalisation; of places one by one."""

    def __init__(self, inputs: int, units: int):
        super().__init__()
        self.bent = nn.Sequential(nn.Linear(inputs, units), nn.ReLU(), nn.Linear(units, units))
        self.straight = nn.Linear(inputs, units, bias=False)
        self.norm = nn.LayerNorm(units)

    def forward(self, features: Tensor) -> Tensor:
        """Return (..., units) of features (..., inputs)."""
        embedded: Tensor = self.norm(self.bent(features) + self.straight(features))
        return embedded


def _halving(inputs: int, outputs: int) -> list[nn.Module]:
    """Return a convolution that halves height and width, normalised and rectified."""
    convolution = nn.Conv2d(inputs, outputs, 4, stride=2, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
