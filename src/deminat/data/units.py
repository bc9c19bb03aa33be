"""Units of dependent rows: their number, and pairs of rows from different units.

Rows that share a label, or are within a gap of time of each other, make a unit.
"""

import numpy as np
from numpy.typing import NDArray

from .sample import Sample

__all__ = ["PAIR_SIZE", "effective_rows", "row_pairs", "unit_codes"]

PAIR_SIZE = 2
_TAG = 0xC0B1E  # no other part of the library shuffles rows by this stream
_DRAWS = 8  # of one row from each unit, at most


def row_pairs(sample: Sample, seed: int) -> NDArray[np.int64]:
    """Return pairs of rows (draws, pairs, 2); the rows of a draw are independent of each other.

    Each draw has one row of each unit. All draws have the same pairs of units.
    """
    rng = np.random.default_rng([_TAG, seed])
    units = unit_codes(sample)
    order = rng.permutation(len(sample))
    order = order[np.argsort(units[order], kind="stable")]
    sizes = np.bincount(units)
    first = np.cumsum(sizes) - sizes
    count = len(sizes) // PAIR_SIZE
    chosen = rng.permutation(len(sizes))[: count * PAIR_SIZE].reshape(count, PAIR_SIZE)
    draws = np.arange(min(_DRAWS, sizes.max()))[:, None, None]
    return np.asarray(order[first[chosen] + draws % sizes[chosen]])


def unit_codes(sample: Sample) -> NDArray[np.int64]:
    """Return the number of the unit of each row, (n,)."""
    if sample.times is not None:
        places = np.argsort(np.argsort(sample.times))
        return np.asarray(places // max(1, sample.gap))
    if sample.labels is not None:
        return np.asarray(np.unique(sample.labels, return_inverse=True)[1])
    return np.arange(len(sample))


def effective_rows(sample: Sample) -> int:
    """Return the effective number of rows: one for each unit."""
    if sample.times is not None:
        return len(sample) // max(1, sample.gap)
    return len(sample) if sample.labels is None else len(np.unique(sample.labels))
