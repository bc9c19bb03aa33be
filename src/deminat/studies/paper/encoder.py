"""One training of an encoder: its steps, and its evaluation by probes.

Each epoch has its own seed, so that a training that continues from a snapshot ends with the same
rows as one that was never interrupted.
"""

import math
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from ... import datasets
from ...errors import DataError, TrainingError
from ...infomax import (
    ConcatCritic,
    DeepInfoMax,
    DotCritic,
    Encoder,
    Features,
    InfoMaxLoss,
    partners,
)
from ...infomax.deep import CONV
from ...infomax.probes import Probe, accuracy, encoded, probed, scaled
from ...objectives import DEMI, JSD, MINE, SMILE, InfoNCE, Objective
from ...runtime.rowstore import Cell, Row
from ...runtime.sweep import report_progress
from .distributed import rank, ranks
from .recipe import check_bfloat16

__all__ = ["CRITICS", "DATASETS", "TRAINED", "EncoderRun", "adam", "objectives_of", "training_step"]

# Each training with the objectives that it serves; none for one that learns from labels. 1/64 is
# the share of joint pairs among all pairs of a batch. MINE divides by the mean of the batch, as
# Deep InfoMax does: over hundreds of thousands of scores its bias is small, while a moving average
# would include for thousands of steps the scores of the untrained critic, e^50 and more.
TRAINED: dict[str, tuple[Objective, ...]] = {
    "demi": (DEMI(), JSD(), SMILE(1.0), SMILE(5.0)),
    "mine": (MINE(rate=1.0),),
    "infonce": (InfoNCE(),),
    "supervised": (),
    "demi(alpha=0.25)": (DEMI(0.25),),
    "demi(alpha=0.015625)": (DEMI(1 / 64),),
}
CRITICS: dict[str, Callable[..., nn.Module]] = {
    "dot": DotCritic,
    "scaled": partial(DotCritic, scaled=True),
    "normalised": partial(DotCritic, scaled=True),
    "concat": ConcatCritic,
}
_NORMALISED = {"normalised"}  # by the unpaired samples of each anchor
DATASETS: dict[str, tuple[Callable[..., Any], int]] = {  # with the number of classes
    "cifar10": (datasets.cifar10, 10),
    "cifar100": (datasets.cifar100, 100),
}
_RATE = 1e-4
_TEST_IMAGES = 2_048  # for estimates of mutual information
_LEAST = 256  # images
_PROBES = ("conv", "fc", "output")


def objectives_of(training: str) -> tuple[Objective, ...]:
    """Return the objectives that a training serves: one of the table, or DEMI at any alpha."""
    if training in TRAINED:
        return TRAINED[training]
    found = re.fullmatch(r"demi\(alpha=(0?\.\d+)\)", training)
    if found is None or not float(found[1]) > 0:
        known = dict.fromkeys(o.name for objectives in TRAINED.values() for o in objectives)
        raise DataError(
            f"no objective {training!r}; there are {', '.join(known)} and supervised; demi takes "
            "any alpha between 0 and 1"
        )
    return (DEMI(float(found[1])),)


class EncoderRun:
    """One training: the model, its optimizer, and the rows so far."""

    def __init__(self, cell: Cell, device: torch.device):
        self.cell, self.device = cell, device
        read, self.classes = DATASETS[cell["dataset"]]
        self.train_set, self.test_set = (_images(read, split, cell) for split in ("train", "test"))
        self.objectives = objectives_of(cell["training"])
        self.model = _model(cell, self.classes).to(device)
        self.rows: list[Row] = []
        self.epoch, self.seconds = 0, 0.0
        self.loss: float | None = None
        if cell["batch"] % ranks():
            raise DataError(f"a batch of {cell['batch']} cannot be shared by {ranks()} processes")
        parallel = DistributedDataParallel(self.model) if ranks() > 1 else self.model
        self.optimizer = adam(self.model)
        self.step = training_step(parallel, self.optimizer, device, cell["precision"])

    def train(self) -> None:
        """Train for one epoch."""
        images, labels = self.train_set
        seed = 1_000_003 * self.cell["draw"] + self.epoch
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        batch, losses = self.cell["batch"], []
        order = torch.randperm(len(images), generator=generator)
        batches = torch.split(order, batch)[: len(images) // batch]
        start = time.perf_counter()
        for i, rows in enumerate(batches):
            own = rows.chunk(ranks())[rank()]
            losses.append(self.step(images[own], self._second_input(labels[own], generator)))
            report_progress((self.epoch + (i + 1) / len(batches)) / self.cell["epochs"])
        self.seconds = time.perf_counter() - start
        self.loss = float(torch.stack(losses).mean())
        if not math.isfinite(self.loss):
            raise TrainingError(f"the loss was {self.loss} in epoch {self.epoch + 1}")
        self.epoch += 1

    def _second_input(self, labels: Tensor, generator: torch.Generator) -> Tensor | None:
        """Return what a step needs besides images: labels, or unpaired partners if not all."""
        if not self.objectives:
            return labels.to(self.device)
        k = self.cell["negatives"]
        return partners(len(labels), k, generator).to(self.device) if k else None

    def evaluate(self) -> None:
        """Add the rows of an epoch."""
        if rank() > 0:
            return
        if self.epoch == 0:
            self._calibrate()
        self.model.eval()
        speed = len(self.train_set[0]) / self.seconds if self.epoch else None
        row = {"epoch": self.epoch, "loss": self.loss, **self._accuracies()}
        row["images_per_second"] = speed
        for method, estimate in self._estimates().items():
            self.rows.append({**self.cell, "method": method, "estimate": estimate, **row})
        self.model.train()

    def _estimates(self) -> dict[str, float | None]:
        """Return the estimates of mutual information in nats on test images, by objective."""
        if isinstance(self.model, _Supervised):
            return {"supervised": None}
        images, batch = self.test_set[0][:_TEST_IMAGES], self.cell["batch"]
        batches = torch.split(images, batch)[: len(images) // batch]
        tables = [self.model.scores(scaled(some.to(self.device))) for some in batches]
        estimates: dict[str, float | None] = {}
        for objective in self.objectives:
            loss = InfoMaxLoss(objective, normalise=self.model.loss.normalise, gather=False)
            estimates[objective.name] = float(torch.stack([*map(loss.estimate, tables)]).mean())
        return estimates

    def _accuracies(self) -> dict[str, float | None]:
        """Return the share of test images that probes classify rightly, if they are due."""
        found: dict[str, float | None] = dict.fromkeys(_PROBES)
        cell = self.cell
        if isinstance(self.model, _Supervised):
            found["conv"] = self.model.accuracy(*self.test_set)
        elif self.epoch % cell["probe_every"] == 0 or self.epoch == cell["epochs"]:
            encoder = self.model.encoder
            sets = [_features(encoder, images) for images, _ in (self.train_set, self.test_set)]
            labels = [labels.to(self.device) for _, labels in (self.train_set, self.test_set)]
            for name in _PROBES:
                train, test = ((s[name], label) for s, label in zip(sets, labels, strict=True))
                epochs, seed = cell["probe_epochs"], cell["draw"]
                found[name] = probed(train, test, self.classes, epochs=epochs, seed=seed)
        return found

    def _calibrate(self) -> None:
        """Set the statistics of batch norm in the untrained encoder, from training images."""
        model = self.model
        encoder = model.convolutions if isinstance(model, _Supervised) else model.encoder
        encoder.train()
        with torch.no_grad():
            for some in torch.split(self.train_set[0][: 100 * self.cell["batch"]], 64):
                encoder(scaled(some.to(self.device)))

    def state(self) -> dict[str, Any]:
        """Return all that is needed to continue, but for the cell."""
        optimizer = self.optimizer.state_dict()
        return {
            "epoch": self.epoch,
            "model": dict(self.model.state_dict()),
            "moments": list(optimizer["state"].values()),
            "rows": self.rows,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.model.load_state_dict(state["model"])
        groups = self.optimizer.state_dict()["param_groups"]
        moments = dict(enumerate(state["moments"]))
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.epoch, self.rows = state["epoch"], state["rows"]


def adam(model: nn.Module) -> torch.optim.Adam:
    """Return the paper's optimizer."""
    return torch.optim.Adam(model.parameters(), _RATE, fused=True)


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    precision: str = "float32",
) -> Callable[[Tensor, Tensor | None], Tensor]:
    """Return a step of training: from bytes, and the model's second input, to the loss."""
    check_bfloat16(precision)

    def step(images: Tensor, second: Tensor | None) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            loss: Tensor = model(scaled(images.to(device)), second)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    return step


class _Supervised(nn.Module):
    """The encoder's convolutions with a probe, trained together."""

    def __init__(self, convolutions: nn.Module, probe: Probe):
        super().__init__()
        self.convolutions, self.probe = convolutions, probe

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the cross-entropy of the labels."""
        return cross_entropy(self.probe(self.convolutions(images)), labels)

    def accuracy(self, images: Tensor, labels: Tensor) -> float:
        """Return the share of images, as bytes, that are classified rightly."""
        conv = torch.cat(list(encoded(self.convolutions, images)))
        return accuracy(self.probe, conv, labels.to(conv.device))


def _model(cell: Cell, classes: int) -> DeepInfoMax | _Supervised:
    encoder, objectives = Encoder(), objectives_of(cell["training"])
    if not objectives:
        convolutions = nn.Sequential(encoder.near, encoder.far)
        return _Supervised(convolutions, Probe(CONV * 4 * 4, classes))
    critic = CRITICS[cell["critic"]](units=cell["units"])
    loss = InfoMaxLoss(objectives[0], normalise=cell["critic"] in _NORMALISED)
    return DeepInfoMax(encoder, critic, loss)


def _images(read: Callable[..., Any], split: str, cell: Cell) -> tuple[Tensor, Tensor]:
    """Return the first images, bytes (n, 3, 32, 32), and their labels."""
    images, labels = read(split, check=cell["check"])
    count = max(_LEAST, round(cell["scale"] * len(images)))
    return torch.from_numpy(images[:count]), torch.from_numpy(labels[:count]).long()


def _features(encoder: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Return the features that probes classify, of all images."""
    some: list[Features] = list(encoded(encoder, images))
    return {name: torch.cat([getattr(f, name) for f in some]) for name in _PROBES}
