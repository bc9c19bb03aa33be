r"""Critics in a chain: each is trained on the parts before the one that it is tried on.

Cross-fitted critics serve an estimate well, but their folds do not stand for themselves: what
chance put into fold 1 was learnt by the critic of fold 2, and the other way round. (Let the critics
of two folds be their sample correlations, vectors $r_1$ and $r_2$: both folds then score the same
$r_1 \cdot r_2$, and the sum has twice the variance of permuted ones; a test at 5% would reject
12%.) In a chain nothing that is tried was ever learnt before: given the parts before it, each is a
fresh sample, p-values of the parts are independent, and e-values multiply.

The critics are quick ones: a Gaussian copula and one small network on ranks, separable, so that
all strangers of all rows cost a matrix product. A critic that learnt to be silent is of no use to a
test. Then, and where a part is too small to train a network, it is the correlations that speak,
those of normal scores and of their squares, however small: the direction in which the likelihood
of independence falls fastest.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ..data.sample import Sample
from ..data.splits import others, shares
from ..data.transforms import RankToNormal
from ..data.units import effective_rows, row_pairs
from ..estimators.recipes import quick_estimator
from ..estimators.scores import Tables
from ..runtime.process import one_thread

__all__ = ["SequentialPart", "sequential_parts", "spread_columns", "with_squares"]

Array = NDArray[np.float64]
_TAG = 0xC4A1  # nobody has shuffled the rows by this stream before
_SHARES = (0.4, 0.3, 0.3)  # the first is only trained on
_FEW = 50  # observations that cannot teach a network
_CUT = 125  # ... of which nobody should spare some to train on
_SILENT = 1e-5  # nats
_COLUMNS = 512  # of a side that correlations are taken of


@dataclass(frozen=True)
class SequentialPart:
    """A part of a sample, with a critic that was trained on parts before it.

    Args:
        sample: The part.
        left: (m, r) of x.
        right: (m, r) of y: inner products are scores, in nats.
    """

    sample: Sample
    left: Array
    right: Array

    def __len__(self) -> int:
        return len(self.sample)

    def tables(self, seed: int) -> Tables:
        """Score each x of couples of independent rows with each y, (draws, couples, 2, 2)."""
        rows = row_pairs(self.sample, seed)
        return np.asarray(self.left[rows] @ self.right[rows].swapaxes(2, 3))


def sequential_parts(sample: Sample, seed: int) -> list[SequentialPart]:
    """Return the parts of a sample that are tried; none if it is too small to be cut."""
    small = sample.times is None and effective_rows(sample) < _CUT
    with one_thread(), threadpool_limits(1):  # the same sums in every process
        return [] if small or sample.is_constant() else list(_links(sample, seed))


def _links(sample: Sample, seed: int) -> Iterator[SequentialPart]:
    x, y = (a.reshape(len(a), -1) for a in (sample.x, sample.y))
    sample = replace(sample, x=x, y=y)
    rng = np.random.default_rng([_TAG, seed])
    parts = shares(len(sample), _SHARES, rng, sample.labels, sample.times)
    if min(effective_rows(sample.take(part)) if len(part) else 0 for part in parts) < 2:
        return  # a group is so large that nothing is left
    for i in range(1, len(parts)):
        before = np.concatenate(parts[:i])
        if sample.times is not None:
            before = np.intersect1d(before, others(len(sample), parts[i], sample.times, sample.gap))
        part = sample.take(parts[i])
        yield SequentialPart(part, *_halves(sample.take(np.sort(before)), part, seed))


def _halves(known: Sample, part: Sample, seed: int) -> tuple[Array, Array]:
    """Return the halves of a part by a critic that was trained on what is known."""
    if effective_rows(known) >= _FEW:
        fitted = quick_estimator(seed, known).fit_sample(known)
        left, right = fitted.halves(known.take(np.arange(_FEW)))
        if not _is_silent(left @ right.T):
            return fitted.halves(part)
    x_some, y_some = (spread_columns(a) for a in (known.x, known.y))
    known = replace(known, x=known.x[:, x_some], y=known.y[:, y_some])
    x_map, y_map = RankToNormal.fit(known.x), RankToNormal.fit(known.y)
    correlations = with_squares(x_map(known.x)).T @ with_squares(y_map(known.y)) / len(known)
    left, right = (
        with_squares(m(a)) for m, a in ((x_map, part.x[:, x_some]), (y_map, part.y[:, y_some]))
    )
    return left @ correlations, right


def spread_columns(a: Array) -> NDArray[np.int64]:
    """Return the numbers of some columns (n, d), evenly spaced if there are many."""
    d = a.shape[1]
    return np.unique(np.linspace(0, d - 1, min(d, _COLUMNS)).round().astype(np.int64))


def _is_silent(table: Array) -> bool:
    """Tell whether scores (n, n) are nothing but a term of x and a term of y."""
    both = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return bool(np.abs(both).max() < _SILENT)


def with_squares(a: Array) -> Array:
    """Return normal scores (n, d) and their squares, all of unit variance."""
    return np.hstack([a, (a**2 - 1) / math.sqrt(2)])
