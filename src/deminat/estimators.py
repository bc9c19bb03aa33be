r"""Estimators of mutual information by a trained critic, in scikit-learn's manner.

`Estimator` trains a critic on some pairs and reads off the information of others. Where all pairs
must serve both, it is cross-fitted. Three sets of rows are disjoint by construction: those trained
on, those that decide when to stop, and those reported.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .critics import (
    CriticFactory,
    SeparableCritic,
    StartedCritic,
    is_separable,
    joint_scores,
    product_scores,
)
from .crossfit import cross_fit
from .fitting import Scales, hold_out, labels_of, requires_y, score_pairs, some_partners, told
from .gradients import batch_loss
from .inputs import LEAST_PAIRS, Sample, as_sample
from .objectives import DEMI, InfoNCE, Objective
from .pairs import batches
from .reference import GaussianCopula, Start
from .results import MIResult
from .scores import Scores, held_out_loss, read
from .training import EarlyStopping, History, Progress, Training, one_thread, train
from .transforms import Transform, Views

__all__ = ["AUTO", "PAPER", "Estimator"]

PAPER = Training()
AUTO = Training(
    batch=256,
    negatives=None,
    steps=1000,
    learning_rate=4e-3,
    halve_at=(),
    cosine=True,
    weight_decay=0.05,
    clip=5.0,
    average=0.995,
    stopping=EarlyStopping(),
)

_NEGATIVES = 4  # partners a pair in training, where each costs a pass through the critic
_SCORED_NEGATIVES = 16  # partners a pair in held-out scores
_HELD_NEGATIVES = 256  # partners a pair for early stopping, where they are cheap


@dataclass(eq=False, repr=False)
class Estimator(BaseEstimator):  # type: ignore[misc]
    """A critic trained to tell joint pairs from unpaired ones.

    Args:
        objective: What to train by and how to read off the information.
        critic: Constructor of the critic, called with the shapes of one x and one y:
            `SeparableCritic`, `MLPCritic`, `ConvCritic` or your own `nn.Module`.
        scaling: Map of each side, fitted on the training rows: `Views`, `Standardize`, `Robust`
            or `RankToNormal`.
        training: How to train: `AUTO`, `PAPER`, or `dataclasses.replace(AUTO, steps=500)`. The
            fields that a plain `Training(...)` leaves out are the paper's.
        start: A log ratio in closed form that the critic is added to, fitted on the training rows;
            dropped where the held-out rows say that nothing is better. `None` for none.
        seed: Of all randomness.

    After `fit`: `critic_` (the trained module), `scales_` (the fitted maps), `history_`.

    Examples:
        >>> from deminat.tasks import gaussian
        >>> x, y = gaussian(2, 1.0).sample(600, seed=0)
        >>> fitted = Estimator().fit(x[:500], y[:500])
        >>> bool(0.6 < fitted.estimate(x[500:], y[500:]).mi < 1.4)
        True
    """

    objective: Objective = DEMI()  # noqa: RUF009 - it is frozen
    critic: CriticFactory = SeparableCritic
    scaling: type[Transform] = Views
    training: Training = AUTO
    start: type[Start] | None = GaussianCopula
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of its objective."""
        return self.objective.name

    def fit(self, x: Any, y: Any) -> Self:
        """Train on pairs x (n, ...), y (n, ...)."""
        return self.fit_sample(as_sample(x, y, least=LEAST_PAIRS))

    def log_ratio(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return the log ratio (n,) of pairs, in nats."""
        check_is_fitted(self)
        with one_thread():
            joint = joint_scores(self.critic_, *self.scales_(as_sample(x, y, least=1)))
        return joint.double().numpy() - self.offset_

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs: held-out ones, if it is to be believed."""
        check_is_fitted(self)
        sample = as_sample(x, y)
        scores = self.scores(sample, self.scored_negatives())
        return read(self.objective, scores, sample.warnings, told([self.history_]))

    def score(self, x: Any, y: Any) -> float:
        """Return minus the loss of pairs, to choose critics and trainings by.

        Compare it under one objective only: losses of different objectives, or alphas, have
        different scales. Never choose by the MI itself.
        """
        check_is_fitted(self)
        scores = self.scores(as_sample(x, y), self.scored_negatives())
        return -held_out_loss(self.objective, scores)

    def measure(
        self,
        sample: Sample,
        *,
        folds: int = 5,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample, by cross-fitting."""
        (result,) = self.measure_by(
            [self.objective], sample, folds=folds, n_jobs=n_jobs, progress=progress
        )
        return result

    def measure_by(
        self,
        objectives: Sequence[Objective],
        sample: Sample,
        *,
        folds: int = 5,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> list[MIResult]:
        """Return what objectives that share a training make of it."""
        k = self.scored_negatives()
        fit = cross_fit(self, sample, count=folds, k=k, n_jobs=n_jobs, progress=progress)
        figures = fit.diagnostics()
        return [read(o, fit.scores, sample.warnings, figures) for o in objectives]

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        fitted, held = hold_out(sample, self.training, self.seed)
        self.n_features_in_ = sample.x.shape[1]
        self.scales_ = Scales.fit(self.scaling, fitted, self._start(fitted, held))
        self.offset_ = 0.0
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)  # of a critic's own initial weights and dropout
            self.critic_ = self._untrained(fitted)
            self.history_ = self._train(fitted, held, progress)
        if not self.objective.normalised:
            self.offset_ = self._log_normaliser(held or fitted)
        return self

    def scores(self, sample: Sample, k: int) -> Scores:
        """Score the pairs of a sample and k unpaired partners of each."""
        others = some_partners(sample, k, self.seed)
        scores = score_pairs(self.critic_, *self.scales_(sample), others)
        return Scores(scores.joint - self.offset_, scores.product - self.offset_)

    def scored_negatives(self) -> int:
        """Return how many unpaired partners a held-out pair gets: InfoNCE's ceiling needs all."""
        if isinstance(self.objective, InfoNCE):
            return self.training.negatives or self.training.batch - 1
        return _SCORED_NEGATIVES

    def _start(self, sample: Sample, held: Sample | None) -> Start | None:
        """Return the start that best tells held-out pairs from others; None if silence does."""
        if self.start is None or sample.x.ndim > 2 or sample.y.ndim > 2:
            return None
        rows = held or sample
        (others,) = some_partners(rows, 1, self.seed).T.numpy()
        best, least = None, math.log(2)  # the cross-entropy of silence
        for start in self.start.candidates(sample.x, sample.y):
            left, right = start.left(rows.x), start.right(rows.y)
            product = (left * right[others]).sum(axis=1, keepdims=True)
            loss = held_out_loss(DEMI(), Scores((left * right).sum(axis=1), product))
            if loss < least:
                best, least = start, loss
        return best

    def _untrained(self, sample: Sample) -> nn.Module:
        one = sample.take(np.arange(1))
        x, y = self.scales_(one)
        if self.scales_.start is None:
            return self.critic(tuple(x.shape[1:]), tuple(y.shape[1:]))
        columns = self.scales_.start.left(one.x).shape[1]
        critic = self.critic((x.shape[1] - columns,), (y.shape[1] - columns,))
        return StartedCritic(critic, columns)

    def _train(self, sample: Sample, held: Sample | None, progress: Progress | None) -> History:
        objective, settings = self.objective.trains_as, self.training
        alpha = objective.alpha if isinstance(objective, DEMI) and objective.draw else None
        x, y = self.scales_(sample)
        stream = batches(
            len(sample),
            settings.batch,
            self._training_negatives(drawn=alpha is not None),
            torch.Generator().manual_seed(self.seed),
            labels=labels_of(sample),
            alpha=alpha,
        )
        return train(
            self.critic_,
            batch_loss(self.critic_, x, y, objective),
            stream,
            max(1, len(sample) // settings.batch),
            settings,
            held_loss=None if held is None else self._held_loss(held),
            progress=progress,
        )

    def _training_negatives(self, drawn: bool) -> int | None:
        """Return the unpaired partners of a pair, `None` for all others of its batch."""
        if self.training.negatives is not None:
            return self.training.negatives
        return None if is_separable(self.critic_) and not drawn else _NEGATIVES

    def _held_loss(self, held: Sample) -> Callable[[nn.Module], float]:
        """Return the loss of held-out rows, always with the same partners."""
        x, y = self.scales_(held)
        k = _HELD_NEGATIVES if is_separable(self.critic_) else _SCORED_NEGATIVES
        others = some_partners(held, k, self.seed)
        loss = self.objective.trains_as.loss

        def held_loss(critic: nn.Module) -> float:
            return float(loss(joint_scores(critic, x, y), product_scores(critic, x, y, others)))

        return held_loss

    def _log_normaliser(self, sample: Sample) -> float:
        """Return log E[exp f] over unpaired rows, the constant that the loss leaves free."""
        product = torch.from_numpy(self.scores(sample, _SCORED_NEGATIVES).product)
        return float(product.logsumexp((0, 1))) - math.log(product.numel())

    def __sklearn_tags__(self) -> Tags:
        return requires_y(super().__sklearn_tags__())
