"""Probes measure a representation by the accuracy of a classifier on the frozen features.

A probe is a network of one hidden layer, trained on the features of labelled images and tested on
others. Its accuracy shows which classes are easy to read from the representation.

References:
    Hjelm et al. (2019), section 4.1. Liao et al. (2020), section 3.2.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

__all__ = ["Probe", "accuracy", "encoded", "probed", "scaled"]

_HIDDEN, _DROPOUT = 200, 0.1
_AT_ONCE = 500  # images


class Probe(nn.Sequential):
    """A classifier with one hidden layer of 200.

    Args:
        inputs: Length of the features.
        classes: Number of classes.
    """

    def __init__(self, inputs: int, classes: int):
        super().__init__(
            nn.Flatten(),
            nn.Linear(inputs, _HIDDEN),
            nn.Dropout(_DROPOUT),
            nn.BatchNorm1d(_HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, classes),
        )


def scaled(images: Tensor) -> Tensor:
    """Return bytes 0 to 255 as numbers from -1 to 1."""
    return images.float().div_(127.5).sub_(1)


@torch.no_grad()
def encoded(encoder: nn.Module, images: Tensor) -> Iterator[Any]:
    """Yield the features of images, bytes (n, c, h, w), by a frozen encoder, some at a time."""
    device = next(encoder.parameters()).device
    before = encoder.training
    encoder.eval()
    for some in torch.split(images, _AT_ONCE):
        yield encoder(scaled(some.to(device)))
    encoder.train(before)


def probed(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    classes: int,
    *,
    epochs: int = 10,
    batch: int = 256,
    rate: float = 1e-3,
    seed: int = 0,
) -> float:
    """Train a probe and return its accuracy on test features.

    Args:
        train: Features (n, ...) and labels (n,).
        test: The same of other images.
        classes: Number of classes.
        epochs: Of the training, by Adam with a learning rate that falls linearly to 0.
        batch: Features a step.
        rate: Initial learning rate.
        seed: Of weights, order and dropout.
    """
    features, labels = train
    n, device = len(features), features.device
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device]):
        torch.manual_seed(seed)
        probe = Probe(features[0].numel(), classes).to(device)
        optimizer = torch.optim.Adam(probe.parameters(), rate, fused=True)
        steps = epochs * max(1, n // batch)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, max(1, steps))
        for _ in range(epochs):
            order = torch.randperm(n, device=device)
            for rows in torch.split(order, batch)[: max(1, n // batch)]:
                loss = cross_entropy(probe(features[rows]), labels[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return accuracy(probe, *test)


@torch.no_grad()
def accuracy(classifier: nn.Module, features: Tensor, labels: Tensor) -> float:
    """Return the share of features whose most probable class is their label."""
    classifier.eval()
    found = [classifier(some).argmax(1) for some in torch.split(features, _AT_ONCE)]
    return float((torch.cat(found) == labels).float().mean())
