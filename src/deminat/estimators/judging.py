r"""What held-out rows say of experts: the score, who is admitted to the pool, and the weights.

A true log ratio has Z = 1 for every x and every y, so the mean log Z of an expert is what it reads
too much. See `pooled` for the theory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..critics.baselines import GaussianCopula
from ..critics.baselines.table import Table
from ..critics.composed import ClosedForm
from ..data.sample import Sample
from .base import Array
from .fitted import FittedScorer
from .normaliser import LogNormalisers, row_log_means

__all__ = ["AHEAD", "Judgement", "JudgingRows", "admitted", "best_score", "pool_weights"]

AHEAD = 0.02  # nats that an expert must be ahead if it is not normalised
_TOLERATED = 0.05  # nats of mean log Z
_UNKNOWN = 0.1  # nats of standard error of log Z: more excuse nothing
_MENDABLE = 0.3  # nats of mean log Z of an expert that may be lowered by as much
_NEAR = 0.1  # share of the best score that an expert may lack
_LEAST = 0.3  # nats of which it is a share, at least
_GAP, _LEAST_GAP = 0.3, 0.1  # share of the score, and nats, by which training rows may be ahead
_ROWS, _OTHERS = 200, 1000  # rows whose log Z is found, and rows of the other side for each
_ENOUGH = 6  # good closed forms
_CLEAR = 1.5  # standard errors by which some expert must be better than nothing
_SURE = 2.5  # ... by which it must be, so that nothing has no weight
_STEPS = 200  # of expectation maximisation
_PRIOR = 5.0  # rows by which all weights are drawn towards each other
_SMALL = 0.05  # weight below which an expert is dropped


@dataclass(frozen=True)
class Judgement:
    """What held-out rows say of an expert.

    Args:
        expert: The expert.
        joint: (n,) scores of held-out pairs, in nats, at most log n of the rows it was fitted to.
        log_z: Its normalisers.
        gap: By how much scores of training rows are higher, in nats.
        highest: Nats that a pair may count, at most.
    """

    expert: FittedScorer
    joint: Array
    log_z: LogNormalisers
    gap: float
    highest: float

    @property
    def excess(self) -> float:
        """What to subtract from scores: the mean log normaliser, where it is clearly above 0."""
        margin = 2 * self.log_z.error if self.is_normalised else 0.0
        return max(0.0, self.log_z.mean - margin)

    @property
    def score(self) -> float:
        """The gain in conditional log-likelihood, in nats."""
        return float(self.joint.mean()) - max(0.0, self.log_z.mean)

    @property
    def is_normalised(self) -> bool:
        """Whether Z is near 1 in both directions, as far as the rows can tell."""
        noise = 1.5 * min(self.log_z.error, _UNKNOWN)
        return max(self.log_z.of_x, self.log_z.of_y) < _TOLERATED + noise

    @property
    def surely(self) -> float:
        """The score, less two standard errors of the mean log normaliser."""
        return self.score - 2 * self.log_z.error

    @property
    def is_mendable(self) -> bool:
        """Whether subtracting the excess would make it a log ratio, nearly."""
        return self.log_z.mean + 2 * self.log_z.error < _MENDABLE

    @property
    def is_saturated(self) -> bool:
        """Whether it is a table that is near the largest value that its cells can show."""
        baseline = self.expert.scales.baseline
        return isinstance(baseline, Table) and self.score > baseline.ceiling - 1

    @property
    def is_clear(self) -> bool:
        """Whether the score is above sampling noise."""
        return self.score > _CLEAR * self._noise

    @property
    def is_sure(self) -> bool:
        """Whether the score is far above sampling noise."""
        return self.is_normalised and self.score > _SURE * self._noise

    @property
    def _noise(self) -> float:
        """The standard error of the mean joint score."""
        return float(self.joint.std()) / math.sqrt(len(self.joint))

    @property
    def is_overfit(self) -> bool:
        """Whether half the gap would no longer correct what was lost.

        Networks stop early, and copulas have a term of Akaike's criterion for each correlation.
        """
        is_copula = isinstance(self.expert.scales.baseline, GaussianCopula)
        closed = isinstance(self.expert.critic, ClosedForm) and not is_copula
        return closed and self.gap - 2 * self._noise > max(_GAP * self.score, _LEAST_GAP)


@dataclass(frozen=True)
class JudgingRows:
    """Held-out rows, and training rows whose other sides are their unpaired partners.

    Args:
        held: Rows that judge.
        others: Some of the training rows.
        highest: Nats that a held-out pair may count, at most. One far row, which an expert gives
            odds of a thousand nats, must not outweigh all others.
    """

    held: Sample
    others: Sample
    highest: float

    @classmethod
    def of(cls, fitted: Sample, held: Sample) -> Self:
        """Return the rows that judge what is fitted to others."""
        others = fitted.take(np.arange(min(_OTHERS, len(fitted))))
        return cls(held, others, math.log(len(fitted)))

    def joint(self, expert: FittedScorer) -> Array:
        """Return the scores (n,) of the held-out pairs."""
        return np.minimum(expert.joint(self.held), self.highest)

    def judge(self, expert: FittedScorer) -> Judgement:
        """Return what the rows say of an expert."""
        held, others = expert.scales(self.held), expert.scales(self.others)
        few = slice(_ROWS)
        log_z = LogNormalisers.of_rows(
            row_log_means(expert.table_of(held[0][few], others[1])),
            row_log_means(expert.table_of(others[0], held[1][few]).T),
        )
        joint = np.minimum(expert.joint_of(*held), self.highest)
        training = np.minimum(expert.joint_of(*others), self.highest)
        gap = float(training.mean() - joint.mean())
        return Judgement(expert, joint, log_z, gap, self.highest)

    def judge_all(self, experts: Sequence[FittedScorer]) -> list[Judgement]:
        """Return judgements of experts that may be near the best, and of the copulas.

        No score is above the mean of the joint scores, so those that are behind need no normaliser.
        Nor do more than a few good ones: what the next would add to the pool is small.
        """
        means = [float(self.joint(expert).mean()) for expert in experts]
        found: list[Judgement] = []
        last = math.inf
        for mean, i in sorted(zip(means, range(len(experts)), strict=True), reverse=True):
            good = [j for j in found if j.is_normalised and not j.is_overfit]
            may_join = mean >= _bar(best_score(found)) and len(good) < _ENOUGH
            is_copula = isinstance(experts[i].scales.baseline, GaussianCopula)
            if (may_join or is_copula) and mean < last:  # not equal to the last
                found.append(self.judge(experts[i]))
            last = mean
        return found


def admitted(judged: Sequence[Judgement]) -> list[Judgement]:
    """Return the experts that are near the best; none if nothing does as well.

    One that is not normalised is among them only if it is far ahead of those that are, and if its
    excess is small and known. Those that overfit are better than nothing.
    """
    fitting = [j for j in judged if not j.is_overfit]
    ahead = (1 + _NEAR) * best_score(fitting) + AHEAD
    good = [j for j in fitting if j.is_normalised or (j.is_mendable and j.surely > ahead)]
    if not any(j.is_clear for j in good):
        good = [j for j in judged if j.is_normalised and j.is_clear]
    best = max((j.score for j in good), default=0.0)
    return [j for j in good if j.score >= _bar(best)]


def best_score(judged: Sequence[Judgement]) -> float:
    """Return the highest score of normalised experts, that of nothing, 0, among them."""
    return max([0.0, *(j.score for j in judged if j.is_normalised)])


def _bar(best: float) -> float:
    """Return the score below which experts are left out."""
    return best - _NEAR * max(best, _LEAST)


def pool_weights(joint: Sequence[Array], n: int, is_something: bool = False) -> Array:
    """Return the weights (m + 1,) of experts, and of nothing, that held-out pairs like best.

    Args:
        joint: Scores (n,) of the pairs by each expert.
        n: Number of pairs.
        is_something: Whether x and y are surely dependent: then nothing has no weight.
    """
    scores = np.stack([*joint, np.zeros(n)], axis=1)
    ratios = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = np.ones(scores.shape[1])
    weights[-1] = 0.0 if is_something else 1.0
    weights /= weights.sum()
    for step in range(_STEPS):
        found = weights * (ratios / (ratios @ weights)[:, None]).sum(axis=0)
        weights = (found + _PRIOR * (weights > 0) / (weights > 0).sum()) / (n + _PRIOR)
        if step == _STEPS // 2:
            weights = np.where(weights < _SMALL, 0.0, weights)
    return np.asarray(weights / weights.sum())
