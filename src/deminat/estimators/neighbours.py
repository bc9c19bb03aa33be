r"""What the neighbours of a pair tell beyond a critic, for one column a side.

A critic that is chosen by held-out rows is a little too smooth, and what it smooths away no score
of its own shows. Nearest neighbours are hardly smooth at all. Around pair i is a square that holds
its k nearest pairs, in normal scores; $n_x$ and $n_y$ of the n rows are in its strips. Then

$$ K_i = \psi(k) + \psi(n) - \psi(n_x) - \psi(n_y) $$

estimates the mean log ratio in the square (Kraskov et al.). It is too low where the log ratio
varies within. The critic knows that: $L_i = \log \operatorname{mean} e^f$ over unpaired rows of
the strips is what it says of the square as a whole, so $f_i + K_i - L_i$ is not too low. If f is
the truth, the excess $K_i - L_i$ has mean 0.

Noise of f within squares makes $f_i$ too low by as much as it makes $T_i$, the mean of f weighted
by $e^f$, too high. Their mean is right, as half the gap between training and held-out scores is.
Where they are far apart f is not to be trusted within squares, so this part is left out.

References:
    Kraskov, Stoegbauer, Grassberger (2004), Estimating mutual information.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma, ndtri

from ..data.sample import Sample

__all__ = ["Neighbours", "neighbours_of"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]
ScoresAt = Callable[[Sample, Places, Places], Array]

_FEWEST = 6  # neighbours
_PRECISE = 45_000  # neighbours times rows: as many have a standard error of some .005 nats
_DRAWN = 16  # unpaired rows of each square
_WIDE = 2.0  # times k: rows of the strips in the median, so that squares do not fill them
_ROUGHEST = 0.01  # nats of the gap between T and f that are believed; twice as many, not at all
_CONTINUOUS = 0.9  # share of the rows that have a value of their own
_LEAST = 2_000  # rows: of fewer, squares are too large
_LOWEST = -100.0  # nats of a pair that cannot be
_DOUBT = 0.5  # squared standard errors of what neighbours add that are taken for noise


@dataclass(frozen=True)
class Neighbours:
    """What neighbours tell of held-out pairs.

    Args:
        excess: (m,) K - L of each, in nats.
        rough: (m,) T - f.
    """

    excess: Array
    rough: Array

    @property
    def mean(self) -> float:
        """What they tell beyond the mean score, in nats."""
        rough = float(self.rough.mean())
        believed = max(0.0, min(rough, 2 * _ROUGHEST - rough))
        return float(self.excess.mean()) + believed / 2

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(self.excess.std()) / math.sqrt(len(self.excess))

    def correction(self, half_gap: float) -> tuple[float, float]:
        """Return what to add to the mean score, and the weight of the neighbours in it.

        Args:
            half_gap: Half the gap between training and held-out scores, which is added without
                them.
        """
        more = self.mean - half_gap
        weight = max(0.0, 1 - _DOUBT * self.error**2 / max(more**2, 1e-300))
        return half_gap + weight * more, weight


def neighbours_of(
    scores_at: ScoresAt, sample: Sample, part: Places, joint: Array, seed: int
) -> Neighbours | None:
    """Return what neighbours tell of some rows; None unless both sides are one continuous column.

    Args:
        scores_at: Returns the scores of some rows' x with other rows' y.
        sample: All rows; any may be a neighbour.
        part: (m,) the rows.
        joint: (m,) their scores.
        seed: Of the unpaired rows that are drawn.
    """
    if not _applies(sample):
        return None
    rng, k = np.random.default_rng(seed), max(_FEWEST, _PRECISE // len(sample))
    x, y = _normal_scores(sample.x, rng), _normal_scores(sample.y, rng)
    points = np.column_stack([x, y])
    near, _ = cKDTree(points).query(points[part], k + 1, p=np.inf)
    reach = np.asarray(near)[:, -1]
    of_x, of_y = _Strip.around(x, part, reach), _Strip.around(y, part, reach)
    if np.median(np.minimum(of_x.count, of_y.count)) < _WIDE * k:
        return None
    local = digamma(k) + digamma(len(x)) - digamma(of_x.count) - digamma(of_y.count)
    f = scores_at(sample, of_x.drawn(rng), of_y.drawn(rng)).reshape(-1, _DRAWN)
    whole = np.logaddexp.reduce(f, axis=1) - np.log(_DRAWN)
    weighted = (np.exp(f - whole[:, None]) * np.maximum(f, _LOWEST)).mean(axis=1)
    return Neighbours(local - whole, weighted - joint)


def _applies(sample: Sample) -> bool:
    """Tell whether rows are independent, and both sides one column that hardly repeats a value."""
    if (
        len(sample) < _LEAST
        or sample.labels is not None
        or sample.times is not None
        or any(sample.are_labels())
    ):
        return False
    sides = sample.x, sample.y
    return all(a.shape[1:] == (1,) and len(np.unique(a)) > _CONTINUOUS * len(a) for a in sides)


def _normal_scores(a: Array, rng: np.random.Generator) -> Array:
    """Return the normal scores (n,) of a column (n, 1), equal values in random order."""
    order = rng.permutation(len(a))
    order = order[np.argsort(a[order, 0], kind="stable")]
    scores = np.empty(len(a))
    scores[order] = ndtri((np.arange(len(a)) + 0.5) / len(a))
    return scores


@dataclass(frozen=True)
class _Strip:
    """The rows that are near some rows in one column.

    Args:
        order: (n,) all rows, sorted.
        first: (m,) place of the first row that is near.
        count: (m,) of near rows, the row itself included.
    """

    order: Places
    first: Places
    count: Places

    @classmethod
    def around(cls, column: Array, part: Places, reach: Array) -> "_Strip":
        order = np.argsort(column)
        inside, values = reach * (1 - 1e-12), column[order]
        first = np.searchsorted(values, column[part] - inside)
        last = np.searchsorted(values, column[part] + inside, side="right")
        return cls(order, first, last - first)

    def drawn(self, rng: np.random.Generator) -> Places:
        """Return near rows (m * drawn,), drawn with replacement."""
        places = rng.random((len(self.first), _DRAWN)) * self.count[:, None]
        return self.order[(self.first[:, None] + places.astype(np.int64)).ravel()]
