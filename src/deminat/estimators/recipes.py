"""Presets: the recipes that `auto`, `quick` and `paper` stand for."""

from dataclasses import replace
from typing import Protocol

from ..critics.baselines import GaussianCopula
from ..critics.networks import ConvCritic, MLPCritic
from ..data.sample import Sample
from ..data.transforms import RankToNormal, Standardize
from ..objectives import Objective
from ..training.config import AUTO, PAPER, Training
from ..training.early_stopping import EarlyStopping
from .base import MIEstimator
from .flows import FLOW_PAPER, GM
from .neural import Estimator

__all__ = ["Auto", "Paper", "Quick", "Recipe"]

_WIDE = 512  # columns of a side, beyond which a copula takes hours


class Recipe(Protocol):
    """What a preset stands for."""

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> MIEstimator:
        """Return the estimator of an objective, for a sample like the given one."""
        ...

    def flows(self, seed: int) -> MIEstimator:
        """Return the estimator by flows."""
        ...


class Auto:
    """The default: the best recipe known."""

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> Estimator:
        """Return the estimator of an objective; of images a convolutional one."""
        if _is_image_pair(sample):
            training = replace(PAPER, halve_at=(), stopping=AUTO.stopping)
            return _plain(objective, training, sample, seed)
        return Estimator(objective, seed=seed)

    def flows(self, seed: int) -> GM:
        """Return the estimator by flows."""
        return GM(seed=seed)


class Quick(Auto):
    """A Gaussian copula and one small network on ranks, in a tenth of the time."""

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> Estimator:
        """Return the estimator of an objective; of images that of `Auto`."""
        if _is_image_pair(sample):
            return super().neural(objective, sample, seed)
        stopping = EarlyStopping(every=25, patience=4, initial_patience=4)
        training = replace(AUTO, steps=400, stopping=stopping)
        wide = sample is not None and max(sample.x.shape[1], sample.y.shape[1]) > _WIDE
        baseline = None if wide else GaussianCopula.choose
        return Estimator(
            objective, scaling=RankToNormal, training=training, baseline=baseline, seed=seed
        )


class Paper:
    """The recipe of the paper, for comparison."""

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> Estimator:
        """Return the estimator of an objective."""
        return _plain(objective, PAPER, sample, seed)

    def flows(self, seed: int) -> GM:
        """Return the estimator by flows."""
        return GM(scaling=Standardize, training=FLOW_PAPER, seed=seed)


def _plain(objective: Objective, training: Training, sample: Sample | None, seed: int) -> Estimator:
    """Return a critic that concatenates x and y, without a baseline."""
    if not objective.trains_as.is_mean_log_ratio:
        training = replace(training, batch=64, epochs=20)  # no label z: 64 pairs a batch
    if objective.ceiling(1) < objective.ceiling(2):  # it grows with the partners: use all others
        training = replace(training, negatives=training.batch - 1)
    critic = ConvCritic if _is_image_pair(sample) else MLPCritic
    return Estimator(objective, critic, Standardize, training, None, seed, correct=False)


def _is_image_pair(sample: Sample | None) -> bool:
    """Tell whether both sides are (channels, height, width) of one size."""
    if sample is None:
        return False
    return sample.x.ndim == sample.y.ndim == 4 and sample.x.shape[2:] == sample.y.shape[2:]
