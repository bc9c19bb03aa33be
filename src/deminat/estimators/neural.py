r"""Estimators of mutual information by a trained critic, in scikit-learn's manner.

`Estimator` trains a critic on some pairs and reads off the information of others. Where all pairs
must serve both, it is cross-fitted. Three sets of rows are disjoint by construction: those trained
on, those that decide when to stop, and those reported.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..critics.baselines import Baseline, BaselineFactory, choose_baseline
from ..critics.composed import BaselineCritic, ClosedForm
from ..critics.networks import CriticFactory, SeparableCritic
from ..critics.scoring import is_separable, joint_scores
from ..data.pairs import draw_partners, label_tensor
from ..data.sample import LEAST_PAIRS, Sample, as_sample
from ..data.splits import hold_out
from ..data.transforms import Standardize, Transform, Views
from ..data.units import row_pairs, unit_codes
from ..objectives import DEMI, JSD, InfoNCE, Objective
from ..results import MIResult
from ..runtime.process import one_thread
from ..runtime.progress import Progress
from ..training.callbacks import Callback, History, told
from ..training.config import AUTO, EarlyStopping, Training
from .base import requires_y, scaling_name, split_for_stopping
from .crossfit import CrossFit, FoldStore, cross_fit
from .scaling import Scales
from .scores import Scores, Tables, held_out_loss, result_from_scores, score_pairs, score_row_pairs
from .staged_fit import TrainingPairs, TrainingPlan, fit_stages, stages_for

__all__ = ["Estimator"]

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
        start: Chooses a log ratio in closed form that the critic is added to, from training rows
            and rows to judge by: `choose_baseline` among copulas and mixtures,
            `GaussianCopula.choose` among copulas, `None` for none.
        seed: Of all randomness.
        budget: Seconds that a fit may take; it ends soon after.
        correct: Whether `measure` adds half of what training rows read above held-out ones, where
            the estimate is a mean log ratio (DEMI and JSD) and training is stopped early:
            critics that have learnt their rows by heart would read anything there.

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
    start: BaselineFactory | None = choose_baseline
    seed: int = 0
    budget: float | None = None
    correct: bool = True

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
        return self.joint(as_sample(x, y, least=1))

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs: held-out ones, if it is to be believed."""
        check_is_fitted(self)
        sample = as_sample(x, y)
        scores = self.scores(sample, self.scored_negatives())
        return result_from_scores(self.objective, scores, sample.warnings, told([self.history_]))

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
        fit = self.cross_fit(sample, folds=folds, n_jobs=n_jobs, progress=progress)
        (result,) = self.readings(fit, [self.objective], sample)
        return result

    def cross_fit(
        self,
        sample: Sample,
        *,
        folds: int = 5,
        n_jobs: int = 1,
        progress: Progress | None = None,
        callbacks: Sequence[Callback] = (),
        keeper: FoldStore | None = None,
    ) -> CrossFit:
        """Return each pair of a sample scored by a critic that never saw it."""
        k = self.scored_negatives()
        return cross_fit(
            self,
            sample,
            count=folds,
            k=k,
            n_jobs=n_jobs,
            progress=progress,
            callbacks=callbacks,
            keeper=keeper,
        )

    def readings(
        self, fit: CrossFit, objectives: Sequence[Objective], sample: Sample
    ) -> list[MIResult]:
        """Return what objectives that share a training make of it."""
        figures, units = fit.diagnostics(), unit_codes(sample)
        figures["scaling"] = scaling_name(self.scaling)
        return [
            result_from_scores(
                o,
                fit.scores,
                sample.warnings,
                figures,
                fit.optimism if self._corrects(o) else 0,
                units,
            )
            for o in objectives
        ]

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        if self.budget is not None and not self.budget > 0:
            raise ValueError(f"budget must be seconds, above 0; got {self.budget!r}")
        self.deadline_ = None if self.budget is None else time.monotonic() + self.budget
        fitted, held = split_for_stopping(sample, self.training.stopping, self.seed)
        self.n_features_in_ = sample.x.shape[1]
        start = self._start(fitted, held)
        if start is None or start.informative:
            self.scales_ = Scales.fit(self.scaling, fitted, start)
        else:  # a network would see nothing
            self.scales_ = Scales.fit(Standardize, fitted, start)
        self.offset_ = 0.0
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)  # of a critic's own initial weights and dropout
            self.critic_, history = self._learn(fitted, held, progress)
        if history.best_step == 0 and self.scales_.start is not None:
            self._start_again(self.scales_.start, sample)
        self.history_ = replace(history, chose=self._recipe(history))
        if not self.objective.normalised:
            self.offset_ = self._log_normaliser(held or fitted)
        return self

    def scores(self, sample: Sample, k: int) -> Scores:
        """Score the pairs of a sample and k unpaired partners of each."""
        others = draw_partners(sample, k, self.seed)
        scores = score_pairs(self.critic_, *self.scales_(sample), others)
        return Scores(scores.joint - self.offset_, scores.product - self.offset_)

    def joint(self, sample: Sample) -> NDArray[np.float64]:
        """Score the pairs of a sample alone."""
        with one_thread():
            joint = joint_scores(self.critic_, *self.scales_(sample))
        return joint.double().numpy() - self.offset_

    def baseline_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by the start alone, in nats; 0 if there is none."""
        start = self.scales_.start
        if start is None:
            return 0.0
        with one_thread():
            closed = ClosedForm(start.components, self.scales_.halves)
            return float(joint_scores(closed, *self.scales_(sample)).mean())

    def tables(self, sample: Sample) -> Tables:
        """Score each x of couples of independent rows with each y, (draws, couples, 2, 2)."""
        rows = row_pairs(sample, self.seed)
        return score_row_pairs(self.critic_, *self.scales_(sample), rows) - self.offset_

    def halves(self, sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (n, r) of x and of y, whose inner products are scores, of a separable critic."""
        critic, (x, y) = self.critic_, self.scales_(sample)
        if isinstance(critic, ClosedForm) and critic.components == 1:
            left, right = x[:, -critic.columns :], y[:, -critic.columns :]
            return left.double().numpy(), right.double().numpy()
        if not is_separable(critic):
            raise ValueError("only a separable critic has halves")
        with one_thread(), torch.no_grad():
            return critic.left(x).double().numpy(), critic.right(y).double().numpy()

    def scored_negatives(self) -> int:
        """Return how many unpaired partners a held-out pair gets: InfoNCE's ceiling needs all."""
        if isinstance(self.objective, InfoNCE):
            return self.training.negatives or self.training.batch - 1
        return _SCORED_NEGATIVES

    def _corrects(self, objective: Objective) -> bool:
        stopped = self.training.stopping is not None
        return self.correct and stopped and isinstance(objective, DEMI | JSD)

    def _start(self, sample: Sample, held: Sample | None) -> Baseline | None:
        if self.start is None or sample.x.ndim > 2 or sample.y.ndim > 2:
            return None
        if held is None:  # training wants none, but the choice of a start does
            return self._start(*hold_out(sample, EarlyStopping().held_out, self.seed))
        return self.start(sample.x, sample.y, held.x, held.y, self._half_time())

    def _half_time(self) -> float | None:
        """Return when the choice of a start should leave the rest of the budget to networks."""
        return None if self.deadline_ is None else (time.monotonic() + self.deadline_) / 2

    def _learn(
        self, sample: Sample, held: Sample | None, progress: Progress | None
    ) -> tuple[nn.Module, History]:
        """Return the trained critic and what happened."""
        start, halves = self.scales_.start, self.scales_.halves
        if start is not None and not start.informative:
            return ClosedForm(start.components, halves), History(0, 0, math.nan, (), 0)
        x, y = self.scales_(sample)
        critic = self.critic(_shape(x, halves), _shape(y, halves))
        lesson = TrainingPairs(x, y, label_tensor(sample), self._judges(held, is_separable(critic)))
        course = TrainingPlan(self.objective.trains_as, self.training, self.seed, self.deadline_)
        if is_separable(critic) and (stages := stages_for(self.scales_, sample)):
            return fit_stages(self.critic, stages, lesson, halves, course, progress)
        critic = BaselineCritic(critic, halves) if halves else critic
        return critic, course.teach(critic, lesson, progress)

    def _start_again(self, start: Baseline, sample: Sample) -> None:
        """Fit the start to all rows: no network was added, so none has to be judged by any."""
        start = start.refit(sample.x, sample.y)
        self.scales_ = Scales.fit(Standardize, sample, start)
        self.critic_ = ClosedForm(start.components, self.scales_.halves)

    def _judges(
        self, held: Sample | None, separable: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """Return held-out x and y with partners, which are cheap for separable critics."""
        if held is None:
            return None
        k = _HELD_NEGATIVES if separable else _SCORED_NEGATIVES
        return *self.scales_(held), draw_partners(held, k, self.seed)

    def _log_normaliser(self, sample: Sample) -> float:
        """Return log E[exp f] over unpaired rows, the constant that the loss leaves free."""
        product = torch.from_numpy(self.scores(sample, _SCORED_NEGATIVES).product)
        return float(product.logsumexp((0, 1))) - math.log(product.numel())

    def _recipe(self, history: History) -> str:
        """Return what was chosen, in words."""
        start = self.scales_.start
        learnt = history.chose or ("all columns" if history.best_step else "")
        parts = ["" if start is None else start.name, learnt and f"network on {learnt}"]
        return " + ".join(part for part in parts if part) or "nothing found"

    def __sklearn_tags__(self) -> Tags:
        return requires_y(super().__sklearn_tags__())


def _shape(a: torch.Tensor, halves: int) -> tuple[int, ...]:
    """Return the shape of one row, without the halves of a start."""
    return (a.shape[1] - halves,) if halves else tuple(a.shape[1:])
