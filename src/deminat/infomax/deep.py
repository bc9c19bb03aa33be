"""Deep InfoMax: an encoder whose output is informative about every location of its image.

This is the local objective, without prior matching. The global vector of an image is the anchor;
its features at 8 x 8 locations are the partner.

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
    """Features of n images.

    Args:
        local: (n, locations, 128), after two convolutions.
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
    r"""The inner product of two residual networks, one for each side.

    Both networks end in layer normalisation, so that untrained scores are as large as the root of
    the units: overscaled for a log ratio, and a small learning rate takes epochs to reduce them.
    The scaled critic $f = u \cdot v / \sqrt{\mathrm{units}} + a + b$ begins at size 1. Its offsets,
    a of the image and b of the location, represent what depends on one side alone.

    Args:
        local: Length of the features at a location.
        output: Length of the global vector.
        units: Of both networks; 2,048 in the original.
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
        """Return anchors (n, r) and partners (n, locations, r), whose inner products are scores."""
        anchors, partners = self.of_output(features.output), self.of_local(features.local)
        if not self.offsets:
            return anchors, partners
        of_image, of_location = self.offsets
        scaled, one = anchors / math.sqrt(anchors.shape[-1]), torch.ones_like
        return (
            torch.cat([scaled, of_image(anchors), one(anchors[:, :1])], dim=-1),
            torch.cat([partners, one(partners[..., :1]), of_location(partners)], dim=-1),
        )

    def forward(self, features: Features, unpaired: Tensor | None) -> tuple[Tensor, ...]:
        """Return the scores of pairs (n, locations) and of unpaired samples (n, k, locations).

        Args:
            features: Of n images.
            unpaired: (n, k) other images to score each with. With `None`, only the table
                (n, n, locations) of all pairs is returned.
        """
        anchors, partners = self.embedded(features)
        table = (anchors @ partners.flatten(0, 1).T).view(len(anchors), *partners.shape[:2])
        if unpaired is None:
            return (table,)
        joint = table.diagonal().T
        return joint, table.take_along_dim(unpaired[:, :, None], dim=1)


class ConcatCritic(nn.Module):
    """Three layers over both sides, concatenated.

    Args:
        local: Length of the features at a location.
        output: Length of the global vector.
        units: Of both hidden layers.
    """

    def __init__(self, local: int = LOCAL, output: int = OUTPUT, units: int = 512):
        super().__init__()
        # The first layer of concatenated inputs is the sum of a layer of each.
        self.of_output, self.of_local = nn.Linear(output, units), nn.Linear(local, units, False)
        self.rest = nn.Sequential(
            nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 1)
        )

    def forward(self, features: Features, unpaired: Tensor | None) -> tuple[Tensor, ...]:
        """Return scores, as `DotCritic` does."""
        anchors, partners = self.of_output(features.output), self.of_local(features.local)
        if unpaired is None:
            # One anchor at a time, recomputed for the gradient: all hidden layers take gigabytes.
            line = partial(checkpoint, self._scores, use_reentrant=False)
            return (torch.stack([line(anchor, partners) for anchor in anchors]),)
        others = self._scores(anchors[:, None, None], partners[unpaired])
        return self._scores(anchors[:, None], partners), others

    def _scores(self, anchors: Tensor, partners: Tensor) -> Tensor:
        scores: Tensor = self.rest(anchors + partners)
        return scores.squeeze(-1)


class DeepInfoMax(nn.Module):
    """An encoder with the critic and the loss that train it.

    Args:
        encoder: The network to train.
        critic: Scores its outputs with its local features.
        loss: Of those scores.
    """

    def __init__(self, encoder: nn.Module, critic: nn.Module, loss: InfoMaxLoss):
        super().__init__()
        self.encoder, self.critic, self.loss = encoder, critic, loss

    def forward(self, images: Tensor, unpaired: Tensor | None = None) -> Tensor:
        """Return the loss of images, each with k unpaired ones, (n, k), or with all others."""
        features = self.encoder(images)
        if unpaired is None and isinstance(self.critic, DotCritic):
            return self.loss.all_pairs(*self.critic.embedded(features))
        loss: Tensor = self.loss(*self.critic(features, unpaired))
        return loss

    @torch.no_grad()
    def scores(self, images: Tensor) -> Tensor:
        """Return the table of scores (n, n, locations) of all pairs of images."""
        table: Tensor
        (table,) = self.critic(self.encoder(images), None)
        return table


class _Residual(nn.Module):
    """The sum of two layers and a linear one, then layer normalisation."""

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
