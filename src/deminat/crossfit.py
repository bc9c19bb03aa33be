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

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from .errors import DataError
from .fitting import Tables, told
from .inputs import Sample
from .scores import Scores
from .splits import folds, others
from .training import History, Progress, share_of

__all__ = ["CrossFit", "FittedOnPairs", "cross_fit"]

_TAG = 0xF01D  # rows may have been drawn by the stream of the seed alone


class FittedOnPairs(Protocol):
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

    def start_mean(self, sample: Sample) -> float:
        """Return the mean score of pairs by what was known before any network, in nats."""
        ...

    def tables(self, sample: Sample) -> Tables:
        """Score each x of couples of independent rows with each y, (draws, couples, 2, 2)."""
        ...


@dataclass(frozen=True)
class CrossFit:
    """Each pair of a sample scored by a model that never saw it.

    Args:
        scores: In the order of the sample.
        histories: One training per fold.
        fold_means: Mean joint score of each fold, in nats.
        training_means: The same of the rows that its model was given to train on.
        start_means: The same of each fold, by what was known before any network.
        tables: (draws, couples, 2, 2) of each fold: each x of a couple of rows with each y.
    """

    scores: Scores
    histories: tuple[History, ...]
    fold_means: tuple[float, ...]
    training_means: tuple[float, ...]
    start_means: tuple[float, ...]
    tables: tuple[Tables, ...]

    @property
    def optimism(self) -> float:
        """Half of what training rows read above held-out ones, in nats."""
        return float(np.mean(self.training_means) - np.mean(self.fold_means)) / 2

    def diagnostics(self) -> dict[str, Any]:
        """Return what results tell of the trainings."""
        return {
            "fold_means": list(self.fold_means),
            "training_means": list(self.training_means),
            "start_means": list(self.start_means),
            **told(self.histories),
        }


def cross_fit(
    estimator: FittedOnPairs,
    sample: Sample,
    *,
    count: int = 5,
    k: int = 16,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> CrossFit:
    """Train once per fold, on the others, and score every pair by the critic it is new to.

    Args:
        estimator: Cloned for each fold; its seed gives the folds and the seed of each clone.
        sample: All pairs.
        count: Number of folds.
        k: Unpaired partners to score for each pair, all from its own fold.
        n_jobs: Processes to use, as in joblib; the outcome does not depend on it.
        progress: Called with the share of the work that is done.
    """
    rng = np.random.default_rng([_TAG, estimator.seed])
    parts = folds(len(sample), count, rng, sample.labels, sample.times)
    seeds = np.random.SeedSequence(estimator.seed).generate_state(count).tolist()
    k = min(k, *(len(part) - 1 for part in parts))
    if k < 1:
        raise DataError(f"{len(sample)} pairs are too few for {count} folds; use fewer folds")
    alone = n_jobs == 1
    jobs = (
        delayed(_fit_and_score)(
            clone(estimator).set_params(seed=fold_seed),
            sample,
            part,
            k,
            share_of(progress, i, count) if alone else None,
        )
        for i, (part, fold_seed) in enumerate(zip(parts, seeds, strict=True))
    )
    joint, product = np.empty(len(sample)), np.empty((len(sample), k))
    fits = []
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    for i, (part, fit) in enumerate(zip(parts, outcomes, strict=True)):
        joint[part], product[part] = fit.scores.joint, fit.scores.product
        fits.append(fit)
        if progress:
            progress((i + 1) / count)
    return CrossFit(
        Scores(joint, product),
        tuple(fit.history for fit in fits),
        tuple(float(joint[part].mean()) for part in parts),
        tuple(fit.training_mean for fit in fits),
        tuple(fit.start_mean for fit in fits),
        tuple(fit.tables for fit in fits),
    )


@dataclass(frozen=True)
class _Fold:
    """What a model says of the rows that it was not trained on, and of those that it was."""

    scores: Scores
    tables: Tables
    training_mean: float
    start_mean: float
    history: History


def _fit_and_score(
    estimator: FittedOnPairs,
    sample: Sample,
    part: NDArray[np.int64],
    k: int,
    progress: Progress | None,
) -> _Fold:
    rest = sample.take(others(len(sample), part, sample.times, sample.gap))
    fitted = estimator.fit_sample(rest, progress)
    held = sample.take(part)
    return _Fold(
        fitted.scores(held, k),
        fitted.tables(held),
        float(fitted.joint(rest).mean()),
        fitted.start_mean(held),
        fitted.history_,
    )
