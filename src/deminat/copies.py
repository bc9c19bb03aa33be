"""Which rows are copies of one observation?

Duplicated rows are a trap: a copy of a pair on the other side of a split leaks, and a copy among
the unpaired partners is a joint pair in disguise, which caps the estimate. Yet where values are
discrete, equal rows are natural and must stay. Rows are taken for copies when, with repeats set
aside, the values of one side are nearly all different and are not those of a table, evenly spaced
and few: then chance would not have repeated them. A single row that is repeated far more often
than others, such as (0, 0) of clipped data, is an atom of the distribution and no copy. Nor is one
both of whose values are also found apart: where zeros are frequent on both sides, chance puts them
together, and to call that copies would make x and y dependent that are not.
"""

import numpy as np
from numpy.typing import NDArray

from .results import Caution

__all__ = ["label_copies"]

_ATOM = 20  # times the usual multiplicity: a value of its own, such as zero, and no copy
_FEWEST = 20  # different rows, below which all are values of a table


def label_copies(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64] | None, tuple[Caution, ...]]:
    """Label the rows that are copies of one another (None where none are); what to tell."""
    sides = _row_codes(x), _row_codes(y)
    labels = _row_codes(np.stack(sides, axis=1).astype(np.float64))
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    n, distinct = len(labels), len(first)
    atoms = counts > max(_ATOM * np.median(counts), 0.01 * n)
    apart = [np.bincount(side)[side[first]] > counts for side in sides]
    atoms |= (counts > 1) & apart[0] & apart[1]
    copied = n - distinct - int((counts[atoms] - 1).sum())
    if copied == 0 or distinct < max(_FEWEST, 0.02 * n):
        return None, ()
    telling = [a for a, c in zip((x, y), sides, strict=True) if _spread(c[first], n) >= 0.9]
    if not telling or any(map(_is_table, telling)):
        return None, ()
    alone = np.flatnonzero(atoms[labels])
    labels[alone] = distinct + np.arange(len(alone))
    if copied <= 0.01 * n:
        return labels, ()
    told = Caution(
        "duplicates",
        f"{copied} of {n} rows repeat another row exactly",
        "Trained methods keep copies together and never take them for unpaired, others count each; "
        "find out why they are there",
    )
    return labels, (told,)


def _row_codes(a: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return an integer per row, equal for equal rows."""
    flat = np.ascontiguousarray(a.reshape(len(a), -1) + 0.0)  # -0.0 equals 0.0
    rows = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)


def _spread(codes: NDArray[np.int64], n: int) -> float:
    """Return the share of different values, those that are found in over 1% of n rows set aside."""
    counts = np.bincount(codes)
    counts = counts[(counts > 0) & (counts <= max(1, 0.01 * n))]
    return len(counts) / counts.sum() if counts.sum() else 0.0


def _is_table(a: NDArray[np.float64]) -> bool:
    """Tell whether so few values are possible, evenly spaced, that chance repeats them."""
    log_cells = 0.0
    for column in a.reshape(len(a), -1).T:
        values = np.unique(column)
        if len(values) == 1:
            continue
        steps = (values[-1] - values[0]) / np.diff(values).min()
        if steps > 4 * len(values):
            return False
        log_cells += np.log(steps + 1)
    return bool(log_cells < 2 * np.log(len(a)))
