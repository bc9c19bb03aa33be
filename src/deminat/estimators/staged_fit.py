"""Learning in stages: what a critic is taught, and separable critics added up one by one.

Each stage adds a network, silent at first, to what there is already: first one that sees only the
lengths of the rows, then one that also sees the columns that matter, then one that sees all. A
narrow network cannot learn much noise, and what it found is no longer left for the wide one to find
among noise. The first is taught for a shorter time, lest it learn coarsely what a later one would
learn finely. The last stage concatenates x and y: it learns edges, which inner products of a few
smooth functions cannot have. Held-out rows end each stage, at its silent beginning if nothing is
gained; separable critics show soon whether there is initial_patience.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..critics.baselines import Frames
from ..critics.composed import BaselineCritic, StagedCritic, SumCritic
from ..critics.networks import FEW_INPUTS, CriticFactory, MLPCritic
from ..critics.scoring import is_separable, joint_scores, product_scores
from ..data.pairs import batches
from ..data.sample import Sample
from ..data.transforms import Array, RankToNormal, Views
from ..objectives import DEMI, Objective
from ..runtime.progress import Progress, progress_of_part
from ..training.analytic.gradients import batch_loss
from ..training.callbacks import History
from ..training.config import Training
from ..training.loop import train
from .scaling import Scales

__all__ = ["Stage", "TrainingPairs", "TrainingPlan", "fit_stages", "related_columns", "stages_for"]

Columns = Callable[[Tensor], Tensor]  # some of a table
_CHANCE = 0.2  # nats of loss that chance may gain, times the rows that it is measured by
_CONCAT = 128, 128
_CONCAT_OF_FEW = 64, 64  # inputs: wider learns no more there, and takes twice as long
_FIRST = 0.4  # share of the steps that the first stage takes
_OF_FEW = 0.5  # share of the steps that separable critics of few inputs take
_HOPE = 3  # looks that a separable critic has to show a gain
_NEGATIVES = 4  # partners a pair in training, where each costs a pass through the critic


@dataclass(frozen=True)
class TrainingPairs:
    """Pairs to learn from, and pairs to be judged by.

    Args:
        x: (n, ...) to learn from.
        y: (n, ...).
        labels: (n,) copies of one observation share a label; `None` if there are none.
        held: x, y and partners (m, k) to be judged by; `None` trains to the end.
    """

    x: Tensor
    y: Tensor
    labels: Tensor | None
    held: tuple[Tensor, Tensor, Tensor] | None

    def mapped(self, of_x: Callable[[Tensor], Tensor], of_y: Callable[[Tensor], Tensor]) -> Self:
        """Return the same pairs with x and y mapped."""
        held = None
        if self.held is not None:
            x, y, others = self.held
            held = of_x(x), of_y(y), others
        return replace(self, x=of_x(self.x), y=of_y(self.y), held=held)

    def with_fewer(self) -> Self:
        """Return the same pairs, to be judged by fewer partners: each costs a pass."""
        if self.held is None:
            return self
        x, y, others = self.held
        return replace(self, held=(x, y, others[:, :_NEGATIVES]))

    def beside(self, other: "TrainingPairs") -> Self:
        """Return the same pairs with the columns of another lesson to their right."""
        held = None
        if self.held is not None and other.held is not None:
            (x, y, others), (x_more, y_more, _) = self.held, other.held
            held = torch.cat([x, x_more], dim=1), torch.cat([y, y_more], dim=1), others
        x, y = torch.cat([self.x, other.x], dim=1), torch.cat([self.y, other.y], dim=1)
        return replace(self, x=x, y=y, held=held)


@dataclass(frozen=True)
class TrainingPlan:
    """How critics are taught.

    Args:
        objective: What to train by.
        training: How to train.
        seed: Of all randomness.
        deadline: On the monotonic clock; `None` for as long as it takes.
    """

    objective: Objective
    training: Training
    seed: int
    deadline: float | None = None

    def teach(self, critic: nn.Module, lesson: TrainingPairs, progress: Progress | None) -> History:
        """Train a critic in place."""
        objective, n = self.objective, len(lesson.x)
        alpha = objective.alpha if isinstance(objective, DEMI) and objective.draw else None
        stream = batches(
            n,
            self.training.batch,
            self._negatives(critic, drawn=alpha is not None),
            torch.Generator().manual_seed(self.seed),
            labels=lesson.labels,
            alpha=alpha,
        )
        return train(
            critic,
            batch_loss(critic, lesson.x, lesson.y, objective),
            stream,
            max(1, n // self.training.batch),
            self._settings(lesson),
            held_loss=self._held_loss(lesson),
            deadline=self.deadline,
            progress=progress,
        )

    def share(self, i: int, count: int) -> Self:
        """Return the course of the i-th of `count` parts, with its share of the time left."""
        if self.deadline is None:
            return self
        now = time.monotonic()
        return replace(self, deadline=now + (self.deadline - now) / (count - i))

    def shortened(self, part: float) -> Self:
        """Return the course in a part of its steps, given up sooner if nothing is learnt."""
        training = self.training
        if training.steps is not None:
            training = replace(training, steps=max(1, round(part * training.steps)))
        if training.stopping is not None:
            initial_patience = min(_HOPE, training.stopping.initial_patience)
            training = replace(
                training, stopping=replace(training.stopping, initial_patience=initial_patience)
            )
        return replace(self, training=training)

    def _settings(self, lesson: TrainingPairs) -> Training:
        """Return the training, with a least gain that few held-out rows cannot feign."""
        stopping = self.training.stopping
        if stopping is None or lesson.held is None:
            return self.training
        gain = max(stopping.gain, _CHANCE / len(lesson.held[0]))
        return replace(self.training, stopping=replace(stopping, gain=gain))

    def _negatives(self, critic: nn.Module, drawn: bool) -> int | None:
        """Return the unpaired partners of a pair, `None` for all others of its batch.

        Where as many are wanted as a batch has others, those are taken: their rows are there.
        """
        wanted = self.training.negatives
        if wanted is not None:
            return None if wanted == self.training.batch - 1 and not drawn else wanted
        return None if is_separable(critic) and not drawn else _NEGATIVES

    def _held_loss(self, lesson: TrainingPairs) -> Callable[[nn.Module], float] | None:
        """Return the loss of held-out rows, always with the same partners."""
        if lesson.held is None:
            return None
        x, y, others = lesson.held

        def held_loss(critic: nn.Module) -> float:
            joint, product = joint_scores(critic, x, y), product_scores(critic, x, y, others)
            return float(self.objective.loss(joint, product))

        return held_loss


@dataclass(frozen=True)
class Stage:
    """Columns that a network sees.

    Args:
        name: What results call them.
        x: Columns of x.
        y: Columns of y.
    """

    name: str
    x: Tensor
    y: Tensor


def stages_for(scales: Scales, sample: Sample) -> list[Stage]:
    """Return what networks are to see, one after the other; nothing if there is no choice."""
    x_map, y_map = scales.x_map, scales.y_map
    if not (isinstance(x_map, Views) and isinstance(y_map, Views)):
        return []
    if sample.x.ndim > 2 or sample.y.ndim > 2:
        return []
    frames = scales.start.frames if scales.start else Frames()
    x, y = frames.of_x(sample.x), frames.of_y(sample.y)
    nothing, everything = (
        [np.full(side.shape[1], seen) for side in (x, y)] for seen in (False, True)
    )
    related = related_columns(x, y)
    chosen = [("lengths", nothing)]
    if related[0].any() and not (related[0].all() and related[1].all()):
        chosen.append((f"{related[0].sum()} + {related[1].sum()} columns", [*related]))
    chosen.append(("all columns", everything))
    seen = [(name, x_map.columns(a), y_map.columns(b)) for name, (a, b) in chosen]
    return [Stage(name, torch.from_numpy(a), torch.from_numpy(b)) for name, a, b in seen]


def fit_stages(
    factory: CriticFactory,
    stages: Sequence[Stage],
    lesson: TrainingPairs,
    halves: int,
    course: TrainingPlan,
    progress: Progress | None = None,
) -> tuple[nn.Module, History]:
    """Return separable critics trained one upon the other, and what happened.

    Args:
        factory: Constructor of the critic of each stage.
        stages: What each may see.
        lesson: Pairs, whose last columns are a start.
        halves: How many columns that are.
        course: How to train.
        progress: Called with the share of the work that is done.
    """
    seen, known = lesson.mapped(*_first(halves)), lesson.mapped(*_last(halves))
    few = max(seen.x.shape[1], seen.y.shape[1]) <= FEW_INPUTS
    count = len(stages) + 1
    kept: list[tuple[nn.Module, Stage]] = []
    histories = []
    for i, stage in enumerate(stages):
        critic = BaselineCritic(factory((len(stage.x),), (len(stage.y),)), known.x.shape[1])
        own = lesson.mapped(*_taking(stage)).beside(known)
        part = (_FIRST if i == 0 else 1) * (_OF_FEW if few else 1)
        taught = course.share(i, count).shortened(part)
        history = taught.teach(critic, own, progress_of_part(progress, i, count))
        histories.append(replace(history, chose=stage.name))
        if history.best_step > 0:
            kept.append((critic.critic, stage))
            with torch.no_grad():
                known = own.mapped(critic.left, critic.right)
    columns = [stage.x for _, stage in kept], [stage.y for _, stage in kept]
    staged = StagedCritic([critic for critic, _ in kept], *columns, halves)
    pairs = _silent(seen, _CONCAT_OF_FEW if few else _CONCAT)
    own = seen.beside(known).with_fewer()
    part_done = progress_of_part(progress, len(stages), count)
    history = course.teach(BaselineCritic(pairs, known.x.shape[1]), own, part_done)
    histories.append(replace(history, chose="pairs"))
    if history.best_step == 0:
        return staged, _joined(histories)
    return SumCritic(staged, pairs), _joined(histories)


def _silent(seen: TrainingPairs, hidden: Sequence[int]) -> MLPCritic:
    """Return a critic of pairs with its last layer at zero: it says nothing until it has learnt."""
    critic = MLPCritic(tuple(seen.x.shape[1:]), tuple(seen.y.shape[1:]), hidden)
    for weight in list(critic.parameters())[-2:]:
        nn.init.zeros_(weight)
    return critic


def _first(halves: int) -> tuple[Columns, Columns]:
    """Return what takes the columns of both sides without those of the start."""
    return (lambda a: a[:, : a.shape[1] - halves],) * 2


def _last(halves: int) -> tuple[Columns, Columns]:
    """Return what takes the columns of the start."""
    return (lambda a: a[:, a.shape[1] - halves :],) * 2


def _taking(stage: Stage) -> tuple[Columns, Columns]:
    return lambda x: x[:, stage.x], lambda y: y[:, stage.y]


def _joined(histories: Sequence[History]) -> History:
    """Return the history of several trainings, one after the other."""
    return History(
        steps=sum(h.steps for h in histories),
        best_step=sum(h.best_step for h in histories),
        loss=histories[-1].loss,
        held_out=tuple(value for h in histories for value in h.held_out),
        restarts=sum(h.restarts for h in histories),
        falling=histories[-1].falling,
        chose=", ".join(h.chose for h in histories if h.best_step > 0),
        stages=tuple(histories),
    )


_BEYOND = 1.0  # standard errors above what chance is expected to reach


def related_columns(x: Array, y: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which columns of x (n, dx) and of y (n, dy) depend on any of the other side."""
    n, (dx, dy) = len(x), (x.shape[1], y.shape[1])
    crossed = np.abs(_polynomials(x).T @ _polynomials(y)) / n
    pairs = crossed.reshape(3, dx, 3, dy).max(axis=(0, 2))
    edge = (math.sqrt(2 * math.log(9 * dx * dy)) + _BEYOND) / math.sqrt(n)
    return pairs.max(axis=1) > edge, pairs.max(axis=0) > edge


def _polynomials(a: Array) -> Array:
    """Return (n, 3 d): Hermite polynomials of the ranks, standardised."""
    z = RankToNormal.fit(a)(a)
    terms = np.hstack([z, z**2 - 1, z**3 - 3 * z])
    terms -= terms.mean(axis=0)
    return np.asarray(terms / np.maximum(terms.std(axis=0), 1e-12))
