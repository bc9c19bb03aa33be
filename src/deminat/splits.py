"""Which rows train, select and report: disjoint by construction.

Rows that share a label (copies of one observation, and later groups) never stand on two sides.
"""

import numpy as np
from numpy.typing import NDArray

from .errors import DataError

__all__ = ["folds", "split_off"]

Rows = NDArray[np.int64]


def folds(n: int, count: int, rng: np.random.Generator, labels: Rows | None = None) -> list[Rows]:
    """Cut rows 0 ... n-1 at random into `count` parts of like size, labels kept whole."""
    if count < 2:
        raise ValueError(f"folds must be at least 2, got {count!r}")
    codes = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    distinct = int(codes.max()) + 1
    if distinct < count:
        raise DataError(f"{distinct} different observations cannot be cut into {count} folds")
    shuffled = rng.permutation(distinct)
    sizes = np.bincount(codes, minlength=distinct)[shuffled]
    middle = np.cumsum(sizes) - sizes / 2
    part = np.empty(distinct, dtype=np.int64)
    part[shuffled] = np.minimum((middle * count / n).astype(np.int64), count - 1)
    return [np.flatnonzero(part[codes] == k) for k in range(count)]


def split_off(
    n: int, fraction: float, rng: np.random.Generator, labels: Rows | None = None
) -> tuple[Rows, Rows]:
    """Return (rows to fit, rows held out), about `fraction` of the n rows held out."""
    parts = folds(n, max(2, round(1 / fraction)), rng, labels)
    return np.sort(np.concatenate(parts[1:])), parts[0]
