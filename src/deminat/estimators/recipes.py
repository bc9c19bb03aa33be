"""Presets: what `auto`, `quick_estimator` and `paper` stand for."""

from dataclasses import replace
from typing import Literal

from ..critics.baselines import GaussianCopula
from ..critics.networks import ConvCritic, MLPCritic
from ..data.sample import Sample
from ..data.transforms import RankToNormal, Standardize
from ..objectives import DEMI, InfoNCE, Objective
from ..training.config import AUTO, PAPER, EarlyStopping
from .flows import FLOW_PAPER, GM
from .neural import Estimator

__all__ = ["Preset", "quick_estimator"]

Preset = Literal["auto", "quick", "paper"]

_WIDE = 512  # columns of a side, beyond which a copula takes hours: images


def flow_estimator(preset: Preset, seed: int) -> GM:
    if preset == "paper":
        return GM(scaling=Standardize, training=FLOW_PAPER, seed=seed)
    return GM(seed=seed)


def neural_estimator(
    objective: Objective, preset: Preset, sample: Sample | None, seed: int
) -> Estimator:
    image = sample is not None and _is_image_pair(sample)
    if preset == "auto" and not image:
        return Estimator(objective, seed=seed)
    if preset == "quick" and not image:
        return replace(quick_estimator(seed, sample), objective=objective)
    training = PAPER if preset == "paper" else replace(PAPER, halve_at=(), stopping=AUTO.stopping)
    if objective.trains_as is objective and not isinstance(objective, DEMI):
        training = replace(training, batch=64, epochs=20)  # no label z: 64 pairs a batch
    if isinstance(objective, InfoNCE):  # of a batch, all others: its ceiling is log(batch)
        training = replace(training, negatives=training.batch - 1)
    critic = ConvCritic if image else MLPCritic
    return Estimator(objective, critic, Standardize, training, None, seed, correct=False)


def _is_image_pair(sample: Sample) -> bool:
    """Tell whether both sides are (channels, height, width) of one size."""
    return sample.x.ndim == sample.y.ndim == 4 and sample.x.shape[2:] == sample.y.shape[2:]


def quick_estimator(seed: int, sample: Sample | None = None) -> Estimator:
    """Return the estimator that trains the critics of a chain: a copula and one network."""
    stopping = EarlyStopping(every=25, patience=4, initial_patience=4)
    training = replace(AUTO, steps=400, stopping=stopping)
    wide = sample is not None and max(sample.x.shape[1], sample.y.shape[1]) > _WIDE
    start = None if wide else GaussianCopula.choose
    return Estimator(scaling=RankToNormal, training=training, start=start, seed=seed)
