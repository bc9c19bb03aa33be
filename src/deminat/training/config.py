"""How to train: the settings, and two recipes, `AUTO` and `PAPER`."""

import math
from dataclasses import dataclass

from .early_stopping import EarlyStopping

__all__ = ["AUTO", "PAPER", "Training"]


@dataclass(frozen=True)
class Training:
    """How to train; the defaults are those of the notebook that the paper's authors released.

    A step has 64 joint pairs and the same rows with each y moved on by one. The text of the paper
    differs in three points: a constant rate, `halve_at=()`; partners from all training rows,
    `in_batch=False`; and labels that are drawn, `DEMI(draw=True)`.

    Args:
        batch: Joint pairs a step.
        negatives: Unpaired partners for each; one less than `batch` takes all others of the
            batch. `None` does so where the critic is separable, and otherwise takes 4.
        in_batch: Whether partners are the next rows of the batch, or any training rows.
        epochs: Passes over the training pairs.
        steps: Number of steps, instead of `epochs`.
        learning_rate: Of Adam, at its highest.
        halve_at: Shares of the training after which the rate is halved, 6 and 13 epochs of 20;
            `()` keeps it constant.
        cosine: Warm up over 50 steps, then let the rate fall to 0 along a cosine.
        weight_decay: Decoupled, as in AdamW.
        clip: Largest norm of the gradient; `None` does not clip.
        average: Decay of a moving average of the weights, which is then what training returns.
        stopping: Early stopping; `None` trains to the end.
    """

    batch: int = 64
    negatives: int | None = 1
    in_batch: bool = True
    epochs: int = 20
    steps: int | None = None
    learning_rate: float = 5e-4
    halve_at: tuple[float, ...] = (0.3, 0.65)
    cosine: bool = False
    weight_decay: float = 0.0
    clip: float | None = None
    average: float | None = None
    stopping: EarlyStopping | None = None

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        rate = self.learning_rate * 0.5 ** sum(step >= share * steps for share in self.halve_at)
        if self.cosine:
            rate *= min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        return rate


PAPER = Training()
AUTO = Training(
    batch=256,
    negatives=None,
    in_batch=False,
    steps=1500,
    learning_rate=8e-3,
    halve_at=(),
    cosine=True,
    weight_decay=0.05,
    clip=5.0,
    average=0.995,
    stopping=EarlyStopping(),
)
