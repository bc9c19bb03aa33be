r"""Fitting a critic: in one training, or in stages of separable critics that are added up.

Each stage adds a network, zero at first, to the baseline and the stages before it: first one that
sees only the norms of the rows, then one that also sees the related columns, then one that sees all
columns. A narrow network cannot memorise much noise, and what it found is no longer left for the
wide one to find among noise. The first is trained for a shorter time: otherwise it would learn
coarsely what a later one learns finely. The last stage concatenates x and y: it learns edges, which
inner products of a few smooth functions cannot have. Held-out rows end each stage, at zero if
nothing is learnt.

Which columns are related? A network that sees 25 columns of which 3 matter learns noise from the
other 22. A column is related if a polynomial of its ranks correlates with one of the other side's:
see `column_correlations`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..critics.baselines.columns import column_correlations
from ..critics.composed import BaselineCritic, ColumnCritic, StagedCritic, SumCritic
from ..critics.features import Features
from ..critics.networks import FEW_INPUTS, CriticFactory, MLPCritic, build_critic
from ..critics.scoring import is_separable, joint_scores, product_scores
from ..data.pairs import batches
from ..data.sample import Sample
from ..data.transforms import Array, Views
from ..objectives import Objective
from ..records import Stage
from ..runtime.progress import Progress, progress_of_part
from ..training.analytic.gradients import batch_loss
from ..training.callbacks import History
from ..training.config import Training
from ..training.loop import train
from .scaling import Scales

__all__ = [
    "HeldOut",
    "StageColumns",
    "TrainingPairs",
    "TrainingPlan",
    "fit_stages",
    "related_columns",
    "stages_for",
]

Map = Callable[[Features], Features]

_NOISE = 0.2  # nats of held-out loss that sampling noise may gain, times the held-out rows
_CONCAT = 128, 128
_CONCAT_OF_FEW = 64, 64  # inputs: wider learns no more there, and takes twice as long
_FIRST = 0.4  # share of the steps that the first stage takes
_OF_FEW = 0.5  # share of the steps that separable critics of few inputs take
_PATIENCE = 3  # evaluations in which a separable critic must improve
_NEGATIVES = 4  # partners a pair in training, where each costs a pass through the critic


@dataclass(frozen=True)
class HeldOut:
    """Pairs that decide when to stop.

    Args:
        x: Features of x, (m, ...).
        y: Features of y, (m, ...).
        partners: (m, k) unpaired rows of each.
    """

    x: Features
    y: Features
    partners: Tensor


@dataclass(frozen=True)
class TrainingPairs:
    """Pairs to train on, and pairs that decide when to stop.

    Args:
        x: Features of x, (n, ...).
        y: Features of y, (n, ...).
        labels: (n,) copies of one observation share a label; `None` if there are none.
        held: `None` trains to the end.
    """

    x: Features
    y: Features
    labels: Tensor | None
    held: HeldOut | None

    def mapped(self, of_x: Map, of_y: Map) -> Self:
        """Return the same pairs with the features of x and y mapped."""
        held = self.held
        if held is not None:
            held = replace(held, x=of_x(held.x), y=of_y(held.y))
        return replace(self, x=of_x(self.x), y=of_y(self.y), held=held)

    def with_fewer_partners(self) -> Self:
        """Return the same pairs with fewer held-out partners: each costs a pass."""
        held = self.held
        if held is not None:
            held = replace(held, partners=held.partners[:, :_NEGATIVES])
        return replace(self, held=held)


@dataclass(frozen=True)
class TrainingPlan:
    """How critics are trained.

    Args:
        objective: What to train by.
        training: How to train.
        seed: Of all randomness.
        deadline: On the monotonic clock; `None` for no limit.
    """

    objective: Objective
    training: Training
    seed: int
    deadline: float | None = None

    def fit(self, critic: nn.Module, pairs: TrainingPairs, progress: Progress | None) -> History:
        """Train a critic in place."""
        n, alpha = len(pairs.x), self.objective.sampled_prior
        stream = batches(
            n,
            self.training.batch,
            self._negatives(critic, drawn=alpha is not None),
            torch.Generator().manual_seed(self.seed),
            labels=pairs.labels,
            alpha=alpha,
            in_batch=self.training.in_batch,
        )
        return train(
            critic,
            batch_loss(critic, pairs.x, pairs.y, self.objective),
            stream,
            max(1, n // self.training.batch),
            self._settings(pairs),
            held_loss=self._held_loss(pairs.held),
            deadline=self.deadline,
            progress=progress,
        )

    def share(self, i: int, count: int) -> Self:
        """Return the plan of the i-th of `count` parts, with its share of the time left."""
        if self.deadline is None:
            return self
        now = time.monotonic()
        return replace(self, deadline=now + (self.deadline - now) / (count - i))

    def shortened(self, part: float) -> Self:
        """Return the plan with a part of its steps, which ends sooner if nothing is learnt."""
        training = self.training
        if training.steps is not None:
            training = replace(training, steps=max(1, round(part * training.steps)))
        if training.stopping is not None:
            patience = min(_PATIENCE, training.stopping.initial_patience)
            stopping = replace(training.stopping, initial_patience=patience)
            training = replace(training, stopping=stopping)
        return replace(self, training=training)

    def _settings(self, pairs: TrainingPairs) -> Training:
        """Return the training, with an improvement that counts only above sampling noise."""
        stopping = self.training.stopping
        if stopping is None or pairs.held is None:
            return self.training
        least = max(stopping.min_delta, _NOISE / len(pairs.held.x))
        return replace(self.training, stopping=replace(stopping, min_delta=least))

    def _negatives(self, critic: nn.Module, drawn: bool) -> int | None:
        """Return the unpaired partners of a pair, `None` for all others of its batch.

        Where as many are wanted as a batch has others, those are used: their rows are there.
        """
        wanted = self.training.negatives
        if wanted is not None:
            return None if wanted == self.training.batch - 1 and not drawn else wanted
        return None if is_separable(critic) and not drawn else _NEGATIVES

    def _held_loss(self, held: HeldOut | None) -> Callable[[nn.Module], float] | None:
        """Return the loss of held-out rows, always with the same partners."""
        if held is None:
            return None

        def held_loss(critic: nn.Module) -> float:
            joint = joint_scores(critic, held.x, held.y)
            product = product_scores(critic, held.x, held.y, held.partners)
            return float(self.objective.loss(joint, product))

        return held_loss


@dataclass(frozen=True)
class StageColumns:
    """Columns of the features that the network of a stage sees.

    Args:
        stage: What they are.
        x: (k,) of x.
        y: (k',) of y.
    """

    stage: Stage
    x: Tensor
    y: Tensor

    def of_x(self, x: Features) -> Features:
        """Return the features of x that the network sees."""
        return replace(x, seen=x.seen[:, self.x])

    def of_y(self, y: Features) -> Features:
        """Return the features of y that the network sees."""
        return replace(y, seen=y.seen[:, self.y])


def stages_for(scales: Scales, sample: Sample) -> list[StageColumns]:
    """Return what networks are to see, one after the other; nothing if there is no choice."""
    x_map, y_map = scales.x_map, scales.y_map
    tabular = sample.x.ndim == sample.y.ndim == 2
    if not (tabular and isinstance(x_map, Views) and isinstance(y_map, Views)):
        return []
    x, y = scales.frames.of_x(sample.x), scales.frames.of_y(sample.y)
    related = related_columns(x, y)
    nothing, everything = ([np.full_like(a, seen) for a in related] for seen in (False, True))
    chosen = [(Stage("norms"), nothing)]
    if related[0].any() and not (related[0].all() and related[1].all()):
        counts = int(related[0].sum()), int(related[1].sum())
        chosen.append((Stage("related", counts), [*related]))
    chosen.append((Stage("all"), everything))
    seen = [(stage, x_map.columns(a), y_map.columns(b)) for stage, (a, b) in chosen]
    return [StageColumns(stage, torch.from_numpy(a), torch.from_numpy(b)) for stage, a, b in seen]


def fit_stages(
    factory: CriticFactory,
    stages: Sequence[StageColumns],
    pairs: TrainingPairs,
    plan: TrainingPlan,
    progress: Progress | None = None,
) -> tuple[nn.Module, History]:
    """Return separable critics trained one after the other and added up, and the history.

    Args:
        factory: Constructor of the critic of each stage.
        stages: What each sees.
        pairs: With the factors of a baseline, if there is one.
        plan: How to train.
        progress: Called with the share of the work that is done.
    """
    few = max(pairs.x.seen.shape[1], pairs.y.seen.shape[1]) <= FEW_INPUTS
    count = len(stages) + 1
    kept: list[ColumnCritic] = []
    histories = []
    for i, columns in enumerate(stages):
        network = build_critic(factory, (len(columns.x),), (len(columns.y),))
        part = (_FIRST if i == 0 else 1) * (_OF_FEW if few else 1)
        stage_plan = plan.share(i, count).shortened(part)
        own = pairs.mapped(columns.of_x, columns.of_y)
        part_done = progress_of_part(progress, i, count)
        history = stage_plan.fit(BaselineCritic(network), own, part_done)
        histories.append(replace(history, stage=columns.stage))
        if history.best_step > 0:
            kept.append(ColumnCritic(network, columns.x, columns.y))
            pairs = _with_factors(pairs, BaselineCritic(kept[-1]))
    staged, concat = StagedCritic(kept), _zero_critic(pairs, _CONCAT_OF_FEW if few else _CONCAT)
    part_done = progress_of_part(progress, len(stages), count)
    history = plan.fit(BaselineCritic(concat), pairs.with_fewer_partners(), part_done)
    histories.append(replace(history, stage=Stage("pairs")))
    critic = SumCritic(staged, concat) if history.best_step > 0 else staged
    return critic, _joined(histories)


@torch.no_grad()
def _with_factors(pairs: TrainingPairs, critic: BaselineCritic) -> TrainingPairs:
    """Return pairs whose baseline includes a critic."""
    return pairs.mapped(
        lambda x: replace(x, baseline=critic.left(x)),
        lambda y: replace(y, baseline=critic.right(y)),
    )


def _zero_critic(pairs: TrainingPairs, hidden: Sequence[int]) -> MLPCritic:
    """Return a critic that concatenates x and y, with its last layer at zero."""
    shapes = tuple(pairs.x.seen.shape[1:]), tuple(pairs.y.seen.shape[1:])
    critic = MLPCritic(*shapes, hidden)
    for weight in list(critic.parameters())[-2:]:
        nn.init.zeros_(weight)
    return critic


def _joined(histories: Sequence[History]) -> History:
    """Return the history of several trainings, one after the other."""
    return History(
        steps=sum(h.steps for h in histories),
        best_step=sum(h.best_step for h in histories),
        loss=histories[-1].loss,
        held_out=tuple(value for h in histories for value in h.held_out),
        restarts=sum(h.restarts for h in histories),
        falling=histories[-1].falling,
        stages=tuple(histories),
    )


def related_columns(x: Array, y: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which columns of x (n, dx) and of y (n, dy) are related to any of the other side."""
    crossed, edge = column_correlations(x, y)
    return crossed.max(axis=1) > edge, crossed.max(axis=0) > edge
