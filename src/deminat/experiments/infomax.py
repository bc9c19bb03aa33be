r"""Deep InfoMax with each objective, section 3.2: which learns the best representation?

An encoder is trained to make its output tell much about every place of its image, and judged by
probes on its frozen features (see `deminat.infomax`). DEMI at alpha = 1/2, JSD and SMILE have one
gradient up to a factor that Adam takes out, so one training serves all of them and only their
readings of the mutual information differ: what the paper's table shows between them is not due to
the loss. `demi(alpha=...)`, MINE and InfoNCE are trained apart; `supervised` trains the encoder
with a probe on its convolutions and the labels.

Mutual information is read on test images, all others of a batch as unpaired partners. Epoch 0 is
the random encoder. After each epoch everything is kept in a checkpoint, and a run that was killed
goes on from there, with the same rows at the end.

References:
    Liao et al. (2020), section 3.2. Hjelm et al. (2019), Learning deep representations by mutual
    information estimation and maximization.
"""

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from .. import datasets
from ..errors import DataError, TrainingError
from ..infomax import ConcatCritic, DeepInfoMax, DotCritic, Encoder, Features, InfoMaxLoss, partners
from ..infomax.deep import CONV
from ..infomax.probes import Probe, accuracy, encoded, probed, scaled
from ..objectives import DEMI, JSD, MINE, SMILE, InfoNCE, Objective
from ..store import Cell, Row, key_of, replaced
from ..sweeps import tell
from ..training import one_thread
from .together import rank, ranks

__all__ = ["InfoMaxStudy", "adam", "run_infomax", "serving", "step_of"]

_TRAINED: dict[str, tuple[Objective, ...]] = {
    "demi": (DEMI(), JSD(), SMILE(1.0), SMILE(5.0)),
    "mine": (MINE(),),
    "infonce": (InfoNCE(),),
    "supervised": (),
    "demi(alpha=0.25)": (DEMI(0.25),),
    "demi(alpha=0.75)": (DEMI(0.75),),
}
_CRITICS: dict[str, Callable[..., nn.Module]] = {"dot": DotCritic, "concat": ConcatCritic}
_DATASETS: dict[str, tuple[Callable[..., Any], int]] = {
    "cifar10": (datasets.cifar10, 10),
    "cifar100": (datasets.cifar100, 100),
}
_RATE = 1e-4
_READ = 2_048  # test images to read mutual information on
_LEAST = 256  # images
_PROBES = ("conv", "fc", "output")
_FIXED = (
    "dataset",
    "critic",
    "units",
    "negatives",
    "batch",
    "epochs",
    "probe_epochs",
    "probe_every",
    "precision",
    "scale",
    "check",
)


@dataclass(frozen=True)
class InfoMaxStudy:
    """What to run.

    Args:
        dataset: Images and labels.
        trainings: What to train by.
        epochs: Of the encoder.
        critic: `dot` or `concat`.
        units: Of the critic; 2,048 in the original.
        negatives: Other images that each is scored with; 0 for all of its batch.
        batch: Images a step, of all processes together.
        probe_epochs: Of the probes.
        probe_every: Epochs between two looks with probes.
        precision: `float32`, or `bfloat16` for mixed precision.
        reps: Seeds.
        scale: Share of the images to take, for a quick look.
        check: Whether the images must be the published ones.
    """

    dataset: str = "cifar10"
    trainings: tuple[str, ...] = tuple(_TRAINED)
    epochs: int = 100
    critic: str = "dot"
    units: int = 2048
    negatives: int = 0
    batch: int = 64
    probe_epochs: int = 10
    probe_every: int = 2
    precision: str = "float32"
    reps: int = 1
    scale: float = 1.0
    check: bool = True

    def __post_init__(self) -> None:
        for name, known in (
            ("dataset", _DATASETS),
            ("critic", _CRITICS),
            ("precision", ("float32", "bfloat16")),
        ):
            if getattr(self, name) not in known:
                raise DataError(f"{name} must be {' or '.join(known)}")
        if not 0 <= self.negatives < self.batch or self.batch < 2:
            raise DataError("a batch needs 2 images, and more of them than negatives")

    def cells(self) -> list[Cell]:
        """Return a cell for each training."""
        fixed = {key: getattr(self, key) for key in _FIXED}
        return [
            {"training": training, "draw": draw, **fixed}
            for draw in range(self.reps)
            for training in self.trainings
        ]


def serving(objective: str) -> str:
    """Return the training that serves an objective."""
    for training, objectives in _TRAINED.items():
        if objective in (training, *(o.name for o in objectives)):
            return training
    known = dict.fromkeys(o.name for objectives in _TRAINED.values() for o in objectives)
    raise DataError(f"no objective {objective!r}; there are {', '.join(known)} and supervised")


def run_infomax(cell: Cell, folder: Path | None = None, device: str = "cpu") -> list[Row]:
    """Train an encoder and return a row for each epoch and readout.

    Args:
        cell: What to train.
        folder: Where checkpoints are; `None` keeps none.
        device: Where to train.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["draw"])
        run = _Run(cell, torch.device(device))
        path = None if folder is None else folder / f"{_name(cell)}.pt"
        if path is not None and path.exists():
            run.resume(path)
        else:
            run.look(0)
        while run.epoch < cell["epochs"]:
            run.train()
            run.look(run.epoch)
            if path is not None and rank() == 0:
                replaced(path, run.save)
        return run.rows


class _Run:
    """One training: the model, what trains it, and the rows so far."""

    def __init__(self, cell: Cell, device: torch.device):
        self.cell, self.device = cell, device
        read, self.classes = _DATASETS[cell["dataset"]]
        self.train_set, self.test_set = (_images(read, split, cell) for split in ("train", "test"))
        self.objectives = _TRAINED[cell["training"]]
        self.model = _model(cell, self.classes).to(device)
        self.rows: list[Row] = []
        self.epoch, self.seconds = 0, 0.0
        self.loss: float | None = None
        several = ranks() > 1
        if cell["batch"] % ranks():
            raise DataError(f"a batch of {cell['batch']} cannot be shared by {ranks()} processes")
        parallel = DistributedDataParallel(self.model) if several else self.model
        self.optimizer = adam(self.model)
        self.step = step_of(parallel, self.optimizer, device, cell["precision"])

    def train(self) -> None:
        """Train for one epoch."""
        images, labels = self.train_set
        # Of each epoch anew, so that one which goes on from a checkpoint draws the same.
        seed = 1_000_003 * self.cell["draw"] + self.epoch
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        batch, losses = self.cell["batch"], []
        order = torch.randperm(len(images), generator=generator)
        batches = torch.split(order, batch)[: len(images) // batch]
        start = time.perf_counter()
        for i, rows in enumerate(batches):
            own = rows.chunk(ranks())[rank()]
            with_what = self._beside(labels[own], generator)
            losses.append(self.step(images[own], with_what))
            tell((self.epoch + (i + 1) / len(batches)) / self.cell["epochs"])
        self.seconds = time.perf_counter() - start
        self.loss = float(torch.stack(losses).mean())
        if not math.isfinite(self.loss):
            raise TrainingError(f"the loss was {self.loss} in epoch {self.epoch + 1}")
        self.epoch += 1

    def _beside(self, labels: Tensor, generator: torch.Generator) -> Tensor | None:
        """Return what a step needs beside images: labels, or who is scored with whom."""
        if not self.objectives:
            return labels.to(self.device)
        k = self.cell["negatives"]
        return partners(len(labels), k, generator).to(self.device) if k else None

    def look(self, epoch: int) -> None:
        """Add the rows of an epoch."""
        if rank() > 0:
            return
        self.model.eval()
        found = self._accuracies(epoch)
        speed = len(self.train_set[0]) / self.seconds if epoch else None
        row = {"epoch": epoch, "loss": self.loss, **found, "images_per_second": speed}
        for method, estimate in self._estimates().items():
            self.rows.append({**self.cell, "method": method, "estimate": estimate, **row})
        self.model.train()

    def _estimates(self) -> dict[str, float | None]:
        """Return mutual information in nats on test images, by each readout."""
        if isinstance(self.model, _Supervised):
            return {"supervised": None}
        images, batch = self.test_set[0][:_READ], self.cell["batch"]
        batches = torch.split(images, batch)[: len(images) // batch]
        tables = [self.model.scores(scaled(some.to(self.device))) for some in batches]
        return {o.name: _mean_estimate(o, tables) for o in self.objectives}

    def _accuracies(self, epoch: int) -> dict[str, float | None]:
        """Return the share of test images that probes classify rightly, if they are due."""
        found: dict[str, float | None] = dict.fromkeys(_PROBES)
        cell = self.cell
        if isinstance(self.model, _Supervised):
            found["conv"] = self.model.accuracy(*self.test_set)
        elif epoch % cell["probe_every"] == 0 or epoch == cell["epochs"]:
            encoder = self.model.encoder if epoch else self._random_encoder(self.model.encoder)
            sets = [_features(encoder, images) for images, _ in (self.train_set, self.test_set)]
            labels = [labels.to(self.device) for _, labels in (self.train_set, self.test_set)]
            for name in _PROBES:
                train, test = ((s[name], label) for s, label in zip(sets, labels, strict=True))
                how = {"epochs": cell["probe_epochs"], "seed": cell["draw"]}
                found[name] = probed(train, test, self.classes, **how)
        return found

    def _random_encoder(self, encoder: nn.Module) -> nn.Module:
        """Return the encoder as it is, but for batch norms that know the images."""
        encoder = copy.deepcopy(encoder).train()
        with torch.no_grad():
            for some in torch.split(self.train_set[0][: 100 * self.cell["batch"]], 64):
                encoder(scaled(some.to(self.device)))
        return encoder

    def save(self, path: Path) -> None:
        """Write all that is needed to go on."""
        torch.save(
            {
                "cell": key_of(self.cell),
                "epoch": self.epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "rows": json.dumps(self.rows),
            },
            path,
        )

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint."""
        try:
            kept = torch.load(path, map_location=self.device, weights_only=True)
            if kept["cell"] != key_of(self.cell):
                raise ValueError("it is of another training")
            self.model.load_state_dict(kept["model"])
            self.optimizer.load_state_dict(kept["optimizer"])
            self.epoch, self.rows = kept["epoch"], json.loads(kept["rows"])
        except Exception as error:  # whatever a foreign or damaged file may cause
            raise DataError(f"cannot go on from {path.name} ({error}): delete it") from error


def adam(model: nn.Module) -> torch.optim.Adam:
    """Return the paper's optimizer."""
    return torch.optim.Adam(model.parameters(), _RATE, fused=True)


def step_of(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    precision: str = "float32",
) -> Callable[[Tensor, Tensor | None], Tensor]:
    """Return a step of training: from bytes, and what a model needs beside, to the loss."""

    def step(images: Tensor, beside: Tensor | None) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            loss: Tensor = model(scaled(images.to(device)), beside)
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


def _mean_estimate(objective: Objective, tables: list[Tensor]) -> float:
    reading = InfoMaxLoss(objective, gather=False)
    return float(torch.stack([reading.estimate(table) for table in tables]).mean())


def _model(cell: Cell, classes: int) -> DeepInfoMax | _Supervised:
    encoder, objectives = Encoder(), _TRAINED[cell["training"]]
    if not objectives:
        convolutions = nn.Sequential(encoder.near, encoder.far)
        return _Supervised(convolutions, Probe(CONV * 4 * 4, classes))
    critic = _CRITICS[cell["critic"]](units=cell["units"])
    return DeepInfoMax(encoder, critic, InfoMaxLoss(objectives[0]))


def _images(read: Callable[..., Any], split: str, cell: Cell) -> tuple[Tensor, Tensor]:
    """Return the first images, bytes (n, 3, 32, 32), and their labels."""
    images, labels = read(split, check=cell["check"])
    count = max(_LEAST, round(cell["scale"] * len(images)))
    return torch.from_numpy(images[:count]), torch.from_numpy(labels[:count]).long()


def _features(encoder: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Return what the probes are for, of all images."""
    some: list[Features] = list(encoded(encoder, images))
    return {name: torch.cat([getattr(f, name) for f in some]) for name in _PROBES}


def _name(cell: Cell) -> str:
    """Return the name of a cell's checkpoint."""
    digest = hashlib.sha256(key_of(cell).encode()).hexdigest()[:12]
    return f"{cell['training']}-{cell['draw']}-{digest}"
