"""Presets: the recipes that `auto`, `quick` and `paper` stand for."""

from dataclasses import replace
from typing import Protocol

from ..critics.baselines import GaussianCopula
from ..critics.networks import ConvCritic, MLPCritic
from ..data.sample import Sample
from ..data.transforms import Identity, RankToNormal, Standardize, Transform
from ..objectives import Objective
from ..training.config import AUTO, PAPER, Training
from ..training.early_stopping import EarlyStopping
from .base import MIEstimator, TrainedEstimator
from .contrastive import CONTRASTIVE, Networks
from .flows import FLOW_PAPER, GM
from .neural import Estimator
from .pooled import Pool

__all__ = ["Auto", "Paper", "Quick", "Recipe", "small_network"]

_IMAGES = Training(batch=32, in_batch=False, epochs=10, halve_at=(), stopping=AUTO.stopping)
_FEW_STEPS = Networks(replace(CONTRASTIVE, steps=300), members=1)
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

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> TrainedEstimator:
        """Return the estimator of an objective; of images a convolutional one."""
        if objective.trains_as.is_mean_log_ratio:
            return Pool(objective, Estimator(objective, seed=seed), seed=seed)
        if _is_image_pair(sample):
            return _plain(objective, _IMAGES, Standardize, sample, seed)
        return Estimator(objective, seed=seed)

    def flows(self, seed: int) -> GM:
        """Return the estimator by flows."""
        return GM(seed=seed)


class Quick(Auto):
    """The closed forms of the same pool, with a small network on ranks."""

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> TrainedEstimator:
        """Return the estimator of an objective."""
        small = small_network(objective, sample, seed)
        if objective.trains_as.is_mean_log_ratio:
            return Pool(objective, small, _FEW_STEPS, seed=seed)
        return super().neural(objective, sample, seed) if _is_image_pair(sample) else small


def small_network(objective: Objective, sample: Sample | None, seed: int) -> Estimator:
    """Return a small separable network on ranks, added to a Gaussian copula."""
    stopping = EarlyStopping(every=25, patience=4, initial_patience=4)
    training = replace(AUTO, steps=400, stopping=stopping)
    wide = sample is not None and max(sample.x.shape[1], sample.y.shape[1]) > _WIDE
    return Estimator(
        objective,
        scaling=RankToNormal,
        training=training,
        baseline=None if wide else GaussianCopula.choose,
        seed=seed,
    )


class Paper:
    """The recipe of the paper, for comparison: that of its authors' notebook, on raw inputs.

    InfoNCE, and SMILE and DV as SMILE's authors train them, see all pairs of a batch at a constant
    rate.
    """

    def neural(self, objective: Objective, sample: Sample | None, seed: int) -> Estimator:
        """Return the estimator of an objective."""
        constant = replace(PAPER, halve_at=()) if objective.trains_on_all_pairs else PAPER
        return _plain(objective, constant, Identity, sample, seed)

    def flows(self, seed: int) -> GM:
        """Return the estimator by flows."""
        return GM(scaling=Identity, training=FLOW_PAPER, seed=seed)


def _plain(
    objective: Objective,
    training: Training,
    scaling: type[Transform],
    sample: Sample | None,
    seed: int,
) -> Estimator:
    """Return a critic that concatenates x and y, without a baseline."""
    if objective.trains_on_all_pairs:
        training = replace(training, negatives=training.batch - 1)
    critic = ConvCritic if _is_image_pair(sample) else MLPCritic
    return Estimator(objective, critic, scaling, training, None, seed, correct=False)


def _is_image_pair(sample: Sample | None) -> bool:
    """Tell whether both sides are (channels, height, width) of one size."""
    if sample is None:
        return False
    return sample.x.ndim == sample.y.ndim == 4 and sample.x.shape[2:] == sample.y.shape[2:]
