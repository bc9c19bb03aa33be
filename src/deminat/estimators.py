r"""Estimators of mutual information by a trained critic, in scikit-learn's manner.

`Estimator` trains a critic on some pairs and reads off the information of others. Where all
pairs must serve both, `cross_fit` trains once per fold and scores each pair by the critic that
never saw it. Three sets of rows are disjoint by construction: those trained on, those that
decide when to stop, and those reported.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .critics import (
    CriticFactory,
    SeparableCritic,
    batch_scores,
    is_separable,
    joint_scores,
    product_scores,
)
from .errors import DataError
from .inputs import LEAST_PAIRS, Sample, as_sample
from .objectives import DEMI, InfoNCE, Objective, training_loss
from .pairs import batches, partners
from .results import MIResult
from .scores import Scores, held_out_loss, read
from .splits import folds, split_off
from .training import EarlyStopping, History, Progress, Training, one_thread, share_of, train
from .transforms import Transform, Views

__all__ = [
    "AUTO",
    "PAPER",
    "CrossFit",
    "Estimator",
    "FittedOnPairs",
    "Scales",
    "cross_fit",
    "hold_out",
    "requires_y",
    "same_shape",
    "score_pairs",
    "some_partners",
    "told",
]

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


class FittedOnPairs(Protocol):
    """What `cross_fit` needs of an estimator; scikit-learn's `clone` must take it too."""

    seed: int
    history_: History

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        ...

    def scores(self, sample: Sample, k: int) -> Scores:
        """Score the pairs of a sample and k unpaired partners of each."""
        ...


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
    labels = None if sample.labels is None else torch.from_numpy(sample.labels)
    return partners(len(sample), min(k, len(sample) - 1), generator, labels)


@dataclass(eq=False, repr=False)
class Estimator(BaseEstimator):  # type: ignore[misc]
    """A critic trained to tell joint pairs from unpaired ones.

    Args:
        objective: What to train by and how to read off the information.
        critic: Constructor of the critic, called with the shapes of one x and one y.
        scaling: Map of each side, fitted on the training rows.
        training: How to train.
        seed: Of all randomness.

    After `fit`: `critic_` (the trained module), `scales_` (the fitted maps), `history_`.
    """

    objective: Objective = DEMI()  # noqa: RUF009 - it is frozen
    critic: CriticFactory = SeparableCritic
    scaling: type[Transform] = Views
    training: Training = AUTO
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
        """Return minus the loss of pairs, for model selection; never choose by the MI itself."""
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
        self.scales_ = Scales.fit(self.scaling, fitted)
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

    def _untrained(self, sample: Sample) -> nn.Module:
        x, y = self.scales_(sample.take(np.arange(1)))
        return self.critic(tuple(x.shape[1:]), tuple(y.shape[1:]))

    def _train(self, sample: Sample, held: Sample | None, progress: Progress | None) -> History:
        objective, settings = self.objective.trains_as, self.training
        alpha = objective.alpha if isinstance(objective, DEMI) and objective.draw else None
        x, y = self.scales_(sample)
        loss = training_loss(objective)
        stream = batches(
            len(sample),
            settings.batch,
            self._training_negatives(drawn=alpha is not None),
            torch.Generator().manual_seed(self.seed),
            labels=None if sample.labels is None else torch.from_numpy(sample.labels),
            alpha=alpha,
        )
        return train(
            self.critic_,
            lambda batch: loss(*batch_scores(self.critic_, x, y, batch)),
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


@dataclass(frozen=True)
class CrossFit:
    """Each pair of a sample scored by a model that never saw it.

    Args:
        scores: In the order of the sample.
        histories: One training per fold.
        fold_means: Mean joint score of each fold, in nats.
    """

    scores: Scores
    histories: tuple[History, ...]
    fold_means: tuple[float, ...]

    def diagnostics(self) -> dict[str, Any]:
        """Return what results tell of the trainings."""
        return {"fold_means": list(self.fold_means), **told(self.histories)}


def cross_fit(
    estimator: FittedOnPairs,
    sample: Sample,
    *,
    count: int = 5,
    k: int = _SCORED_NEGATIVES,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> CrossFit:
    """Train once per fold, on the others, and score every pair by the critic it is new to.

    Args:
        estimator: Cloned for each fold; its seed gives the folds and the seed of each clone.
        sample: All pairs.
        count: Number of folds.
        k: Unpaired partners to score for each pair, all from its own fold.
        n_jobs: Processes to use, as in joblib; the outcome does not depend on it.
        progress: Called with the share of the work that is done.
    """
    parts = folds(len(sample), count, np.random.default_rng(estimator.seed), sample.labels)
    seeds = np.random.SeedSequence(estimator.seed).generate_state(count).tolist()
    k = min(k, *(len(part) - 1 for part in parts))
    if k < 1:
        raise DataError(f"{len(sample)} pairs are too few for {count} folds; use fewer folds")
    alone = n_jobs == 1
    jobs = (
        delayed(_fit_and_score)(
            clone(estimator).set_params(seed=fold_seed),
            sample,
            part,
            k,
            share_of(progress, i, count) if alone else None,
        )
        for i, (part, fold_seed) in enumerate(zip(parts, seeds, strict=True))
    )
    joint, product = np.empty(len(sample)), np.empty((len(sample), k))
    histories = []
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    for i, (part, (scores, history)) in enumerate(zip(parts, outcomes, strict=True)):
        joint[part], product[part] = scores.joint, scores.product
        histories.append(history)
        if progress:
            progress((i + 1) / count)
    means = tuple(float(joint[part].mean()) for part in parts)
    return CrossFit(Scores(joint, product), tuple(histories), means)


def _fit_and_score(
    estimator: FittedOnPairs,
    sample: Sample,
    part: NDArray[np.int64],
    k: int,
    progress: Progress | None,
) -> tuple[Scores, History]:
    rest = np.setdiff1d(np.arange(len(sample)), part)
    fitted = estimator.fit_sample(sample.take(rest), progress)
    return fitted.scores(sample.take(part), k), fitted.history_


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
