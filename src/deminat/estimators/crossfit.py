r"""Cross-fitting: every pair is scored by a model that never saw it, one training per fold.

Such scores are too low on average: what a critic learnt from sampling noise in its training rows
is missing from, or wrong for, all others. On the training rows themselves the same noise is counted
as information, and those scores are too high. To first order in the number of weights over the
number of rows, as in Akaike's criterion, both are off by equal amounts. So `optimism`, half the gap
between training and held-out scores, corrects the held-out mean. The rows that a critic was given
include the sixth that stopped its training and taught it nothing, so the correction is a little too
small.

References:
    Akaike (1974), A new look at the statistical model identification.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ..data.sample import Sample
from ..data.splits import folds, others
from ..errors import DataError
from ..records import Diagnostics
from ..runtime.pool import run_parts
from ..runtime.process import one_thread
from ..runtime.progress import Progress, part_progress
from ..training.callbacks import Callback, History, Recorder, listen, training_diagnostics
from .fitted import Scorer, Tables
from .neighbours import Neighbours
from .normaliser import LogNormalisers, log_normalisers
from .scaling import remembered_features
from .scores import Correction, Scores

if TYPE_CHECKING:
    from .base import TrainedEstimator

__all__ = ["CrossFit", "CrossFitOptions", "Fold", "FoldStore", "cross_fit"]

_TAG = 0xF01D  # rows may have been drawn by the stream of the seed alone


@dataclass(frozen=True)
class Fold:
    """The scores of a model on the rows that it was not trained on, and on those that it was.

    Args:
        scores: Of the held-out pairs.
        tables: (draws, pairs, 2, 2) scores of pairs of held-out rows.
        training_mean: Mean joint score of the rows that it was given to train on, in nats.
        baseline_mean: Mean score of the held-out pairs by the baseline alone, in nats.
        lead: By how much that was ahead of the next best baseline, in nats.
        history: Of the training.
        log_z: Normalisers of the scores, by held-out rows.
        model: Scores further pairs.
        neighbours: What the neighbours of the held-out pairs tell, where they may.
    """

    scores: Scores
    tables: Tables
    training_mean: float
    baseline_mean: float
    lead: float
    history: History
    log_z: LogNormalisers
    model: Scorer
    neighbours: Neighbours | None = None


class FoldStore(Protocol):
    """Where finished folds are stored; several processes may write to it."""

    def get(self, i: int) -> Fold | None:
        """Return the i-th fold, if it is there."""

    def put(self, i: int, fold: Fold) -> None:
        """Store the i-th fold."""


@dataclass(frozen=True)
class CrossFitOptions:
    """How to cross-fit; nothing here but `folds` changes the outcome.

    Args:
        folds: Number of folds.
        n_jobs: Processes to use, as in joblib.
        progress: Called with the share of the work that is done.
        callbacks: Called at each event of each training.
        store: Has folds that were finished before, which are not trained anew.
    """

    folds: int = 5
    n_jobs: int = 1
    progress: Progress | None = None
    callbacks: Sequence[Callback] = ()
    store: FoldStore | None = None


@dataclass(frozen=True)
class CrossFit:
    """Each pair of a sample scored by a model that never saw it.

    Args:
        scores: In the order of the sample.
        histories: One training per fold.
        fold_means: Mean joint score of each fold, in nats.
        training_means: The same of the rows that its model was given to train on.
        baseline_means: The same of each fold, by the baseline alone.
        tables: (draws, pairs, 2, 2) of each fold: each x of a pair of rows with each y.
        leads: By how much the best baseline of each fold was ahead of the next, in nats.
        log_z: Normalisers of the scores of each fold.
        models: Of each fold.
        neighbours: What neighbours tell of each pair, in the order of the sample.
    """

    scores: Scores
    histories: tuple[History, ...]
    fold_means: tuple[float, ...]
    training_means: tuple[float, ...]
    baseline_means: tuple[float, ...]
    tables: tuple[Tables, ...]
    leads: tuple[float, ...] = (0.0,)
    log_z: tuple[LogNormalisers, ...] = ()
    models: tuple[Scorer, ...] = ()
    neighbours: Neighbours | None = None

    @property
    def optimism(self) -> float:
        """Half the gap between training and held-out scores, in nats.

        It is not negative: training rows that seem to fit worse than others are among those that
        normalise the critic, which lowers scores at high information.
        """
        return max(0.0, float(np.mean(self.training_means) - np.mean(self.fold_means)) / 2)

    @property
    def correction(self) -> Correction:
        """What to add to the mean score: half the gap, or what neighbours tell."""
        if self.neighbours is None:
            return Correction(self.optimism)
        nats, weight = self.neighbours.correction(self.optimism)
        return Correction(nats, weight * self.neighbours.excess)

    def diagnostics(self, scaling: str) -> Diagnostics:
        """Return what results report of the trainings."""
        errors = [z.error for z in self.log_z]
        return replace(
            training_diagnostics(self.histories),
            fold_means=self.fold_means,
            training_means=self.training_means,
            baseline_means=self.baseline_means,
            log_normaliser_x=_mean(z.of_x for z in self.log_z),
            log_normaliser_y=_mean(z.of_y for z in self.log_z),
            log_normaliser_error=math.hypot(*errors) / max(1, len(errors)),
            neighbours=None if self.neighbours is None else self.neighbours.mean,
            neighbours_error=None if self.neighbours is None else self.neighbours.error,
            scaling=scaling,
        )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([*values]))


def cross_fit(
    estimator: "TrainedEstimator", sample: Sample, options: CrossFitOptions, partners: int
) -> CrossFit:
    """Train once per fold, on the others, and score every pair by the critic that it is new to.

    Args:
        estimator: Cloned for each fold; its seed gives the folds and the seed of each clone.
        sample: All pairs.
        options: How.
        partners: Unpaired partners to score for each pair, all from its own fold.
    """
    count = options.folds
    rng = np.random.default_rng([_TAG, estimator.seed])
    parts = folds(len(sample), count, rng, sample.labels, sample.times)
    seeds = np.random.SeedSequence(estimator.seed).generate_state(count).tolist()
    partners = min(partners, *(len(part) - 1 for part in parts))
    if partners < 1:
        raise DataError(f"{len(sample)} pairs are too few for {count} folds; use fewer folds")
    fit = partial(_fit_fold, estimator, sample, parts, seeds, partners)
    return _assemble(parts, _folds(fit, options))


def _folds(fit: Callable[[int, Progress | None], Fold], options: CrossFitOptions) -> list[Fold]:
    """Return each fold, from the store or from `fit`."""
    store, count = options.store, options.folds
    known = [None if store is None else store.get(i) for i in range(count)]
    missing = [i for i in range(count) if known[i] is None]
    jobs = max(1, min(effective_n_jobs(options.n_jobs), count, len(missing)))
    here = jobs == 1
    with part_progress(options.progress, count, here=here) as parts:
        for i in set(range(count)).difference(missing):
            parts.finish(i)
        heard = options.callbacks if here else ()
        finish = partial(_finish, fit, store, heard, record=bool(options.callbacks) and not here)
        work = [partial(finish, i, parts.listener(i)) for i in missing]
        for i, (fold, recorder) in zip(missing, run_parts(work, jobs), strict=True):
            if recorder is not None:
                recorder.replay(options.callbacks)
            known[i] = fold
            parts.finish(i)
    return [fold for fold in known if fold is not None]


def _assemble(parts: Sequence[NDArray[np.int64]], fits: Sequence[Fold]) -> CrossFit:
    """Return the scores of all folds, in the order of the sample."""
    order = np.argsort(np.concatenate(parts))
    joint = np.concatenate([fit.scores.joint for fit in fits])[order]
    product = np.concatenate([fit.scores.product for fit in fits])[order]
    return CrossFit(
        Scores(joint, product),
        tuple(fit.history for fit in fits),
        tuple(float(fit.scores.joint.mean()) for fit in fits),
        tuple(fit.training_mean for fit in fits),
        tuple(fit.baseline_mean for fit in fits),
        tuple(fit.tables for fit in fits),
        tuple(fit.lead for fit in fits),
        tuple(fit.log_z for fit in fits),
        tuple(fit.model for fit in fits),
        _assembled([fit.neighbours for fit in fits], order),
    )


def _assembled(each: Sequence[Neighbours | None], order: NDArray[np.int64]) -> Neighbours | None:
    """Return what neighbours tell in the order of the sample, if all folds know it."""
    known = [found for found in each if found is not None]
    if len(known) < len(each):
        return None
    parts = [np.concatenate([getattr(n, name) for n in known]) for name in ("excess", "rough")]
    return Neighbours(*(part[order] for part in parts))


def _finish(
    fit: Callable[[int, Progress | None], Fold],
    store: FoldStore | None,
    callbacks: Sequence[Callback],
    i: int,
    progress: Progress | None,
    record: bool,
) -> tuple[Fold, Recorder | None]:
    """Return the i-th fold, which is stored at once, and the events to replay.

    Linear algebra has one thread in every process: sums in another order have other last digits.
    """
    recorder = Recorder() if record else None
    heard = callbacks if recorder is None else [recorder]
    with one_thread(), threadpool_limits(1), listen(i, heard), remembered_features():
        fold = fit(i, progress)
    if store is not None:
        store.put(i, fold)
    return fold, recorder


def _fit_fold(
    estimator: "TrainedEstimator",
    sample: Sample,
    parts: Sequence[NDArray[np.int64]],
    seeds: Sequence[int],
    partners: int,
    i: int,
    progress: Progress | None,
) -> Fold:
    """Train a clone on all parts but the i-th, and score that one."""
    part, seed = parts[i], seeds[i]
    rest = sample.take(others(len(sample), part, sample.times, sample.gap))
    fitted = clone(estimator).set_params(seed=seed).fit_sample(rest, progress)
    held, scorer = sample.take(part), fitted.scorer_
    scores = scorer.scores(held, partners, seed)
    return Fold(
        scores,
        scorer.tables(held, seed),
        float(scorer.joint(rest).mean()),
        fitted.baseline_mean(held),
        fitted.lead(),
        fitted.history_,
        log_normalisers(scorer, held),
        scorer,
        fitted.neighbours(sample, part, scores.joint),
    )
