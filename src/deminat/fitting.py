"""What trained estimators share: scales, rows held out, scores of pairs, manners."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from .critics import joint_scores, product_scores
from .errors import DataError
from .inputs import Sample
from .pairs import partners
from .scores import Scores
from .splits import split_off
from .training import History, Training, one_thread
from .transforms import Transform

__all__ = [
    "Scales",
    "hold_out",
    "labels_of",
    "requires_y",
    "same_shape",
    "score_pairs",
    "some_partners",
    "told",
]


@dataclass(frozen=True)
class Scales:
    """How both sides of a sample become tensors: maps fitted on training rows."""

    x_map: Transform
    y_map: Transform
    x_shape: tuple[int, ...]
    y_shape: tuple[int, ...]

    @classmethod
    def fit(cls, transform: type[Transform], sample: Sample) -> Self:
        """Return the scales that suit the rows of a sample."""
        shapes = sample.x.shape[1:], sample.y.shape[1:]
        return cls(transform.fit(sample.x), transform.fit(sample.y), *shapes)

    def __call__(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Return x and y (n, ...) as float32 tensors on the fitted scales."""
        same_shape("x", sample.x.shape[1:], self.x_shape)
        same_shape("y", sample.y.shape[1:], self.y_shape)
        x, y = self.x_map(sample.x), self.y_map(sample.y)
        return torch.from_numpy(x).float(), torch.from_numpy(y).float()


def same_shape(side: str, shape: tuple[int, ...], fitted: tuple[int, ...]) -> None:
    """Refuse rows of another shape than those of the fit."""
    if shape != fitted:
        raise DataError(
            f"{side.upper()} has {shape[0]} features, but deminat is expecting {fitted[0]} "
            f"features as input: rows of shape {fitted} as in the fit, not {shape}"
        )


def hold_out(sample: Sample, training: Training, seed: int) -> tuple[Sample, Sample | None]:
    """Return the rows to train on and, for early stopping, the rows held out of them."""
    if training.stopping is None:
        return sample, None
    rng = np.random.default_rng(seed)
    rows, held = split_off(len(sample), training.stopping.held_out, rng, sample.labels)
    return sample.take(rows), sample.take(held)


def score_pairs(critic: nn.Module, x: Tensor, y: Tensor, others: Tensor) -> Scores:
    """Return the scores of pairs and of unpaired partners `others` (n, k), in float64."""
    with one_thread():
        joint, product = joint_scores(critic, x, y), product_scores(critic, x, y, others)
    return Scores(joint.double().numpy(), product.double().numpy())


def some_partners(sample: Sample, k: int, seed: int) -> Tensor:
    """Return (n, k) rows that are unpaired with each row of a sample; fewer if n is small."""
    generator = torch.Generator().manual_seed(seed)
    return partners(len(sample), min(k, len(sample) - 1), generator, labels_of(sample))


def labels_of(sample: Sample) -> Tensor | None:
    """Return the labels (n,) of copied rows as a tensor, if there are any."""
    return None if sample.labels is None else torch.from_numpy(sample.labels)


def requires_y(tags: Tags) -> Tags:
    """Tell scikit-learn that `fit` wants both sides."""
    tags.target_tags.required = True
    return tags


def told(histories: Sequence[History]) -> dict[str, Any]:
    """Return what results tell of trainings."""
    return {
        "steps": [h.steps for h in histories],
        "kept_steps": [h.best_step for h in histories],
        "training_loss": [h.loss for h in histories],
        "restarts": sum(h.restarts for h in histories),
    }
