r"""Critics in a chain: each is trained on the parts before the one that it is tried on.

Cross-fitted critics serve an estimate well, but their folds do not stand for themselves: what
chance put into fold 1 was learnt by the critic of fold 2, and the other way round. (Let the critics
of two folds be their sample correlations, vectors $r_1$ and $r_2$: both folds then score the same
$r_1 \cdot r_2$, and the sum has twice the variance of permuted ones; a test at 5% would reject
12%.) In a chain nothing that is tried was ever learnt before: given the parts before it, each is a
fresh sample, p-values of the parts are independent, and e-values multiply.

The critics are quick ones: a Gaussian copula and one small network on ranks, separable, so that
all strangers of all rows cost a matrix product. A critic that learnt to be silent is of no use to a
test. Then, and where rows are too few to train a network, it is the correlations that speak, those
of normal scores and of their squares, however small: the direction in which the likelihood of
independence falls fastest.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..estimators import AUTO, Estimator
from ..fitting import Tables, couple_rows
from ..inputs import Sample
from ..reference import GaussianCopula
from ..splits import others, shares
from ..training import EarlyStopping
from ..transforms import RankToNormal

__all__ = ["Link", "chain", "quick"]

Array = NDArray[np.float64]

_SHARES = (0.4, 0.3, 0.3)  # the first is only trained on
_FEW = 50  # observations that cannot teach a network
_SILENT = 1e-5  # nats


@dataclass(frozen=True)
class Link:
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
        rows = couple_rows(self.sample, seed)
        return np.asarray(self.left[rows] @ self.right[rows].swapaxes(2, 3))


def quick(seed: int) -> Estimator:
    """Return the estimator that trains the critics of a chain."""
    stopping = EarlyStopping(every=25, patience=4, hope=4)
    training = replace(AUTO, steps=400, stopping=stopping)
    return Estimator(
        scaling=RankToNormal, training=training, start=GaussianCopula.choose, seed=seed
    )


def chain(sample: Sample, seed: int) -> list[Link]:
    """Return the parts of a sample that are tried; none if one side never varies."""
    return [] if sample.is_constant() else list(_links(sample, seed))


def _links(sample: Sample, seed: int) -> Iterator[Link]:
    sample = replace(sample, x=_flat(sample.x), y=_flat(sample.y))
    rng = np.random.default_rng(seed)
    parts = shares(len(sample), _SHARES, rng, sample.labels, sample.times)
    for i in range(1, len(parts)):
        before = np.concatenate(parts[:i])
        if sample.times is not None:
            before = np.intersect1d(before, others(len(sample), parts[i], sample.times, sample.gap))
        part = sample.take(parts[i])
        yield Link(part, *_halves(sample.take(np.sort(before)), part, seed))


def _halves(known: Sample, part: Sample, seed: int) -> tuple[Array, Array]:
    """Return the halves of a part by a critic that was trained on what is known."""
    if _observations(known) >= _FEW:
        left, right = quick(seed).fit_sample(known).halves(part)
        if not _is_silent(left[:_FEW] @ right[:_FEW].T):
            return left, right
    x_map, y_map = RankToNormal.fit(known.x), RankToNormal.fit(known.y)
    correlations = _with_squares(x_map(known.x)).T @ _with_squares(y_map(known.y)) / len(known)
    return _with_squares(x_map(part.x)) @ correlations, _with_squares(y_map(part.y))


def _is_silent(table: Array) -> bool:
    """Tell whether scores (n, n) are nothing but a term of x and a term of y."""
    both = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return bool(np.abs(both).max() < _SILENT)


def _observations(sample: Sample) -> int:
    """Return how many rows stand for themselves."""
    if sample.times is not None:
        return len(sample) // max(1, sample.gap)
    return len(sample) if sample.labels is None else len(np.unique(sample.labels))


def _with_squares(a: Array) -> Array:
    """Return normal scores (n, d) and their squares, all of unit variance."""
    return np.hstack([a, (a**2 - 1) / math.sqrt(2)])


def _flat(a: Array) -> Array:
    return a.reshape(len(a), -1)
