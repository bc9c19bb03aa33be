r"""Deep InfoMax with each objective, section 3.2: which learns the best representation?

An encoder is trained so that its output is informative about every location of its image, and
evaluated by probes on its frozen features (see `deminat.infomax`). DEMI at alpha = 1/2, JSD and
SMILE have one gradient up to a factor, which Adam removes. So one training serves all of them and
only their estimates differ: the loss does not explain the differences in the paper's table.
`demi(alpha=...)`, MINE and InfoNCE are trained separately; `supervised` trains the encoder with a
probe on its convolutions and the labels.

Mutual information is estimated on test images, all others of a batch as unpaired partners. Epoch 0
is the random encoder.

References:
    Liao et al. (2020), section 3.2. Hjelm et al. (2019), Learning deep representations by mutual
    information estimation and maximization.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from ...errors import DataError
from ...runtime.process import one_thread
from ...runtime.rowstore import Cell, Row
from .distributed import ranks, run_on_first
from .encoder import CRITICS, DATASETS, TRAINED, EncoderRun, objectives_of
from .figures import NORMALISED
from .recipe import check_study, unchecked
from .snapshots import Snapshots
from .tables import Table, entry

__all__ = [
    "InfoMaxStudy",
    "infomax_setting",
    "infomax_tables",
    "run_infomax",
    "training_for",
    "with_names",
]

_NOT_IN_CELLS = {"trainings", "reps"}
_PAPER = {  # top-1 accuracy of conv and fc after long training, Liao et al. (2020), table 1
    "supervised": {"cifar10": ("75.39", ""), "cifar100": ("42.27", "")},
    "mine": {"cifar10": ("71.36", "66.30"), "cifar100": ("42.52", "37.23")},
    "smile(tau=5)": {"cifar10": ("71.88", "66.92"), "cifar100": ("42.74", "37.48")},
    "smile(tau=1)": {"cifar10": ("71.12", "66.22"), "cifar100": ("42.13", "37.10")},
    "jsd": {"cifar10": ("72.79", "67.94"), "cifar100": ("42.78", "37.76")},
    "infonce": {"cifar10": ("73.73", "69.77"), "cifar100": ("44.91", "39.95")},
    "demi": {"cifar10": ("74.09", "70.16"), "cifar100": ("45.59", "42.02")},
}


@dataclass(frozen=True)
class InfoMaxStudy:
    """Settings of the experiment.

    Args:
        dataset: Images and labels.
        trainings: Names of trainings.
        epochs: Of the encoder.
        critic: `dot`, `scaled`, `normalised` (scaled, see `InfoMaxLoss`) or `concat`.
        units: Of the critic; 2,048 in the original.
        negatives: Unpaired images for each; 0 for all others of its batch.
        batch: Images a step, of all processes together.
        probe_epochs: Of the probes.
        probe_every: Epochs between two evaluations by probes.
        precision: `float32`, or `bfloat16` for mixed precision.
        reps: Number of seeds.
        scale: Share of the images to use, for a quick run.
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
        check_study(self.scale, self.precision)
        known: tuple[tuple[str, Collection[str]], ...] = ("dataset", DATASETS), ("critic", CRITICS)
        for name, values in known:
            if getattr(self, name) not in values:
                raise DataError(f"{name} must be {' or '.join(values)}")
        if not 0 <= self.negatives < self.batch or self.batch < 2:
            raise DataError("a batch needs 2 images, and more of them than negatives")

    def cells(self) -> list[Cell]:
        """Return a cell for each training."""
        fixed = {k: v for k, v in vars(self).items() if k not in _NOT_IN_CELLS}
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
    (own,) = objectives_of(objective)  # which no other training serves
    return own.name


def with_names(rows: list[Row]) -> list[Row]:
    """Return the rows with methods whose names say whether the critic is normalised."""
    ends = (NORMALISED if row["critic"] == "normalised" else "" for row in rows)
    return [
        {**row, "method": row["method"].removesuffix(NORMALISED) + end}
        for row, end in zip(rows, ends, strict=True)
    ]


def run_infomax(cell: Cell, folder: Path | None = None, device: str = "cpu") -> list[Row]:
    """Train an encoder and return a row for each epoch and objective.

    Args:
        cell: What to train.
        folder: Where checkpoints are; `None` stores none.
        device: Where to train.

    Each process has its own batch norm and, but for all pairs of the dot critic, its own unpaired
    images, so rows have the number of processes and their device.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["draw"])
        run = EncoderRun(cell, torch.device(device))
        snapshots = None if folder is None else Snapshots(folder, cell)
        if snapshots is None or not snapshots.restore(run):
            run.evaluate()
        while run.epoch < cell["epochs"]:
            run.train()
            run.evaluate()
            if snapshots is not None:
                run_on_first(partial(snapshots.save, run))
        trained = {"processes": ranks(), "device": torch.device(device).type}
        return [{**row, **trained} for row in run.rows]


def infomax_setting(row: Cell) -> str:
    """Return what encoders must share to be compared."""
    others = f"{row['negatives']} of the" if row["negatives"] else "all"
    kind = "scaled" if row["critic"] == "normalised" else row["critic"]  # names of methods differ
    critic = f"{kind} critic of {row['units']} units"
    return (
        f"{row['dataset']}, {row['epochs']} epochs, {critic}, "
        f"{row['batch']} images a step with {others} others as unpaired samples, "
        f"probes of {row['probe_epochs']} epochs"
        + (f", {row['precision']}" if row["precision"] != "float32" else "")
        + (f", {row['scale']:.2g} of the images" if row["scale"] != 1 else "")
        + unchecked(row)
    )


def infomax_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the accuracy of probes after the last epoch, and the paper's."""
    ends = [r for r in rows if r["epoch"] == r["epochs"]]
    random = {
        r["draw"]: {**r, "method": "random encoder"} for r in rows if r["epoch"] == 0 and r["fc"]
    }
    ends += random.values()  # one for each seed
    lines = []
    for method in dict.fromkeys(r["method"] for r in ends):
        own = [r for r in ends if r["method"] == method]
        found = [entry([100 * v for v in _values(own, key)]) for key in ("conv", "fc", "output")]
        paper = _PAPER.get(method, {}).get(rows[0]["dataset"], ("", ""))
        nats = "" if method == "random encoder" else entry(_values(own, "estimate"))
        lines.append((method, (*found, *paper, nats, str(len({r["draw"] for r in own})))))
    heads = "conv", "fc", "output", "paper's conv", "paper's fc", "nats, test images", "seeds"
    return [Table("top-1 accuracy in %", "method", heads, tuple(lines))]


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return [row[key] for row in rows if row[key] is not None]
