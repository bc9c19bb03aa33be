"""Disjoint sets of rows: to train on, to stop by, to report.

Rows that share a label (of one group, or copies of one row) are never split. Rows in the order of
time are cut into blocks, with a gap before and after each.
"""

import heapq
from collections.abc import Sequence

import numpy as np

from ..errors import DataError
from .sample import Sample
from .source import Rows

__all__ = ["folds", "hold_out", "others", "shares", "split_off"]

_TAG_HELD = 0x4E1D  # rows may have been sampled by the stream of the plain seed


def folds(
    n: int,
    count: int,
    rng: np.random.Generator,
    labels: Rows | None = None,
    times: Rows | None = None,
) -> list[Rows]:
    """Return rows 0 ... n-1 in `count` parts of similar size.

    Rows are assigned at random, without splitting labels. Rows with times are cut into blocks.
    """
    if count < 2:
        raise ValueError(f"folds must be at least 2, got {count!r}")
    if times is not None:
        return [np.sort(part) for part in np.array_split(np.argsort(times), count)]
    codes = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    distinct = int(codes.max()) + 1
    if (labels is not None and distinct < 2 * count) or distinct < count:
        advice = f"use folds={distinct // 2} (--folds)" if distinct >= 4 else "collect more"
        raise DataError(
            f"{distinct} groups or different rows are too few for {count} folds of two or more: "
            + advice
        )
    shuffled = rng.permutation(distinct)
    sizes = np.bincount(codes, minlength=distinct)[shuffled]
    part = np.empty(distinct, dtype=np.int64)
    part[shuffled] = _balanced(sizes, count)
    if labels is not None:
        _fill_up(part, np.bincount(codes))
    return [np.flatnonzero(part[codes] == k) for k in range(count)]


def _fill_up(part: Rows, sizes: Rows) -> None:
    """Move a small label to each part that has one label alone, such as a very large one."""
    counts = np.bincount(part)
    while counts.min() < 2:
        few, many = int(counts.argmin()), int(counts.argmax())
        own = np.flatnonzero(part == many)
        part[own[sizes[own].argmin()]] = few
        counts = np.bincount(part, minlength=len(counts))


def _balanced(sizes: Rows, count: int) -> Rows:
    """Return the part of each label: the largest label first, each to the smallest part."""
    if sizes.max() == 1:
        return np.arange(len(sizes)) * count // len(sizes)
    least = [(0, k) for k in range(count)]
    part = np.empty(len(sizes), dtype=np.int64)
    for i in np.argsort(-sizes, kind="stable"):
        filled, k = least[0]
        part[i] = k
        heapq.heapreplace(least, (filled + int(sizes[i]), k))
    return part


def shares(
    n: int,
    parts: Sequence[float],
    rng: np.random.Generator,
    labels: Rows | None = None,
    times: Rows | None = None,
) -> list[Rows]:
    """Return rows 0 ... n-1 in parts of given shares, in time order; labels are not split."""
    codes = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    distinct = int(codes.max()) + 1
    if distinct < len(parts):
        raise DataError(
            f"{distinct} groups or different rows cannot be cut into {len(parts)} parts"
        )
    order = np.argsort(rng.permutation(distinct)[codes] if times is None else times, kind="stable")
    cut = np.empty(n, dtype=np.int64)
    cut[order] = np.searchsorted(np.cumsum(parts), np.arange(n) / n + 1e-9)
    if times is None:  # all rows of a label go where its first row is
        first = np.unique(codes[order], return_index=True)[1]
        cut = cut[order][first][codes]
    return [np.flatnonzero(cut == k) for k in range(len(parts))]


def others(n: int, part: Rows, times: Rows | None = None, gap: int = 0) -> Rows:
    """Return the rows outside a part and, where rows have times, outside the gaps around it."""
    if times is None:
        return np.setdiff1d(np.arange(n), part)
    first, last = times[part].min(), times[part].max()
    return np.flatnonzero((times < first - gap) | (times > last + gap))


def split_off(
    n: int,
    fraction: float,
    rng: np.random.Generator,
    labels: Rows | None = None,
    times: Rows | None = None,
    gap: int = 0,
) -> tuple[Rows, Rows]:
    """Return the rows to fit to, and about a `fraction` of the n rows held out."""
    if times is not None:
        size = int(np.clip(round(fraction * n), 1, n - 1))
        first = int(rng.integers(0, n - size + 1))
        block = np.sort(np.argsort(times)[first : first + size])
        return others(n, block, times, gap), block
    codes = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    shuffled = rng.permutation(int(codes.max()) + 1)
    if len(shuffled) < 2:
        raise DataError("rows of one group, or copies of one row, cannot be split: collect more")
    ends = np.cumsum(np.bincount(codes)[shuffled])
    least = 2 if len(shuffled) >= 4 else 1  # one label alone has no unpaired sample
    cut = int(np.clip(np.argmin(np.abs(ends - fraction * n)) + 1, least, len(shuffled) - least))
    held = np.isin(codes, shuffled[:cut])
    return np.flatnonzero(~held), np.flatnonzero(held)


def hold_out(sample: Sample, fraction: float, seed: int) -> tuple[Sample, Sample]:
    """Return the sample to train on, and about a `fraction` of the rows held out."""
    rng = np.random.default_rng([_TAG_HELD, seed])
    rows, held = split_off(len(sample), fraction, rng, sample.labels, sample.times, sample.gap)
    return sample.take(rows), sample.take(held)
