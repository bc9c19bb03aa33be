r"""The default recipe: a pool of experts, weighed by a score that does not saturate.

Every expert m is a log ratio $f_m$: nothing, closed forms, networks. Cross-entropy forgives a
critic wherever pairs are told from unpaired ones anyway, in the tails and at high information. The
row normaliser does not. A true log ratio has

$$ Z(x) = \mathbb E_{p(y)}\, e^{f(x, y)} = 1 \quad\text{for every } x, $$

and the same for every y. The score $S = \mathbb E f - \mathbb E \log Z$ is the gain in conditional
log-likelihood: at most I, and equal to it for the truth, whatever constant is added to a row. Here
Z is a mean over training rows, which sees some $\log n$ nats. Above that, or where tables reach
what their cells can show, the likelihood of held-out rows chooses a single expert.

Experts that are not normalised would win just where they are wrong, and those that are clearly
behind overfit: both are left out. The others are averaged as ratios,

$$ f = \log \sum_m w_m\, e^{f_m} , $$

with the weights that held-out pairs like best. A pool of normalised experts is normalised.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from ..critics.baselines import Baseline, GaussianCopula
from ..critics.baselines.experts import closed_form_experts
from ..critics.baselines.table import Table
from ..critics.composed import ClosedForm
from ..critics.scoring import score_table
from ..data.sample import Sample
from ..data.splits import hold_out
from ..data.transforms import Identity
from ..objectives import DEMI, Objective
from ..runtime.process import one_thread
from ..runtime.progress import Progress
from ..training.callbacks import History
from ..training.config import AUTO
from ..training.early_stopping import EarlyStopping
from .base import Array, ObjectiveEstimator
from .fitted import FittedScorer, PooledScorer, Scorer
from .neural import Estimator
from .scaling import Scales

__all__ = ["Judgement", "Pool"]

_TOLERATED = 0.05  # nats of mean log Z
_NEAR = 0.1  # share of the best score that an expert may lack
_AHEAD = 0.02  # nats that an expert must be ahead if it is not normalised
_LEAST = 0.3  # nats of which it is a share, at least
_GAP, _LEAST_GAP = 0.3, 0.1  # share of the score, and nats, by which training rows may be ahead
_ROWS, _OTHERS = 200, 1000  # rows whose log Z is found, and rows of the other side for each
_MIN_GAIN = 0.005  # nats by which independent components must be better
_CLEAR = 1.5  # standard errors by which some expert must be better than nothing
_JUDGES = 100  # rows that judge, if half of the rows are as many
_STEPS = 200  # of expectation maximisation
_PRIOR = 5.0  # rows by which all weights are drawn towards each other
_SMALL = 0.03  # weight below which an expert is dropped
_CHECKABLE = 5.0  # nats up to which rows show the normaliser
_NOTHING = History(0, 0, math.nan, (), 0)
_SCORED_NEGATIVES = 16  # partners a pair in held-out scores


@dataclass(frozen=True)
class Judgement:
    """What held-out rows say of an expert.

    Args:
        expert: The expert.
        joint: (n,) scores of held-out pairs, in nats.
        log_z: Mean of log Z(x), and of log Z(y), in nats.
        error: Standard error of the mean of both.
        gap: By how much scores of training rows are higher, in nats.
    """

    expert: FittedScorer
    joint: Array
    log_z: tuple[float, float]
    error: float
    gap: float

    @property
    def excess(self) -> float:
        """What to subtract from scores: the mean log normaliser, where it is clearly above 0."""
        margin = 2 * self.error if self.is_normalised else 0.0
        return max(0.0, sum(self.log_z) / 2 - margin)

    @property
    def score(self) -> float:
        """The gain in conditional log-likelihood, in nats."""
        return float(self.joint.mean()) - max(0.0, sum(self.log_z) / 2)

    @property
    def is_normalised(self) -> bool:
        """Whether Z is near 1 in both directions, as far as the rows can tell."""
        return max(self.log_z) < _TOLERATED + 1.5 * self.error

    @property
    def is_saturated(self) -> bool:
        """Whether it is a table that is near the largest value that its cells can show."""
        baseline = self.expert.scales.baseline
        return isinstance(baseline, Table) and self.score > baseline.ceiling - 1

    @property
    def is_clear(self) -> bool:
        """Whether the score is above sampling noise."""
        noise = float(self.joint.std()) / math.sqrt(len(self.joint))
        return self.score > _CLEAR * noise

    @property
    def is_overfit(self) -> bool:
        """Whether half the gap would no longer correct what was lost; networks stop early."""
        closed = isinstance(self.expert.critic, ClosedForm)
        noise = 2 * float(self.joint.std()) / math.sqrt(len(self.joint))
        return closed and self.gap - noise > max(_GAP * self.score, _LEAST_GAP)


@dataclass(eq=False, repr=False)
class Pool(ObjectiveEstimator):
    """The default recipe: closed forms and networks, weighed by held-out rows.

    Args:
        objective: How to read off the information; it must be one that trains by cross-entropy.
        network: What is trained where closed forms may leave something.
        seed: Of all randomness.
        budget: Seconds that a network may take.
        correct: Whether `measure` adds half the gap between training and held-out scores.

    After `fit`: `scorer_`, `history_`, and `judgements_` of the experts by their names.
    """

    objective: Objective = DEMI()  # noqa: RUF009 - it is frozen
    network: Estimator = field(default_factory=Estimator)
    seed: int = 0
    budget: float | None = None
    correct: bool = True

    @property
    def is_validated(self) -> bool:
        """Whether intervals were validated for it."""
        return self.network.training == AUTO

    @property
    def scaling_name(self) -> str:
        """What results call the map of the columns that networks see."""
        return self.network.scaling_name

    @property
    def corrects(self) -> bool:
        """Whether half the gap is added."""
        return self.correct

    def partners_scored(self) -> int:
        """Return how many unpaired partners a held-out pair gets."""
        return _SCORED_NEGATIVES

    def shared_training(self) -> Hashable:
        """Return all that training depends on."""
        return type(self), self.network.shared_training(), self.seed, self.budget, self.correct

    def within(self, seconds: float) -> Self:
        """Return the estimator with a limit of seconds for each fit."""
        return replace(self, budget=seconds)

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Fit and weigh all experts."""
        self.n_features_in_ = sample.x.shape[1]
        fitted, held = hold_out(sample, _share(sample), self.seed)
        rows = _JudgingRows(held, fitted.take(np.arange(min(_OTHERS, len(fitted)))))
        judged = rows.judge_all(_closed(fitted, held))
        saturated = [j for j in judged if j.is_saturated]
        judged = [j for j in judged if not j.is_saturated]
        if _best(judged) > _CHECKABLE or _best(saturated) > _best(judged) + _AHEAD:
            return self._by_likelihood(sample, progress)
        self.history_, copula = _NOTHING, _best_copula(judged)
        if _may_need_network(sample):
            judged += self._networks(sample, rows, judged, copula, progress)
        self.judgements_ = {_name(j.expert): j for j in judged}
        kept = _admitted(judged)
        weights = _weights([j.joint - j.excess for j in kept], len(held))
        used = [(j, w) for j, w in zip(kept, weights[:-1], strict=True) if w > 0]
        with np.errstate(divide="ignore"):
            log_nothing = float(np.log(weights[-1]))
        self.scorer_ = PooledScorer(
            tuple(_refitted(j.expert, sample) for j, _ in used),
            np.array([np.log(w) - j.excess for j, w in used]),
            log_nothing,
        )
        known = copula if _may_need_network(sample) else self.scorer_
        self.known_mean_: Callable[[Sample], float] = partial(_mean, known)
        words = [f"{w:.0%} {_name(j.expert)}" for j, w in used]
        words += [f"{weights[-1]:.0%} nothing"] if weights[-1] > 0 else []
        self.history_ = replace(self.history_, recipe=", ".join(words))
        return self

    def _networks(
        self,
        sample: Sample,
        rows: "_JudgingRows",
        judged: Sequence[Judgement],
        copula: FittedScorer | None,
        progress: Progress | None,
    ) -> "list[Judgement]":
        """Return trained networks: on the best copula, and alone if that is not normalised."""
        baselines = [None] if copula is None else [copula.scales.baseline, None]
        found: list[Judgement] = []
        for baseline in baselines:
            network = replace(self.network, baseline=_Given(baseline))
            trained = self._trained(network, sample, progress)
            self.history_ = trained.history_
            if trained.history_.best_step == 0:  # nothing was learnt: it is the baseline
                break
            found.append(rows.judge(trained.fitted_))
            if found[-1].is_normalised or found[-1].score < _best(judged):
                break
        return found

    def _trained(self, network: Estimator, sample: Sample, progress: Progress | None) -> Estimator:
        """Return a network that is trained on the rows that do not judge."""
        training = network.training
        if training.stopping is not None:
            stopping = replace(training.stopping, held_out=_share(sample))
            training = replace(training, stopping=stopping)
        network = replace(network, training=training, seed=self.seed, budget=self.budget)
        return network.fit_sample(sample, progress)

    def _by_likelihood(self, sample: Sample, progress: Progress | None) -> Self:
        """Fit what likelihood chooses, where rows do not show the normaliser."""
        network = replace(self.network, seed=self.seed, budget=self.budget)
        trained = network.fit_sample(sample, progress)
        self.history_, self.judgements_ = trained.history_, {}
        self.known_mean_ = trained.baseline_mean
        # A few rows that no shape explains must not outweigh all others: n rows know odds up to n.
        few = 1 / len(sample)
        weights = np.array([math.log1p(-few)])
        self.scorer_ = PooledScorer((trained.fitted_,), weights, math.log(few))
        return self

    def baseline_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by what is known to be complete, in nats.

        That is the copula: of what others find some may be missing. Of two columns it is the pool,
        since tables see all.
        """
        return self.known_mean_(sample)


@dataclass(frozen=True)
class _Given:
    """A choice of baseline that was made before."""

    baseline: Baseline | None

    def __call__(self, *rows: Any) -> Baseline | None:
        """Return it, whatever the rows are."""
        return self.baseline


@dataclass(frozen=True)
class _JudgingRows:
    """Held-out rows, and training rows whose other sides are their unpaired partners."""

    held: Sample
    others: Sample

    def judge(self, expert: FittedScorer) -> Judgement:
        """Return what the rows say of an expert."""
        few = self.held.take(np.arange(min(_ROWS, len(self.held))))
        (x, y), (x_other, y_other) = expert.scales(few), expert.scales(self.others)
        with one_thread():
            by_x = score_table(expert.critic, x, y_other)
            by_y = score_table(expert.critic, x_other, y)
        constant = math.log(len(self.others)) + expert.offset
        log_z = [t.double().logsumexp(dim) - constant for t, dim in ((by_x, 1), (by_y, 0))]
        error = math.hypot(*(float(z.std()) / math.sqrt(len(few)) for z in log_z)) / 2
        means = float(log_z[0].mean()), float(log_z[1].mean())
        joint = expert.joint(self.held)
        gap = float(expert.joint(self.others).mean() - joint.mean())
        return Judgement(expert, joint, means, error, gap)

    def judge_all(self, experts: Sequence[FittedScorer]) -> list[Judgement]:
        """Return judgements of experts that may be near the best.

        No score is above the mean of the joint scores, so those that are behind need no normaliser.
        """
        means = [float(expert.joint(self.held).mean()) for expert in experts]
        found: list[Judgement] = []
        last = math.inf
        for mean, i in sorted(zip(means, range(len(experts)), strict=True), reverse=True):
            is_copula = isinstance(experts[i].scales.baseline, GaussianCopula)
            if (mean >= _bar(_best(found)) or is_copula) and mean < last:  # not equal to the last
                found.append(self.judge(experts[i]))
            last = mean
        return found


def _share(sample: Sample) -> float:
    """Return the share of the rows that judge: a sixth, but more of few rows."""
    return min(0.5, max(EarlyStopping().held_out, _JUDGES / len(sample)))


def _mean(known: Scorer | None, sample: Sample) -> float:
    """Return the mean score of pairs, in nats; 0 by nothing."""
    return 0.0 if known is None else float(known.joint(sample).mean())


def _best_copula(judged: Sequence[Judgement]) -> FittedScorer | None:
    """Return the normalised copula with the highest score, if one is better than nothing.

    Independent components must be clearly better: a network would see them instead of the columns,
    and they may undo sparsity.
    """
    found: FittedScorer | None = None
    highest = 0.0
    for j in judged:
        baseline = j.expert.scales.baseline
        if isinstance(baseline, GaussianCopula) and j.is_normalised:
            score = j.score - (_MIN_GAIN if baseline.frames.name else 0.0)
            found, highest = (j.expert, score) if score > highest else (found, highest)
    return found


def _admitted(judged: Sequence[Judgement]) -> list[Judgement]:
    """Return the experts that are near the best; none if nothing does as well.

    One that is not normalised is among them only if it is far ahead of those that are.
    """
    fitting = [j for j in judged if not j.is_overfit]
    ahead = (1 + _NEAR) * _best(fitting) + _AHEAD
    good = [j for j in fitting if j.is_normalised or j.score > ahead]
    if not any(j.is_clear for j in good):
        return []
    best = max(j.score for j in good)
    return [j for j in good if j.score >= _bar(best)]


def _best(judged: Sequence[Judgement]) -> float:
    """Return the highest score of normalised experts, that of nothing, 0, among them."""
    return max([0.0, *(j.score for j in judged if j.is_normalised)])


def _bar(best: float) -> float:
    """Return the score below which experts are left out."""
    return best - _NEAR * max(best, _LEAST)


def _may_need_network(sample: Sample) -> bool:
    """Tell whether closed forms may leave something: not of two columns, where tables see all."""
    return sample.x.ndim > 2 or sample.y.ndim > 2 or sample.x.shape[1] + sample.y.shape[1] > 2


def _closed(fitted: Sample, held: Sample) -> list[FittedScorer]:
    """Return all closed forms, fitted to rows."""
    if fitted.x.ndim > 2 or fitted.y.ndim > 2:
        return []
    found = closed_form_experts(fitted.x, fitted.y, held.x, held.y)
    return [_scorer(baseline, fitted) for baseline in found]


def _scorer(baseline: Baseline, sample: Sample) -> FittedScorer:
    scales = replace(Scales.fit(Identity, sample, baseline), precise=True)
    return FittedScorer(scales, ClosedForm(baseline.components))


def _refitted(expert: FittedScorer, sample: Sample) -> FittedScorer:
    """Return a closed form that is fitted to all rows; a network as it is."""
    baseline = expert.scales.baseline
    if baseline is None or not isinstance(expert.critic, ClosedForm):
        return expert
    return _scorer(baseline.refit(sample.x, sample.y), sample)


def _name(expert: FittedScorer) -> str:
    baseline = expert.scales.baseline
    if isinstance(expert.critic, ClosedForm) and baseline is not None:
        return baseline.name
    return "network" if baseline is None else f"{baseline.name} + network"


def _weights(joint: Sequence[Array], n: int) -> Array:
    """Return the weights (m + 1,) of experts, and of nothing, that held-out pairs like best."""
    scores = np.stack([*joint, np.zeros(n)], axis=1)
    ratios = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = np.full(scores.shape[1], 1 / scores.shape[1])
    for step in range(_STEPS):
        found = weights * (ratios / (ratios @ weights)[:, None]).sum(axis=0)
        weights = (found + _PRIOR * (weights > 0) / (weights > 0).sum()) / (n + _PRIOR)
        if step == _STEPS // 2:
            weights = np.where(weights < _SMALL, 0.0, weights)
    return np.asarray(weights / weights.sum())
