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

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch

from ..errors import DataError
from ..store import Cell, Row, key_of, replaced
from ..training import one_thread
from .encoder import CRITICS, DATASETS, TRAINED, EncoderRun
from .together import rank

__all__ = ["InfoMaxStudy", "run_infomax", "serving"]

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
        fixed = {key: getattr(self, key) for key in _FIXED}
        return [
            {"training": training, "draw": draw, **fixed}
            for draw in range(self.reps)
            for training in self.trainings
        ]


def serving(objective: str) -> str:
    """Return the training that serves an objective."""
    for training, objectives in TRAINED.items():
        if objective in (training, *(o.name for o in objectives)):
            return training
    known = dict.fromkeys(o.name for objectives in TRAINED.values() for o in objectives)
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
        run = EncoderRun(cell, torch.device(device))
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


def _name(cell: Cell) -> str:
    """Return the name of a cell's checkpoint."""
    digest = hashlib.sha256(key_of(cell).encode()).hexdigest()[:12]
    return f"{cell['training']}-{cell['draw']}-{digest}"
