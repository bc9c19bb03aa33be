"""What estimators have in common."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from ..data.pairs import draw_partners
from ..data.sample import Sample, as_sample
from ..data.splits import hold_out
from ..data.transforms import Transform
from ..objectives import DEMI
from ..results import MIResult
from ..runtime.progress import Progress
from ..training.config import EarlyStopping
from .scores import Scores, held_out_loss

__all__ = ["MIEstimator", "requires_y", "scaling_name"]


class MIEstimator(Protocol):
    """What every estimator of this library does."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    def fit(self, x: Any, y: Any) -> Self:
        """Learn from pairs."""
        ...

    def log_ratio(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return the log ratio (n,) of pairs, in nats."""
        ...

    def estimate(self, x: Any, y: Any) -> MIResult:
        """Return the mutual information of pairs, new ones if it is to be believed."""
        ...

    def score(self, x: Any, y: Any) -> float:
        """Return minus the held-out loss, for model selection."""
        ...

    def measure(
        self, sample: Sample, *, folds: int, n_jobs: int, progress: Progress | None
    ) -> MIResult:
        """Return the mutual information of all pairs of a sample."""
        ...


def requires_y(tags: Tags) -> Tags:
    """Tell scikit-learn that `fit` wants both sides."""
    tags.target_tags.required = True
    return tags


def scaling_name(scaling: type[Transform]) -> str:
    """Return what results call a map of the columns."""
    return getattr(scaling, "__name__", type(scaling).__name__)


Array = NDArray[np.float64]
Sides = tuple[Array, Array]


def flat(a: Array) -> Array:
    return a.reshape(len(a), -1)


def cross_entropy_of(estimator: MIEstimator, x: Any, y: Any) -> float:
    """Return the balanced cross-entropy of an estimator's log ratios on pairs."""
    sample = as_sample(x, y)
    joint = estimator.log_ratio(sample.x, sample.y)
    (others,) = draw_partners(sample, 1, seed=0).T.numpy()
    product = estimator.log_ratio(sample.x, sample.y[others])
    return held_out_loss(DEMI(), Scores(joint, product[:, None]))


def split_for_stopping(
    sample: Sample, stopping: EarlyStopping | None, seed: int
) -> tuple[Sample, Sample | None]:
    """Return the rows to train on and, for early stopping, the rows held out of them."""
    return (sample, None) if stopping is None else hold_out(sample, stopping.held_out, seed)
