r"""Every pair scored by a model that never saw it: one training per fold, on all the others.

Such scores are too low on average: what a critic took from chance in its training rows is missing
from, or wrong for, all others. On the training rows themselves the same chance is counted as
information, and those scores are too high. To first order in the number of weights over the number
of rows, as in Akaike's criterion, they are off by equal amounts, so that `optimism`, half of the
difference, corrects the held-out mean. The rows that a critic was given include the sixth that
stopped its training and taught it nothing, so that the correction is a little too small there.

References:
    Akaike (1974), A new look at the statistical model identification.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ..data.sample import Sample
from ..data.splits import folds, others
from ..errors import DataError
from ..runtime.pool import run_parts
from ..runtime.process import one_thread
from ..runtime.progress import Progress, part_progress
from ..training.callbacks import Callback, History, Recorder, listen, told
from .scores import Scores, Tables

__all__ = ["CrossFit", "Fold", "FoldStore", "TrainedEstimator", "cross_fit"]

_TAG = 0xF01D  # rows may have been drawn by the stream of the seed alone


class TrainedEstimator(Protocol):
    """What `cross_fit` needs of an estimator; scikit-learn's `clone` must take it too."""

    seed: int
    history_: History

    def fit_sample(self, sample: Sample, progress: Progress | None = None) -> Self:
        """Train on a checked sample."""
        ...

    def scores(self, sample: Sample, k: int) -> Scores:
        """Score the pairs of a sample and k unpaired partners of each."""
        ...

    def joint(self, sample: Sample) -> NDArray[np.float64]:
        """Score the pairs of a sample alone."""
        ...

    def baseline_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by what was known before any network, in nats."""
        ...

    def tables(self, sample: Sample) -> Tables:
        """Score each x of couples of independent rows with each y, (draws, couples, 2, 2)."""
        ...


@dataclass(frozen=True)
class Fold:
    """What a model says of the rows that it was not trained on, and of those that it was.

    Args:
        scores: Of the pairs held out.
        tables: (draws, couples, 2, 2) of couples of them.
        training_mean: Mean joint score of the rows that it was given to train on, in nats.
        baseline_mean: The same of the pairs held out, by what was known before any network.
        history: Of the training.
        model: The fitted estimator, or what is left of it to score pairs.
    """

    scores: Scores
    tables: Tables
    training_mean: float
    baseline_mean: float
    history: History
    model: Any


class FoldStore(Protocol):
    """Where folds are kept that are finished; other processes may put some there."""

    def get(self, i: int) -> Fold | None:
        """Return the i-th fold, if it is there."""
        ...

    def put(self, i: int, fold: Fold) -> None:
        """Keep the i-th fold."""
        ...


@dataclass(frozen=True)
class CrossFit:
    """Each pair of a sample scored by a model that never saw it.

    Args:
        scores: In the order of the sample.
        histories: One training per fold.
        fold_means: Mean joint score of each fold, in nats.
        training_means: The same of the rows that its model was given to train on.
        baseline_means: The same of each fold, by what was known before any network.
        tables: (draws, couples, 2, 2) of each fold: each x of a couple of rows with each y.
        models: Of each fold, with a method `joint`.
    """

    scores: Scores
    histories: tuple[History, ...]
    fold_means: tuple[float, ...]
    training_means: tuple[float, ...]
    baseline_means: tuple[float, ...]
    tables: tuple[Tables, ...]
    models: tuple[Any, ...] = ()

    @property
    def optimism(self) -> float:
        """Half of what training rows read above held-out ones, in nats."""
        return float(np.mean(self.training_means) - np.mean(self.fold_means)) / 2

    def diagnostics(self) -> dict[str, Any]:
        """Return what results tell of the trainings."""
        return {
            "fold_means": list(self.fold_means),
            "training_means": list(self.training_means),
            "baseline_means": list(self.baseline_means),
            **told(self.histories),
        }


def cross_fit(
    estimator: TrainedEstimator,
    sample: Sample,
    *,
    count: int = 5,
    k: int = 16,
    n_jobs: int = 1,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    keeper: FoldStore | None = None,
) -> CrossFit:
    """Train once per fold, on the others, and score every pair by the critic it is new to.

    Args:
        estimator: Cloned for each fold; its seed gives the folds and the seed of each clone.
        sample: All pairs.
        count: Number of folds.
        k: Unpaired partners to score for each pair, all from its own fold.
        n_jobs: Processes to use, as in joblib; the outcome does not depend on it.
        progress: Called with the share of the work that is done.
        callbacks: Told of each training.
        keeper: Has folds that were finished before, which are not trained again.
    """
    rng = np.random.default_rng([_TAG, estimator.seed])
    parts = folds(len(sample), count, rng, sample.labels, sample.times)
    seeds = np.random.SeedSequence(estimator.seed).generate_state(count).tolist()
    k = min(k, *(len(part) - 1 for part in parts))
    if k < 1:
        raise DataError(f"{len(sample)} pairs are too few for {count} folds; use fewer folds")
    jobs = min(effective_n_jobs(n_jobs), count)
    fold = partial(_fold, estimator, sample, parts, seeds, k)
    return _assembled(parts, _folds(fold, count, jobs, progress, callbacks, keeper))


def _folds(
    fold: Callable[[int, Progress | None], Fold],
    count: int,
    jobs: int,
    progress: Progress | None,
    callbacks: Sequence[Callback],
    keeper: FoldStore | None,
) -> list[Fold]:
    """Return each fold, from the keeper or from `fold`, which is told its place."""
    known = [None if keeper is None else keeper.get(i) for i in range(count)]
    missing = [i for i in range(count) if known[i] is None]
    jobs = max(1, min(jobs, len(missing)))
    alone = jobs == 1
    heard = callbacks if alone else ()
    with part_progress(progress, count, here=alone) as meters:
        for i in set(range(count)).difference(missing):
            meters.done(i)
        finish = partial(_finish, fold, keeper, heard, records=bool(callbacks) and not alone)
        parts = [partial(finish, i, meters.of(i)) for i in missing]
        for i, outcome in zip(missing, run_parts(parts, jobs), strict=True):
            known[i] = _passed_on(outcome, callbacks)
            meters.done(i)
    return [fit for fit in known if fit is not None]


def _assembled(parts: Sequence[NDArray[np.int64]], fits: Sequence[Fold]) -> CrossFit:
    """Return what all folds say, in the order of the sample."""
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
        tuple(fit.model for fit in fits),
    )


def _finish(
    fold: Callable[[int, Progress | None], Fold],
    keeper: FoldStore | None,
    callbacks: Sequence[Callback],
    i: int,
    progress: Progress | None,
    records: bool,
) -> tuple[Fold, Recorder | None]:
    """Return the i-th fold, which is kept at once, and what there is to pass on.

    Linear algebra has one thread, wherever this is: sums in another order have other last digits.
    """
    recorder = Recorder() if records else None
    heard = callbacks if recorder is None else [recorder]
    with one_thread(), threadpool_limits(1), listen(i, heard):
        found = fold(i, progress)
    if keeper is not None:
        keeper.put(i, found)
    return found, recorder


def _passed_on(outcome: tuple[Fold, Recorder | None], callbacks: Sequence[Callback]) -> Fold:
    """Return a fold after telling callbacks what another process heard of it."""
    fold, recorder = outcome
    if recorder is not None:
        recorder.replay(callbacks)
    return fold


def _fold(
    estimator: TrainedEstimator,
    sample: Sample,
    parts: Sequence[NDArray[np.int64]],
    seeds: Sequence[int],
    k: int,
    i: int,
    progress: Progress | None,
) -> Fold:
    """Train a clone on all parts but the i-th, and score that one."""
    part = parts[i]
    rest = sample.take(others(len(sample), part, sample.times, sample.gap))
    fitted = clone(estimator).set_params(seed=seeds[i]).fit_sample(rest, progress)
    held = sample.take(part)
    return Fold(
        fitted.scores(held, k),
        fitted.tables(held),
        float(fitted.joint(rest).mean()),
        fitted.baseline_mean(held),
        fitted.history_,
        fitted,
    )
