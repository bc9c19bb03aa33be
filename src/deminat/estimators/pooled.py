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
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..critics.baselines import Baseline
from ..critics.baselines.experts import closed_form_experts
from ..critics.baselines.mixture import Mixture
from ..critics.baselines.table import Table
from ..critics.composed import ClosedForm, ColumnCritic
from ..data.labels import is_one_label
from ..data.sample import Sample
from ..data.splits import hold_out
from ..data.transforms import NoColumns, Projected, Views
from ..objectives import DEMI, Objective
from ..runtime.progress import Progress
from ..training.callbacks import History
from ..training.config import AUTO
from ..training.early_stopping import EarlyStopping
from .base import Array, ObjectiveEstimator
from .contrastive import (
    NO_HISTORY,
    Networks,
    Trained,
    canonical_scales,
    related_columns,
    used_columns,
)
from .fitted import FittedScorer, PooledScorer, Scorer
from .judging import AHEAD, Judgement, JudgingRows, admitted, best_score, pool_weights
from .neighbours import Neighbours, neighbours_of
from .neural import Estimator
from .scaling import Scales
from .staged_fit import StageColumns

__all__ = ["Judgement", "Pool"]

_JUDGES = 100  # rows that judge, if half of the rows are as many
_CHECKABLE = 5.0  # nats up to which rows show the normaliser
_MOST_SHOWN = 2  # times log n of the rows: nats that a single pair may have
_SCORED_NEGATIVES = 16  # partners a pair in held-out scores
_MATTERS = 0.2  # weight from which more networks of a kind are trained, if rows are few
_FAR_BEHIND = 0.85  # share of the score that is known which a network must have after a trial
_JUMP, _LEAST_JUMP = 0.1, 0.05  # share of the mean score, and nats, that a refit may change it by
_CLEAR = 4.0  # standard errors of held-out scores
_KINDS = 5  # of networks, at most, that share the budget


@dataclass(eq=False, repr=False)
class Pool(ObjectiveEstimator):
    """The default recipe: closed forms and networks, weighed by held-out rows.

    Args:
        objective: How to read off the information; it must be one that trains by cross-entropy.
        network: What is trained where rows do not show the normaliser.
        networks: What is trained elsewhere, if closed forms may leave something.
        seed: Of all randomness.
        budget: Seconds that a network may take.
        correct: Whether `measure` adds half the gap between training and held-out scores.

    After `fit`: `scorer_`, `history_`, and `judgements_` of the experts by their names.
    """

    objective: Objective = DEMI()  # noqa: RUF009 - it is frozen
    network: Estimator = field(default_factory=Estimator)
    networks: Networks = Networks()  # noqa: RUF009 - it is frozen
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
        own = self.networks, self.seed, self.budget, self.correct
        return type(self), self.network.shared_training(), *own

    def within(self, seconds: float) -> Self:
        """Return the estimator with a limit of seconds for each fit."""
        return replace(self, budget=seconds)

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Fit and weigh all experts."""
        self.n_features_in_ = sample.x.shape[1]
        fitted, held = hold_out(sample, _share(sample), self.seed)
        rows = JudgingRows.of(fitted, held)
        judged = rows.judge_all(_closed(fitted, held))
        saturated = [j for j in judged if j.is_saturated]
        judged = [j for j in judged if not j.is_saturated]
        if best_score(judged) > _CHECKABLE or best_score(saturated) > best_score(judged) + AHEAD:
            return self._by_likelihood(sample, progress)
        closed, networks = _best_closed(judged), self._networks_within()
        trained: list[tuple[Judgement, Trained]] = []
        history = NO_HISTORY
        if _may_need_network(sample):
            trained, history = self._trained(networks, fitted, rows, judged, progress)
            judged += [j for j, _ in trained]
        self.judgements_ = {_name(j.expert): j for j in judged}
        refitted = _Refits(sample)
        known = None if closed is None else refitted(closed)
        self.known_mean_: Callable[[Sample], float] = partial(_mean, known)
        self.lead_ = _lead([j for j in judged if isinstance(j.expert.critic, ClosedForm)])

        def on_all_rows(j: Judgement, weight: float) -> FittedScorer:
            own = next((t for other, t in trained if other is j), None)
            if own is None:
                return refitted(j)
            if weight > _MATTERS:
                own = networks.more(own, sample, self.seed, progress)
            return own.scorer(sample)

        self.scorer_, recipe = _pooled(judged, len(held), len(sample), on_all_rows)
        self.history_ = replace(history, recipe=recipe)
        return self

    def _networks_within(self) -> Networks:
        """Return how networks are trained, each with its share of the budget."""
        if self.budget is None:
            return self.networks
        return replace(self.networks, budget=self.budget / (_KINDS * self.networks.members))

    def _trained(
        self,
        networks: Networks,
        fitted: Sample,
        rows: JudgingRows,
        closed: Sequence[Judgement],
        progress: Progress | None,
    ) -> tuple[list[tuple[Judgement, Trained]], History]:
        """Return networks that learnt something, of all columns and of some.

        With them comes the history of the best, or of the last if none learnt anything.

        The first only learns what a closed form leaves. The others see the columns alone: the
        related ones, the canonical variables of many, or all. Each is given up if it is far behind
        what is known after a trial; if the first found that nothing is left, behind at all.
        """
        known = _best_sum(closed)
        found: list[tuple[Judgement, Trained]] = []
        last = NO_HISTORY

        def train(scales: Scales, columns: StageColumns | None, to_beat: float = 0.0) -> None:
            nonlocal last
            more = fitted, rows.held, self.seed, progress, to_beat
            trained = networks.first(scales, columns, *more)
            last = trained.history
            if trained.critics:
                found.append((rows.judge(trained.scorer(fitted)), trained))

        if known is not None:
            train(Scales.fit(Views, fitted, known.expert.scales.baseline), None)
        is_all = known is not None and not found and known.score >= best_score(closed)
        share = 1.0 if is_all else _FAR_BEHIND
        alone = Scales.fit(Views, fitted)

        def known_score() -> float:
            return share * max(best_score(closed), best_score([j for j, _ in found]))

        related = related_columns(alone, fitted)
        if related is not None:
            train(alone, related, known_score())
        canonical = None if is_all else canonical_scales(fitted)
        if canonical is not None:
            train(canonical, None, known_score())
        if known is None or any(j.score > best_score(closed) for j, _ in found):
            train(alone, None, known_score())
            used = used_columns(_leading(found), fitted, rows.held) if found else None
            if used is not None:
                train(alone, used, known_score())
        return found, _leading(found).history if found else last

    def _by_likelihood(self, sample: Sample, progress: Progress | None) -> Self:
        """Fit what likelihood chooses, where rows do not show the normaliser."""
        network = replace(self.network, seed=self.seed, budget=self.budget)
        trained = network.fit_sample(sample, progress)
        self.history_, self.judgements_ = trained.history_, dict[str, Judgement]()
        self.known_mean_ = trained.baseline_mean
        # A mixture that likelihood chose has no rival that would show what it missed.
        baseline = trained.fitted_.scales.baseline
        is_shape = isinstance(baseline, Mixture)
        self.lead_ = trained.baseline_mean(sample) if is_shape else 0.0
        # A few rows that no shape explains must not outweigh all others: n rows know odds up to n.
        few = 1 / len(sample)
        weights = np.array([math.log1p(-few)])
        self.scorer_ = PooledScorer((trained.fitted_,), weights, math.log(few))
        return self

    def baseline_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by the best closed form, in nats.

        A closed form is nearly exact where it suffices. Of what networks add some may be missing.
        """
        return self.known_mean_(sample)

    def neighbours(
        self, sample: Sample, part: NDArray[np.int64], joint: Array
    ) -> Neighbours | None:
        """Return what neighbours tell of held-out rows of a sample beyond their scores (m,)."""
        return neighbours_of(self.scorer_.at, sample, part, joint, self.seed)

    def lead(self) -> float:
        """Return by how much the best closed form was ahead of the next, in nats.

        Where several kinds agree each has found the shape. Where one sees far more than all others,
        as a table sees edges, even that may be too coarse.
        """
        return self.lead_


def _pooled(
    judged: Sequence[Judgement],
    held: int,
    n: int,
    on_all_rows: Callable[[Judgement, float], FittedScorer],
) -> tuple[PooledScorer, str]:
    """Return the pool of the experts that are admitted, and its weights in words.

    Args:
        judged: All experts.
        held: Number of rows that judged.
        n: Number of all rows.
        on_all_rows: Returns an expert of a weight fitted to all rows, also those that judged.
    """
    kept = admitted(judged)
    joint = [j.joint - j.excess for j in kept]
    weights = pool_weights(joint, held, any(j.is_sure for j in kept))
    used = [(j, w) for j, w in zip(kept, weights[:-1], strict=True) if w > 0]
    scorer = PooledScorer(
        tuple(on_all_rows(j, w) for j, w in used),
        np.array([np.log(w) - j.excess for j, w in used]),
        # A few rows that no expert explains must not outweigh all others.
        math.log(max(weights[-1], 1 / n)),
        _MOST_SHOWN * math.log(n),
    )
    words = [f"{w:.0%} {_name(j.expert)}" for j, w in used]
    words += [f"{weights[-1]:.0%} nothing"] if weights[-1] > 0 else []
    return scorer, ", ".join(words)


def _leading(found: Sequence[tuple[Judgement, Trained]]) -> Trained:
    """Return the network with the highest score."""
    return max(found, key=lambda pair: pair[0].score)[1]


def _share(sample: Sample) -> float:
    """Return the share of the rows that judge: a sixth, but more of few rows."""
    return min(0.5, max(EarlyStopping().held_out, _JUDGES / len(sample)))


def _mean(known: Scorer | None, sample: Sample) -> float:
    """Return the mean score of pairs, in nats; 0 by nothing."""
    return 0.0 if known is None else float(known.joint(sample).mean())


def _best_closed(judged: Sequence[Judgement]) -> Judgement | None:
    """Return the best closed form, if one is better than nothing."""
    return next(iter(_ranked(judged)), None)


def _ranked(judged: Sequence[Judgement]) -> list[Judgement]:
    """Return the closed forms that are better than nothing, the best first."""
    found = [j for j in judged if j.is_normalised and not j.is_overfit and j.score > 0]
    return sorted(found, key=lambda j: j.score, reverse=True)


def _lead(judged: Sequence[Judgement]) -> float:
    """Return the lead of the best closed form; 0 of a table of labels, which misses nothing."""
    ranked = _ranked(judged)
    best = ranked[0].expert.scales.baseline if ranked else None
    if best is None or (isinstance(best, Table) and math.isinf(best.ceiling)):
        return 0.0
    return ranked[0].score - (ranked[1].score if len(ranked) > 1 else 0.0)


def _best_sum(judged: Sequence[Judgement]) -> Judgement | None:
    """Return the best closed form that is an inner product, so that a network can be added."""
    sums = [j for j in judged if getattr(j.expert.scales.baseline, "components", 0) == 1]
    return _best_closed(sums)


def _may_need_network(sample: Sample) -> bool:
    """Tell whether closed forms may leave something: not of single columns."""
    sides = zip((sample.x, sample.y), sample.are_labels(), strict=True)
    return not all(a.shape[1:] == (1,) or (labels and is_one_label(a)) for a, labels in sides)


def _closed(fitted: Sample, held: Sample) -> list[FittedScorer]:
    """Return all closed forms, fitted to rows."""
    if fitted.x.ndim > 2 or fitted.y.ndim > 2:
        return []
    found = closed_form_experts(fitted, held)
    return [_scorer(baseline, fitted) for baseline in found]


def _scorer(baseline: Baseline, sample: Sample) -> FittedScorer:
    scales = replace(Scales.fit(NoColumns, sample, baseline), precise=True)
    return FittedScorer(scales, ClosedForm(baseline.components))


@dataclass
class _Refits:
    """Closed forms that are fitted to all rows of a sample, each once."""

    sample: Sample
    found: dict[int, FittedScorer] = field(default_factory=dict)

    def __call__(self, judged: Judgement) -> FittedScorer:
        """Return a closed form that is fitted to all rows, or as it was if that changes scores.

        Some rows more change scores little. If they do not, the fit ran away, and no row judged it.
        """
        key = id(judged.expert)
        if key not in self.found:
            self.found[key] = self._refitted(judged)
        return self.found[key]

    def _refitted(self, judged: Judgement) -> FittedScorer:
        baseline = judged.expert.scales.baseline
        if baseline is None or not isinstance(judged.expert.critic, ClosedForm):
            return judged.expert
        found = _scorer(baseline.refit(self.sample.x, self.sample.y), self.sample)
        after = np.minimum(found.joint(self.sample), judged.highest).mean()
        expected = float(judged.joint.mean()) + judged.gap
        noise = judged.joint.std() / math.sqrt(len(judged.joint))
        allowed = max(_LEAST_JUMP, _JUMP * abs(expected)) + _CLEAR * noise
        return found if abs(after - expected) < allowed else judged.expert


def _name(expert: FittedScorer) -> str:
    baseline = expert.scales.baseline
    if isinstance(expert.critic, ClosedForm) and baseline is not None:
        return baseline.name
    related = any(isinstance(module, ColumnCritic) for module in expert.critic.modules())
    canonical = isinstance(expert.scales.x_map, Projected)
    seen = " on related columns" * related + " on canonical variables" * canonical
    network = f"network{seen}"
    return network if baseline is None else f"{baseline.name} + {network}"
