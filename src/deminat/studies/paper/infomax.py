r"""Deep InfoMax with each objective, section 3.2: which learns the best representation?

An encoder is trained to make its output tell much about every place of its image, and judged by
probes on its frozen features (see `deminat.infomax`). DEMI at alpha = 1/2, JSD and SMILE have one
gradient up to a factor that Adam takes out, so one training serves all of them and only their
readings of the mutual information differ: what the paper's table shows between them is not due to
the loss. `demi(alpha=...)`, MINE and InfoNCE are trained apart; `supervised` trains the encoder
with a probe on its convolutions and the labels.

Mutual information is read on test images, all others of a batch as unpaired partners. Epoch 0 is
the random encoder.

References:
    Liao et al. (2020), section 3.2. Hjelm et al. (2019), Learning deep representations by mutual
    information estimation and maximization.
"""

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import torch

from ...errors import DataError
from ...runtime.process import one_thread
from ...runtime.rowstore import Cell, Row
from .distributed import broadcast_runs, ranks
from .encoder import CRITICS, DATASETS, TRAINED, EncoderRun, objectives_of
from .figures import NORMALISED
from .snapshots import Snapshots

__all__ = ["InfoMaxStudy", "run_infomax", "training_for", "with_names"]

_NOT_OF_A_CELL = {"trainings", "reps"}


@dataclass(frozen=True)
class InfoMaxStudy:
    """What to run.

    Args:
        dataset: Images and labels.
        trainings: What to train by.
        epochs: Of the encoder.
        critic: `dot`, `scaled`, `normalised` (scaled, see `InfoMaxLoss`) or `concat`.
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
    trainings: tuple[str, ...] = tuple(TRAINED)
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
            ("dataset", DATASETS),
            ("critic", CRITICS),
            ("precision", ("float32", "bfloat16")),
        ):
            if getattr(self, name) not in known:
                raise DataError(f"{name} must be {' or '.join(known)}")
        if not 0 <= self.negatives < self.batch or self.batch < 2:
            raise DataError("a batch needs 2 images, and more of them than negatives")

    def cells(self) -> list[Cell]:
        """Return a cell for each training."""
        names = [f.name for f in fields(self) if f.name not in _NOT_OF_A_CELL]
        fixed = {name: getattr(self, name) for name in names}
        return [
            {"training": training, "draw": draw, **fixed}
            for draw in range(self.reps)
            for training in self.trainings
        ]


def training_for(objective: str) -> str:
    """Return the training that serves an objective."""
    for training, objectives in TRAINED.items():
        if objective in (training, *(o.name for o in objectives)):
            return training
    (own,) = objectives_of(objective)  # which is read off no other
    return own.name


def with_names(rows: list[Row]) -> list[Row]:
    """Return the rows with what sets a method apart from others under the same critic."""
    return [{**row, "method": _name(row)} for row in rows]


def _name(row: Row) -> str:
    name: str = row["method"].removesuffix(NORMALISED)
    return name + (NORMALISED if row["critic"] == "normalised" else "")


def run_infomax(cell: Cell, folder: Path | None = None, device: str = "cpu") -> list[Row]:
    """Train an encoder and return a row for each epoch and readout.

    Args:
        cell: What to train.
        folder: Where checkpoints are; `None` keeps none.
        device: Where to train.

    Batch norm and, but for all pairs of the dot critic, strangers are those of a process: rows tell
    how many processes trained together, and on what.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["draw"])
        run = EncoderRun(cell, torch.device(device))
        kept = None if folder is None else Snapshots(folder, cell)
        if kept is None or not kept.restore(run):
            run.look(0)
        while run.epoch < cell["epochs"]:
            run.train()
            run.look(run.epoch)
            if kept is not None:
                broadcast_runs(partial(kept.keep, run))
        trained = {"processes": ranks(), "device": torch.device(device).type}
        return [{**row, **trained} for row in run.rows]
