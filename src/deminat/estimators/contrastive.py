r"""Networks of the pool: separable critics, trained by the conditional likelihood.

Cross-entropy asks whether a pair belongs together. Here the question is which of many rows belongs
to x, and which to y (InfoNCE in both directions). Its loss is minus the score of the pool,

$$ S = \mathbb E f - \tfrac12\, \mathbb E \log Z(x) - \tfrac12\, \mathbb E \log Z(y) , $$

so training, early stopping and the weights of the pool all seek the same thing. The loss does not
change if $a(x) + b(y)$ is added to f. What is left free is fixed afterwards, by rows that are not
paired: see `NormalisedCritic`.

Of few rows a network learns much noise. Several of them, each with other rows held out, learn
different noise, and the score of their mean is above the mean of their scores: $\log Z$ is convex.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from ..critics.baselines import Baseline
from ..critics.composed import BaselineCritic, ColumnCritic, MeanCritic, NormalisedCritic
from ..critics.features import Features
from ..critics.networks import SeparableCritic
from ..data.pairs import batches, label_tensor
from ..data.sample import Sample
from ..data.splits import hold_out
from ..data.transforms import Views
from ..records import Stage
from ..runtime.process import one_thread
from ..runtime.progress import Progress
from ..training.analytic.gradients import conditional_loss
from ..training.callbacks import History
from ..training.config import Training
from ..training.early_stopping import EarlyStopping
from ..training.loop import train
from .fitted import FittedScorer
from .scaling import Scales
from .staged_fit import StageColumns, stages_for

__all__ = ["CONTRASTIVE", "NO_HISTORY", "Networks", "Trained"]

NO_HISTORY = History(0, 0, math.nan, (), 0)

CONTRASTIVE: Training = Training(
    batch=256,
    negatives=None,
    in_batch=False,
    steps=1000,
    learning_rate=4e-3,
    halve_at=(),
    cosine=True,
    weight_decay=0.05,
    clip=None,
    average=0.98,
    stopping=EarlyStopping(every=25, patience=5, initial_patience=12),
)
_REFERENCE = 1500  # rows that normalise
_CANDIDATES = 500  # training rows among which held-out rows find theirs
_NOISE = 0.2  # nats of held-out loss that sampling noise may gain, times the held-out rows
_MEMBERS = 3  # networks of few rows
_RELATED = 0.5  # share of the columns, at most, that a network of its own sees
_FEW = 6000  # rows that members share: of as many there is one


@dataclass(frozen=True)
class Trained:
    """A network, with what more of them need.

    Args:
        scales: How rows become features.
        columns: Of the features, those that it sees; `None` for all.
        critics: Trained ones.
        history: Of the first.
    """

    scales: Scales
    columns: StageColumns | None
    critics: tuple[nn.Module, ...]
    history: History

    def scorer(self, sample: Sample) -> FittedScorer:
        """Return the mean of the critics, normalised by rows of a sample."""
        some = sample.take(np.arange(min(_REFERENCE, len(sample))))
        x, y = self.scales(some)
        with one_thread():
            critic = NormalisedCritic.fit(MeanCritic(self.critics), x, y, label_tensor(some))
        return FittedScorer(self.scales, critic.eval())


@dataclass(frozen=True)
class Networks:
    """How networks are trained.

    Args:
        training: Of each; it must stop early.
        members: At most.
        budget: Seconds that training may take.
    """

    training: Training = CONTRASTIVE
    members: int = _MEMBERS
    budget: float | None = None

    def first(
        self,
        fitted: Sample,
        held: Sample,
        baseline: Baseline | None,
        seed: int,
        progress: Progress | None = None,
    ) -> Trained:
        """Return one network, trained on some rows and stopped by others.

        Beside a baseline it is given up sooner, if it learns nothing.
        """
        trained = Trained(Scales.fit(Views, fitted, baseline), None, (), NO_HISTORY)
        stopping = self.training.stopping
        if baseline is None or stopping is None:
            return self._with_critic(trained, fitted, held, seed, progress)
        stopping = replace(stopping, initial_patience=stopping.patience)
        sooner = replace(self, training=replace(self.training, stopping=stopping))
        return sooner._with_critic(trained, fitted, held, seed, progress)

    def first_on_related(
        self, fitted: Sample, held: Sample, seed: int, progress: Progress | None = None
    ) -> Trained | None:
        """Return one network that sees only the related columns, if those are at most half."""
        scales = Scales.fit(Views, fitted, None)
        stages = [s for s in stages_for(scales, fitted) if s.stage.kind == "related"]
        wide = fitted.x.shape[1] + fitted.y.shape[1]
        if not stages or sum(stages[0].stage.columns) > _RELATED * wide:
            return None
        trained = Trained(scales, stages[0], (), NO_HISTORY)
        return self._with_critic(trained, fitted, held, seed, progress)

    def more(
        self, trained: Trained, sample: Sample, seed: int, progress: Progress | None = None
    ) -> Trained:
        """Return the network with others that hold out other rows, if rows are few."""
        share = (self.training.stopping or EarlyStopping()).held_out
        for i in range(1, min(self.members, round(_FEW / len(sample)))):
            fitted, held = hold_out(sample, share, seed + i)
            trained = self._with_critic(trained, fitted, held, seed + i, progress)
        return trained

    def _with_critic(
        self, trained: Trained, fitted: Sample, held: Sample, seed: int, progress: Progress | None
    ) -> Trained:
        """Return the networks with one more, if it learnt anything."""
        (x, y), (x_held, y_held) = trained.scales(fitted), trained.scales(held)
        columns = trained.columns
        if columns is not None:
            x, y = columns.of_x(x), columns.of_y(y)
            x_held, y_held = columns.of_x(x_held), columns.of_y(y_held)
        n = len(fitted)
        deadline = None if self.budget is None else time.monotonic() + self.budget
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            critic = SeparableCritic(tuple(x.seen.shape[1:]), tuple(y.seen.shape[1:]))
            generator = torch.Generator().manual_seed(seed)
            history = train(
                critic,
                conditional_loss(critic, x, y),
                batches(n, self.training.batch, None, generator, labels=label_tensor(fitted)),
                max(1, n // self.training.batch),
                _above_noise(self.training, len(held)),
                held_loss=_held_loss((x_held, y_held), (x[:_CANDIDATES], y[:_CANDIDATES])),
                deadline=deadline,
                progress=progress,
            )
        history = replace(history, stage=Stage("all") if columns is None else columns.stage)
        if not trained.critics:
            trained = replace(trained, history=history)
        if history.best_step == 0:
            return trained
        found = critic if columns is None else ColumnCritic(critic, columns.x, columns.y)
        return replace(trained, critics=(*trained.critics, found))


def _above_noise(training: Training, held: int) -> Training:
    """Return the training, with an improvement that counts only above sampling noise."""
    stopping = training.stopping or EarlyStopping()
    least = max(stopping.min_delta, _NOISE / held)
    return replace(training, stopping=replace(stopping, min_delta=least))


Sides = tuple[Features, Features]


def _held_loss(held: Sides, others: Sides) -> Callable[[nn.Module], float]:
    """Return minus the score of held-out rows, with others as their unpaired partners."""

    @torch.no_grad()
    def loss(module: nn.Module) -> float:
        critic = BaselineCritic(module)
        (left, right), (x, y) = _factors(critic, held), _factors(critic, others)
        log_z = (left @ y.T).logsumexp(dim=1) + (right @ x.T).logsumexp(dim=1)
        return float((log_z / 2 - (left * right).sum(dim=1)).mean())

    return loss


def _factors(critic: BaselineCritic, sides: Sides) -> Sequence[torch.Tensor]:
    return critic.left(sides[0]), critic.right(sides[1])
