r"""Critics in sequence: each is trained on the parts before the one that it is tested on.

Cross-fitted critics serve an estimate well, but their folds are not independent: sampling noise of
fold 1 was learnt by the critic of fold 2, and the other way round. (Let the critics of two folds be
their sample correlations, vectors $r_1$ and $r_2$: both folds then score the same $r_1 \cdot r_2$,
and the sum has twice the variance of permuted ones; a test at 5% would reject 12%.) In a sequence
nothing that is tested was trained on before. Given the parts before it, each part is a fresh
sample, so p-values of the parts are independent, and e-values multiply.

The critics are quick ones: a Gaussian copula and one small network on ranks. They are separable, so
that all unpaired scores cost one matrix product. If the critic learnt nothing, and where a part is
too small to train a network, the test uses the correlations of normal scores and of their squares,
however small: the direction in which the likelihood of independence falls fastest.
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
from ..estimators.fitted import Tables
from ..estimators.recipes import small_network
from ..objectives import DEMI
from ..runtime.process import one_thread

__all__ = ["SequentialPart", "sequential_parts", "spread_columns", "with_squares"]

Array = NDArray[np.float64]

_TAG = 0xC4A1  # no other part of the library shuffles rows by this stream
_SHARES = (0.4, 0.3, 0.3)  # the first is only trained on
_FEW = 50  # effective rows that are too few to train a network
_CUT = 125  # ... that are too few to spare some for training
_ZERO = 1e-5  # nats
_COLUMNS = 512  # of a side that correlations are computed of


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
        """Return the scores of pairs of independent rows, (draws, pairs, 2, 2)."""
        rows = row_pairs(self.sample, seed)
        return np.asarray(self.left[rows] @ self.right[rows].swapaxes(2, 3))


def sequential_parts(sample: Sample, seed: int) -> list[SequentialPart]:
    """Return the parts of a sample that are tested; none if it is too small to be split."""
    small = sample.times is None and effective_rows(sample) < _CUT
    with one_thread(), threadpool_limits(1):  # the same sums in every process
        return [] if small or sample.is_constant() else list(_parts(sample, seed))


def _parts(sample: Sample, seed: int) -> Iterator[SequentialPart]:
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
        yield SequentialPart(part, *_factors(sample.take(np.sort(before)), part, seed))


def _factors(known: Sample, part: Sample, seed: int) -> tuple[Array, Array]:
    """Return the factors of a part by a critic that was trained on the parts before it."""
    if effective_rows(known) >= _FEW:
        fitted = small_network(DEMI(), known, seed).fit_sample(known)
        left, right = fitted.factors(known.take(np.arange(_FEW)))
        if not _is_zero(left @ right.T):
            return fitted.factors(part)
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


def _is_zero(table: Array) -> bool:
    """Tell whether scores (n, n) are only a term of x plus a term of y."""
    both = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return bool(np.abs(both).max() < _ZERO)


def with_squares(a: Array) -> Array:
    """Return normal scores (n, d) and their squares, all of unit variance."""
    return np.hstack([a, (a**2 - 1) / math.sqrt(2)])
