"""How many rows are independent, and which rows are dependent."""

import numpy as np
from numpy.typing import NDArray

from .sample import Sample

__all__ = ["PAIR_SIZE", "effective_rows", "row_pairs", "unit_codes"]

PAIR_SIZE = 2
# Rows may have been drawn, or shuffled, by the stream of the seed alone: this is nobody's.
_TAG = 0xC0B1E
_DRAWS = 8  # of one row from each group, at most


def row_pairs(sample: Sample, seed: int) -> NDArray[np.int64]:
    """Return rows (draws, couples, 2): in a draw, no two of them depend on each other.

    Rows that share a label, or follow each other within a gap of time, make a unit. Each draw takes
    one row of each unit, and units stay in their couples.
    """
    rng = np.random.default_rng([_TAG, seed])
    units = unit_codes(sample)
    order = rng.permutation(len(sample))
    order = order[np.argsort(units[order], kind="stable")]
    sizes = np.bincount(units)
    starts = np.cumsum(sizes) - sizes
    count = len(sizes) // PAIR_SIZE
    chosen = rng.permutation(len(sizes))[: count * PAIR_SIZE].reshape(count, PAIR_SIZE)
    draws = np.arange(min(_DRAWS, sizes.max()))[:, None, None]
    return np.asarray(order[starts[chosen] + draws % sizes[chosen]])


def unit_codes(sample: Sample) -> NDArray[np.int64]:
    """Return for each row the number of the unit that it belongs to."""
    if sample.times is not None:
        places = np.argsort(np.argsort(sample.times))
        return np.asarray(places // max(1, sample.gap))
    if sample.labels is not None:
        return np.asarray(np.unique(sample.labels, return_inverse=True)[1])
    return np.arange(len(sample))


def effective_rows(sample: Sample) -> int:
    """Return how many rows stand for themselves."""
    if sample.times is not None:
        return len(sample) // max(1, sample.gap)
    return len(sample) if sample.labels is None else len(np.unique(sample.labels))
