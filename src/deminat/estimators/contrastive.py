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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..critics.baselines import GaussianCopula
from ..critics.composed import BaselineCritic, ColumnCritic, MeanCritic, NormalisedCritic
from ..critics.features import Features
from ..critics.networks import FEW_INPUTS, SeparableConvCritic, SeparableCritic
from ..data.pairs import batches, label_tensor
from ..data.sample import Sample
from ..data.schema import Schema
from ..data.splits import hold_out
from ..data.transforms import Projected, Standardize, Views
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

__all__ = [
    "CONTRASTIVE",
    "NO_HISTORY",
    "Networks",
    "Trained",
    "canonical_scales",
    "related_columns",
    "used_columns",
]

NO_HISTORY = History(0, 0, math.nan, (), 0)

CONTRASTIVE: Training = Training(
    batch=256,
    negatives=None,
    in_batch=False,
    steps=1000,
    learning_rate=6e-3,
    halve_at=(),
    cosine=True,
    weight_decay=0.05,
    clip=None,
    average=0.98,
    # On a plateau, the terms of x alone and of y alone may gain a little.
    stopping=EarlyStopping(every=25, patience=5, initial_patience=24, plateau=50),
)
_REFERENCE = 1500  # rows that normalise
_CANDIDATES = 500  # training rows among which held-out rows find theirs
_NOISE = 0.2  # nats of held-out loss that sampling noise may gain, times the held-out rows
_UNITS = 96, 96, 96  # of each layer, on each side, unless inputs are few
_MEMBERS = 3  # networks of few rows
_MOST_COLUMNS = 200  # of a side, of which each is permuted to see whether it is used
_CLEAR = 2.5  # standard errors by which the score must fall then
_RELATED = 0.5  # share of the columns, at most, that a network of its own sees
_WIDE, _WIDEST = 20, 1_000  # columns of a side whose canonical variables are shown
_SHOWN = 24  # of them
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
        scales: Scales,
        columns: StageColumns | None,
        fitted: Sample,
        held: Sample,
        seed: int,
        progress: Progress | None = None,
        to_beat: float = 0.0,
    ) -> Trained:
        """Return one network, trained on some rows and stopped by others.

        Beside the baseline of the scales it is given up sooner, if it learns nothing.

        Args:
            scales: How rows become features.
            columns: Of the features, those that it sees; `None` for all.
            fitted: Rows to train on.
            held: Rows that stop it.
            seed: Of the weights and batches.
            progress: Called with the share of the steps that is done.
            to_beat: A score in nats that is known already: if the network is below it after the
                trial, it is given up.
        """
        stopping = self.training.stopping or EarlyStopping()
        patience = stopping.initial_patience if scales.baseline is None else stopping.patience
        loss = math.log(min(_CANDIDATES, len(fitted))) - to_beat if to_beat > 0 else math.inf
        stopping = replace(stopping, initial_patience=patience, to_beat=loss)
        given = replace(self, training=replace(self.training, stopping=stopping))
        trained = Trained(scales, columns, (), NO_HISTORY)
        return given._with_critic(trained, fitted, held, seed, progress)

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
            shapes = tuple(x.seen.shape[1:]), tuple(y.seen.shape[1:])
            has_images = any(len(shape) == 3 for shape in shapes)
            critic = SeparableConvCritic(*shapes) if has_images else _separable(*shapes)
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


def _separable(x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> SeparableCritic:
    few = max(x_shape[0], y_shape[0]) <= FEW_INPUTS
    return SeparableCritic(x_shape, y_shape, None if few else _UNITS)


def canonical_scales(sample: Sample) -> Scales | None:
    """Return scales that show the canonical variables of many columns; `None` of few columns.

    A network that sees hundreds of columns learns noise before it learns what a few hidden ones do.
    Those show in the canonical variables, if they move the columns at all in a linear way.
    """
    if sample.x.ndim > 2 or sample.y.ndim > 2 or not _WIDE < max(_widths(sample)) <= _WIDEST:
        return None
    copula = GaussianCopula.fit(sample.x, sample.y, shrink=True, scale=Standardize)
    if len(copula.correlations) == 0:
        return None
    x_directions, y_directions = copula.x_directions[:, :_SHOWN], copula.y_directions[:, :_SHOWN]
    x_map = Projected.onto(x_directions, copula.x_scale, sample.x)
    y_map = Projected.onto(y_directions, copula.y_scale, sample.y)
    return Scales(Schema.of(sample), x_map, y_map)


def related_columns(scales: Scales, sample: Sample) -> StageColumns | None:
    """Return the columns that are related one by one, if those are at most half."""
    stages = [s for s in stages_for(scales, sample) if s.stage.kind == "related"]
    return stages[0] if stages and _are_few(stages[0], sample) else None


def _are_few(columns: StageColumns, sample: Sample) -> bool:
    return sum(columns.stage.columns) <= _RELATED * sum(_widths(sample))


def used_columns(trained: Trained, fitted: Sample, held: Sample) -> StageColumns | None:
    """Return the columns that a network uses, if those are at most half.

    A column is used if the score of held-out rows falls clearly when its values are permuted.
    Columns may matter only together, so that no test of single ones finds them. A network that
    sees them among idle ones learns them coarsely; alone, finely.
    """
    x_map, y_map = trained.scales.x_map, trained.scales.y_map
    if trained.columns is not None or not (isinstance(x_map, Views) and isinstance(y_map, Views)):
        return None
    if fitted.x.ndim > 2 or fitted.y.ndim > 2 or max(_widths(fitted)) > _MOST_COLUMNS:
        return None
    sides, others = (
        trained.scales(held),
        trained.scales(fitted.take(np.arange(min(_CANDIDATES, len(fitted))))),
    )
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(held)))
    with one_thread(), torch.no_grad():
        losses = _row_losses(MeanCritic(trained.critics), others)
        before = losses(*sides)
        used: list[NDArray[np.bool_]] = []
        for side, (views, width) in enumerate(zip((x_map, y_map), _widths(fitted), strict=True)):
            falls = []
            for own in _own_columns(views, width):
                moved = list(sides)
                moved[side] = _permuted(sides[side], own, order)
                falls.append((losses(*moved) - before).numpy())
            used.append(np.array([_is_clear(fall) for fall in falls]))
    if not (used[0].any() and used[1].any()):
        return None
    stage = Stage("related", (int(used[0].sum()), int(used[1].sum())))
    columns = (torch.from_numpy(m.columns(u)) for m, u in zip((x_map, y_map), used, strict=True))
    found = StageColumns(stage, *columns)
    return found if _are_few(found, fitted) else None


def _widths(sample: Sample) -> tuple[int, int]:
    return sample.x.shape[1], sample.y.shape[1]


def _own_columns(views: Views, width: int) -> Iterator[torch.Tensor]:
    """Yield the columns of the views that belong to each column alone."""
    shared = views.columns(np.zeros(width, dtype=bool))
    for one in np.eye(width, dtype=bool):
        yield torch.from_numpy(np.setdiff1d(views.columns(one), shared))


def _permuted(a: Features, columns: torch.Tensor, order: torch.Tensor) -> Features:
    """Return features with some columns in another order of rows."""
    seen = a.seen.clone()
    seen[:, columns] = seen[order][:, columns]
    return replace(a, seen=seen)


def _is_clear(falls: NDArray[np.float32]) -> bool:
    """Tell whether a score falls clearly on average."""
    return bool(falls.mean() > _CLEAR * falls.std() / math.sqrt(len(falls)))


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
        return float(_row_losses(BaselineCritic(module), others)(*held).mean())

    return loss


def _row_losses(
    critic: BaselineCritic | MeanCritic, others: Sides
) -> Callable[[Features, Features], torch.Tensor]:
    """Return the conditional losses (n,) of pairs, with others as their unpaired partners.

    As in training the pair itself is among the candidates: otherwise scores that are too large
    would be rewarded without limit where pairs are told from all others.
    """
    x, y = critic.left(others[0]), critic.right(others[1])

    def losses(of_x: Features, of_y: Features) -> torch.Tensor:
        left, right = critic.left(of_x), critic.right(of_y)
        joint = (left * right).sum(dim=1)
        of_rows = ((left @ y.T).logsumexp(dim=1), (right @ x.T).logsumexp(dim=1))
        return sum(torch.logaddexp(joint, log_z) for log_z in of_rows) / 2 - joint

    return losses
