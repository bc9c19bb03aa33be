r"""Estimators of mutual information by a trained critic, in scikit-learn's manner.

`Estimator` trains a critic on some pairs and reads off the information of others. Where all pairs
must serve both, it is cross-fitted. Three sets of rows are disjoint by construction: those trained
on, those that decide when to stop, and those reported.
"""

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Self, cast

import torch
from torch import nn

from ..critics.baselines import Baseline, BaselineFactory, choose_baseline
from ..critics.composed import BaselineCritic, ClosedForm, StagedCritic
from ..critics.networks import CriticFactory, SeparableCritic, build_critic
from ..critics.scoring import is_separable, joint_scores
from ..data.pairs import draw_partners, label_tensor
from ..data.sample import Sample
from ..data.splits import hold_out
from ..data.transforms import Standardize, Transform, Views
from ..objectives import DEMI, Objective
from ..runtime.process import one_thread
from ..runtime.progress import Progress
from ..training.callbacks import History
from ..training.config import AUTO, Training
from ..training.early_stopping import EarlyStopping
from .base import Array, ObjectiveEstimator, split_for_stopping
from .fitted import FittedScorer
from .scaling import Scales
from .staged_fit import HeldOut, TrainingPairs, TrainingPlan, fit_stages, stages_for

__all__ = ["Estimator"]

_SCORED_NEGATIVES = 16  # partners a pair in held-out scores
_HELD_NEGATIVES = 256  # partners a pair for early stopping, where they are cheap


@dataclass(eq=False, repr=False)
class Estimator(ObjectiveEstimator):
    """A critic trained to tell joint pairs from unpaired ones.

    Args:
        objective: What to train by and how to read off the information.
        critic: Constructor of the critic, called with the shapes of one x and one y:
            `SeparableCritic`, `MLPCritic`, `ConvCritic` or your own `nn.Module`.
        scaling: Map of each side, fitted on the training rows: `Views`, `Standardize`, `Robust`
            or `RankToNormal`.
        training: How to train: `AUTO`, `PAPER`, or `dataclasses.replace(AUTO, steps=500)`. The
            fields that a plain `Training(...)` leaves out are the paper's.
        baseline: Chooses a log ratio in closed form that the critic is added to, from training
            rows and held-out rows: `choose_baseline` among copulas and mixtures,
            `GaussianCopula.choose` among copulas, `None` for none.
        seed: Of all randomness.
        budget: Seconds that a fit may take; it ends soon after.
        correct: Whether `measure` adds half the gap between training and held-out scores. It does
            so only where the estimate is a mean log ratio and training is stopped early: scores of
            memorised rows mean nothing.

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
    baseline: BaselineFactory | None = choose_baseline
    seed: int = 0
    budget: float | None = None
    correct: bool = True

    @property
    def is_validated(self) -> bool:
        """Whether intervals were validated for this training."""
        return self.training == AUTO

    @property
    def critic_(self) -> nn.Module:
        """The trained critic."""
        return self.fitted_.critic

    @property
    def scales_(self) -> Scales:
        """The fitted maps."""
        return self.fitted_.scales

    @property
    def fitted_(self) -> FittedScorer:
        """The critic with the maps of its inputs."""
        return cast(FittedScorer, self.scorer_)

    @property
    def corrects(self) -> bool:
        """Whether half the gap is added: not of a training that was not stopped early."""
        return self.correct and self.training.stopping is not None

    def partners_scored(self) -> int:
        """Return how many unpaired partners a held-out pair gets: a ceiling needs all."""
        if math.isfinite(self.objective.ceiling(1)):
            return self.training.negatives or self.training.batch - 1
        return _SCORED_NEGATIVES

    def shared_training(self) -> Hashable:
        """Return all that training depends on."""
        settings = self.critic, self.scaling, self.training, self.baseline, self.seed, self.budget
        return self.objective.trains_as, *settings, self.correct

    def within(self, seconds: float) -> Self:
        """Return the estimator with a limit of seconds for each fit."""
        return replace(self, budget=seconds)

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        if self.budget is not None and not self.budget > 0:
            raise ValueError(f"budget must be seconds, above 0; got {self.budget!r}")
        deadline = None if self.budget is None else time.monotonic() + self.budget
        fitted, held = split_for_stopping(sample, self.training.stopping, self.seed)
        self.n_features_in_ = sample.x.shape[1]
        baseline = self._baseline(fitted, held, deadline)
        saturated = baseline is not None and not baseline.informative  # no network is added
        scales = Scales.fit(Standardize if saturated else self.scaling, fitted, baseline)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)  # of a critic's own initial weights and dropout
            critic, history = self._train(scales, fitted, held, deadline, progress)
        if history.best_step == 0 and baseline is not None:
            # No network was added, so no rows have to decide when to stop: fit it to all.
            scales = Scales.fit(Standardize, sample, baseline.refit(sample.x, sample.y))
            critic = ClosedForm(baseline.components)
        self.history_ = replace(history, recipe=_recipe(scales.baseline, history))
        self.scorer_ = FittedScorer(scales, critic)
        if not self.objective.normalised:
            offset = self._log_normaliser(held or fitted)
            self.scorer_ = FittedScorer(scales, critic, offset)
        return self

    def baseline_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by the baseline alone, in nats; 0 without one."""
        baseline = self.scales_.baseline
        if baseline is None:
            return 0.0
        with one_thread():
            closed = ClosedForm(baseline.components)
            return float(joint_scores(closed, *self.scales_(sample)).mean())

    def factors(self, sample: Sample) -> tuple[Array, Array]:
        """Return (n, r) of x and of y, whose inner products are scores, of a separable critic."""
        critic, (x, y) = self.critic_, self.scales_(sample)
        if isinstance(critic, ClosedForm) and critic.components == 1:
            return x.baseline.double().numpy(), y.baseline.double().numpy()
        if not is_separable(critic):
            raise ValueError("only a separable critic has factors")
        composed = isinstance(critic, BaselineCritic | StagedCritic)
        a, b = (x, y) if composed else (x.seen, y.seen)
        with one_thread(), torch.no_grad():
            return critic.left(a).double().numpy(), critic.right(b).double().numpy()

    def _baseline(
        self, sample: Sample, held: Sample | None, deadline: float | None
    ) -> Baseline | None:
        """Return the baseline of training rows, chosen by held-out ones."""
        if self.baseline is None or sample.x.ndim > 2 or sample.y.ndim > 2:
            return None
        if held is None:  # training needs none, but the choice of a baseline does
            sample, held = hold_out(sample, EarlyStopping().held_out, self.seed)
        # The choice leaves half of the budget to networks.
        half_time = None if deadline is None else (time.monotonic() + deadline) / 2
        return self.baseline(sample.x, sample.y, held.x, held.y, half_time)

    def _train(
        self,
        scales: Scales,
        sample: Sample,
        held: Sample | None,
        deadline: float | None,
        progress: Progress | None,
    ) -> tuple[nn.Module, History]:
        """Return the trained critic and the history."""
        baseline = scales.baseline
        if baseline is not None and not baseline.informative:
            return ClosedForm(baseline.components), History(0, 0, math.nan, (), 0)
        x, y = scales(sample)
        critic = build_critic(self.critic, tuple(x.seen.shape[1:]), tuple(y.seen.shape[1:]))
        separable = is_separable(critic)
        pairs = TrainingPairs(x, y, label_tensor(sample), self._held_out(scales, held, separable))
        plan = TrainingPlan(self.objective.trains_as, self.training, self.seed, deadline)
        if separable and (stages := stages_for(scales, sample)):
            return fit_stages(self.critic, stages, pairs, plan, progress)
        critic = critic if baseline is None else BaselineCritic(critic)
        return critic, plan.fit(critic, pairs, progress)

    def _held_out(self, scales: Scales, held: Sample | None, separable: bool) -> HeldOut | None:
        """Return held-out pairs with partners, which are cheap for separable critics."""
        if held is None:
            return None
        k = _HELD_NEGATIVES if separable else _SCORED_NEGATIVES
        return HeldOut(*scales(held), draw_partners(held, k, self.seed))

    def _log_normaliser(self, sample: Sample) -> float:
        """Return log E[exp f] over unpaired rows, the constant that the loss leaves free."""
        scores = self.scorer_.scores(sample, _SCORED_NEGATIVES, self.seed)
        product = torch.from_numpy(scores.product)
        return float(product.logsumexp((0, 1))) - math.log(product.numel())


def _recipe(baseline: Baseline | None, history: History) -> str:
    """Return what was chosen, in words."""
    trained = ", ".join(str(s.stage) for s in history.stages if s.best_step > 0)
    if not history.stages and history.best_step:
        trained = "all columns"
    parts = ["" if baseline is None else baseline.name, trained and f"network on {trained}"]
    return " + ".join(part for part in parts if part) or "nothing found"
