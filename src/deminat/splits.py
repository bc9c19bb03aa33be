"""Which rows train, select and report: disjoint by construction.

Rows that share a label (copies of one observation, and later groups) never stand on two sides.
"""

import heapq

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
    part = np.empty(distinct, dtype=np.int64)
    part[shuffled] = _dealt(sizes, count)
    return [np.flatnonzero(part[codes] == k) for k in range(count)]


def _dealt(sizes: Rows, count: int) -> Rows:
    """Return a part for each size: the largest first, each to the part that has least."""
    if sizes.max() == 1:
        return np.arange(len(sizes)) * count // len(sizes)
    least = [(0, k) for k in range(count)]
    part = np.empty(len(sizes), dtype=np.int64)
    for i in np.argsort(-sizes, kind="stable"):
        filled, k = least[0]
        part[i] = k
        heapq.heapreplace(least, (filled + int(sizes[i]), k))
    return part


def split_off(
    n: int, fraction: float, rng: np.random.Generator, labels: Rows | None = None
) -> tuple[Rows, Rows]:
    """Return (rows to fit, rows held out), about `fraction` of the n rows held out."""
    codes = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    shuffled = rng.permutation(int(codes.max()) + 1)
    if len(shuffled) < 2:
        raise DataError("copies of one observation cannot be split")
    ends = np.cumsum(np.bincount(codes)[shuffled])
    cut = int(np.clip(np.argmin(np.abs(ends - fraction * n)) + 1, 1, len(shuffled) - 1))
    held = np.isin(codes, shuffled[:cut])
    return np.flatnonzero(~held), np.flatnonzero(held)
