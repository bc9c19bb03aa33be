r"""Is a log ratio normalised? The mean of $\log Z$ over held-out rows, in both directions.

A true log ratio has $Z(x) = \mathbb E_{p(y)}\, e^{f(x, y)} = 1$ for every x, and likewise for every
y. The mean of $e^f$ over all unpaired pairs may be 1 although $Z(x)$ is not: then f is too high for
some x and too low for others, and the estimate is off by about $\mathbb E \log Z(x)$.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data.pairs import label_tensor
from ..data.sample import Sample

if TYPE_CHECKING:
    from .fitted import Scorer

__all__ = ["LogNormalisers", "log_normalisers", "row_log_means"]

Array = NDArray[np.float64]

_OF_COLUMNS = 100, 500  # rows whose log Z is found, and rows of the other side for each
_OF_IMAGES = 30, 150  # the same, where each pair costs a pass through a network


@dataclass(frozen=True)
class LogNormalisers:
    """What held-out rows say of the normalisers, in nats.

    Args:
        of_x: Mean of log Z(x).
        of_y: Mean of log Z(y).
        error: Standard error of the mean of both.
    """

    of_x: float
    of_y: float
    error: float

    @classmethod
    def of_rows(cls, of_x: Array, of_y: Array) -> "LogNormalisers":
        """Return the means of log Z(x) (n,) and of log Z(y) (n,)."""
        with np.errstate(invalid="ignore", over="ignore"):  # of a critic that diverged
            error = math.hypot(of_x.std(), of_y.std()) / (2 * math.sqrt(len(of_x)))
            return cls(float(of_x.mean()), float(of_y.mean()), error)

    @property
    def mean(self) -> float:
        """By how much scores are too high on average, in nats."""
        return (self.of_x + self.of_y) / 2


def log_normalisers(scorer: "Scorer", sample: Sample) -> LogNormalisers:
    """Return the normalisers of a scorer, by rows that it was not fitted to."""
    columns = sample.x.ndim == sample.y.ndim == 2
    count, others = _OF_COLUMNS if columns else _OF_IMAGES
    many = sample.take(np.arange(min(others, len(sample))))
    few = many.take(np.arange(min(count, len(many))))
    labels = label_tensor(many)
    own = np.arange(len(many)) if labels is None else labels.numpy()
    unpaired = own[: len(few), None] != own
    return LogNormalisers.of_rows(
        row_log_means(scorer.table(few, many), unpaired),
        row_log_means(scorer.table(many, few).T, unpaired),
    )


def row_log_means(table: Array, unpaired: NDArray[np.bool_] | None = None) -> Array:
    """Return the log (m,) of the mean ratio of each row of a table (m, k) of scores."""
    if unpaired is None:
        return np.asarray(np.logaddexp.reduce(table, axis=1) - math.log(table.shape[1]))
    some = np.where(unpaired, table, -np.inf)
    return np.asarray(np.logaddexp.reduce(some, axis=1) - np.log(unpaired.sum(axis=1)))
