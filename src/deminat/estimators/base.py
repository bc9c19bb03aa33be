"""What estimators have in common: the protocol, and a base of those with and without training."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..data.pairs import draw_partners
from ..data.sample import LEAST_PAIRS, Sample, as_sample
from ..data.schema import Schema
from ..data.splits import hold_out
from ..data.transforms import Transform
from ..data.units import unit_codes
from ..objectives import DEMI, Objective
from ..results import MIResult
from ..runtime.progress import Progress
from ..training.callbacks import History, training_diagnostics
from ..training.config import Training
from ..training.early_stopping import EarlyStopping
from .crossfit import CrossFit, CrossFitOptions, cross_fit
from .fitted import PairScorer, Scorer
from .neighbours import Neighbours
from .scores import Correction, Scores, held_out_loss, result_from_pointwise, result_from_scores

__all__ = [
    "Array",
    "Estimate",
    "MIEstimator",
    "ObjectiveEstimator",
    "Sides",
    "TrainedEstimator",
    "UntrainedEstimator",
    "split_for_stopping",
]

Array = NDArray[np.float64]
Sides = tuple[Array, Array]


class MIEstimator(Protocol):
    """What every estimator of this library does."""

    @property
    def name(self) -> str:
        """What results call it."""

    def fit(self, x: Any, y: Any) -> Self:
        """Learn from pairs."""

    def log_ratio(self, x: Any, y: Any) -> Array:
        """Return the log ratio (n,) of pairs, in nats."""

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, which should be new to the fit."""

    def score(self, x: Any, y: Any) -> float:
        """Return minus the held-out loss, for model selection."""

    def measure(
        self, sample: Sample, *, folds: int, n_jobs: int, progress: Progress | None
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample."""


@dataclass(frozen=True)
class Estimate:
    """A result, with the models that it was read off; `None` where they are not known."""

    result: MIResult
    models: tuple[PairScorer, ...] | None


class _Estimator(BaseEstimator, MIEstimator):  # type: ignore[misc]
    """Manners of scikit-learn."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class TrainedEstimator(_Estimator):
    """Estimators that are trained: fitted on some pairs, or cross-fitted on all.

    A subclass is a dataclass with at least `scaling`, `training` and `seed`. It writes `name`,
    `fit_sample`, which sets `scorer_` and `history_`, `reading`, `estimate` and `score`.
    """

    scaling: type[Transform]
    training: Training
    seed: int
    scorer_: Scorer
    history_: History

    def fit(self, x: Any, y: Any) -> Self:
        """Train on pairs x (n, ...), y (n, ...)."""
        return self.fit_sample(as_sample(x, y, least=LEAST_PAIRS))

    def log_ratio(self, x: Any, y: Any) -> Array:
        """Return the log ratio (n,) of pairs, in nats."""
        check_is_fitted(self)
        return self.scorer_.joint(as_sample(x, y, least=1))

    def measure(
        self, sample: Sample, *, folds: int = 5, n_jobs: int = 1, progress: Progress | None = None
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample, by cross-fitting."""
        fit = self.cross_fit(sample, CrossFitOptions(folds, n_jobs, progress))
        return self.reading(fit, sample)

    def cross_fit(self, sample: Sample, options: CrossFitOptions) -> CrossFit:
        """Return each pair of a sample scored by a model that never saw it."""
        return cross_fit(self, sample, options, self.partners_scored())

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        raise NotImplementedError

    def reading(self, fit: CrossFit, sample: Sample) -> MIResult:
        """Return the result that is read off cross-fitted scores."""
        raise NotImplementedError

    def partners_scored(self) -> int:
        """Return how many unpaired partners each held-out pair is scored with."""
        raise NotImplementedError

    def baseline_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by the baseline alone, in nats; 0 without one."""
        return 0.0

    def lead(self) -> float:
        """Return by how much the best baseline was ahead of the next, in nats."""
        return 0.0

    def neighbours(
        self, sample: Sample, part: NDArray[np.int64], joint: Array
    ) -> Neighbours | None:
        """Return what neighbours tell of held-out rows of a sample beyond their scores (m,)."""
        return None

    def shared_training(self) -> Hashable:
        """Return a key that is equal for estimators that one training serves."""
        return id(self)

    def within(self, seconds: float) -> Self:
        """Return the estimator with a limit of seconds for each fit."""
        raise ValueError(f"{self.name} has no budget: it is trained to the end; leave budget out")

    @property
    def is_mean_log_ratio(self) -> bool:
        """Whether the estimate is the mean log ratio; otherwise it has no interval."""
        return True

    @property
    def is_validated(self) -> bool:
        """Whether intervals were validated for it."""
        return False

    @property
    def scaling_name(self) -> str:
        """What results call the map of the columns."""
        return getattr(self.scaling, "__name__", type(self.scaling).__name__)


class ObjectiveEstimator(TrainedEstimator):
    """Trained estimators that read off what an objective says of the scores."""

    objective: Objective

    @property
    def name(self) -> str:
        """The name of its objective."""
        return self.objective.name

    @property
    def is_mean_log_ratio(self) -> bool:
        """Whether the estimate is the mean log ratio."""
        return self.objective.is_mean_log_ratio

    @property
    def corrects(self) -> bool:
        """Whether half the gap between training and held-out scores is added."""
        raise NotImplementedError

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, which should be new to the fit."""
        check_is_fitted(self)
        sample = as_sample(x, y)
        scores = self.scorer_.scores(sample, self.partners_scored(), self.seed)
        figures = training_diagnostics([self.history_])
        return result_from_scores(self.objective, scores, sample.warnings, figures)

    def score(self, x: Any, y: Any) -> float:
        """Return minus the loss of pairs, to choose critics and trainings by.

        Compare it under one objective only: losses of different objectives, or alphas, have
        different scales. Never choose by the MI itself.
        """
        check_is_fitted(self)
        scores = self.scorer_.scores(as_sample(x, y), self.partners_scored(), self.seed)
        return -held_out_loss(self.objective, scores)

    def reading(self, fit: CrossFit, sample: Sample) -> MIResult:
        """Return what the objective reads off cross-fitted scores, corrected where it may be."""
        return result_from_scores(
            self.objective,
            fit.scores,
            sample.warnings,
            fit.diagnostics(self.scaling_name),
            fit.correction if self.corrects and self.is_mean_log_ratio else Correction(),
            unit_codes(sample),
        )


class UntrainedEstimator(_Estimator):
    """Estimators in closed form or by neighbours.

    A subclass writes `name`, `fit`, which calls `fit_maps`, `joint` and `estimate_sample`.
    """

    maps_: tuple[Transform, Transform]
    schema_: Schema

    def log_ratio(self, x: Any, y: Any) -> Array:
        """Return the log ratio (n,) of pairs, in nats."""
        check_is_fitted(self)
        return self.joint(as_sample(x, y, least=1))

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mean log ratio of pairs under what was fitted."""
        sample = as_sample(x, y)
        return result_from_pointwise(self.log_ratio(sample.x, sample.y), self.name, sample.warnings)

    def score(self, x: Any, y: Any) -> float:
        """Return minus the cross-entropy of telling joint pairs from unpaired ones."""
        sample = as_sample(x, y)
        joint = self.log_ratio(sample.x, sample.y)
        (others,) = draw_partners(sample, 1, seed=0).T.numpy()
        product = self.log_ratio(sample.x, sample.y[others])
        return -held_out_loss(DEMI(), Scores(joint, product[:, None]))

    def measure(
        self, sample: Sample, *, folds: int = 5, n_jobs: int = 1, progress: Progress | None = None
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample.

        `folds`, `n_jobs` and `progress` do nothing here: nothing is trained.
        """
        return self.estimate_sample(sample).result

    def estimate_sample(self, sample: Sample) -> Estimate:
        """Return the mutual information of all pairs of a sample, with what was fitted."""
        raise NotImplementedError

    def joint(self, sample: Sample) -> Array:
        """Return the log ratio (n,) of the pairs of a sample, in nats."""
        raise NotImplementedError

    def fitted_to(self, sample: Sample) -> Self:
        """Return a fitted copy."""
        fitted: Self = clone(self).fit(sample.x, sample.y)
        return fitted

    def fit_maps(self, transform: type[Transform], sample: Sample) -> Sides:
        """Fit the maps of both sides; return the sides on their scales."""
        self.n_features_in_, self.schema_ = sample.x.shape[1], Schema.of(sample)
        self.maps_ = transform.fit(_flat(sample.x)), transform.fit(_flat(sample.y))
        return self.mapped(sample)

    def mapped(self, sample: Sample) -> Sides:
        """Return both sides on the fitted scales."""
        self.schema_.check(sample)
        return self.maps_[0](_flat(sample.x)), self.maps_[1](_flat(sample.y))


def _flat(a: Array) -> Array:
    """Return rows (n, d) of any shape."""
    return a.reshape(len(a), -1)


def split_for_stopping(
    sample: Sample, stopping: EarlyStopping | None, seed: int
) -> tuple[Sample, Sample | None]:
    """Return the rows to train on and, for early stopping, the rows held out of them."""
    return (sample, None) if stopping is None else hold_out(sample, stopping.held_out, seed)
