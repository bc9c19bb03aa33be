r"""Feature selection by mutual information, for pipelines of scikit-learn.

A column may be informative about y by itself, or only together with others: if y says whether two
coins agree, neither coin alone is informative. So the score of a column is the larger of two: its
own information $I(x_j; y)$, and what is lost without it, $I(x; y) - I(x_{-j}; y)$. The first finds
redundant columns, none of which is missed; the second finds those that matter only together.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .data.sample import LEAST_PAIRS, as_sample
from .estimators.registry import Preset, estimator_for

__all__ = ["MISelector"]

_CLEAR = 2.0  # standard errors above 0
_HIDDEN = 6.5  # nats that n rows may hide, times n: see `inference/interval.py`
_CLASSES = 20  # integers of at most so many values are classes


@dataclass(eq=False, repr=False)
class MISelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects the columns that are most informative about y, alone or together with the others.

    Args:
        n_features_to_select: How many columns to select at most. A column must score above two
            standard errors and 6.5 / n nats, twice as many if it tells something only together with
            others. The best one is always selected.
        discrete_target: Whether y are classes; `"auto"` treats text, booleans, and integers of at
            most 20 values as classes.
        preset: As of `deminat.estimate`.
        folds: As of `deminat.estimate`.
        seed: One seed gives one answer.
        n_jobs: Processes to use.

    Attributes:
        alone_: (d,) nats of each column by itself.
        lost_: (d,) nats that are lost without it.
        scores_: (d,) the larger of both.
        errors_: (d,) the standard errors of the scores.
        least_: (d,) what a score must exceed.
    """

    n_features_to_select: int = 10
    _: KW_ONLY
    discrete_target: bool | str = "auto"
    preset: Preset = "quick"
    folds: int = 2
    seed: int = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 (scikit-learn's name)
        """Estimate the score of each column.

        Args:
            X: (n, d).
            y: (n,) numbers or classes.
        """
        if self.n_features_to_select < 1:
            raise ValueError(
                f"n_features_to_select must be at least 1: {self.n_features_to_select}"
            )
        x, y = validate_data(self, X, y, dtype=np.float64, y_numeric=False)
        target = _classes(y) if self._is_discrete(y) else np.asarray(y, dtype=np.float64)
        d, every = x.shape[1], np.arange(x.shape[1])
        without = (np.delete(every, j) for j in every if d > 1)
        measured = Parallel(n_jobs=self.n_jobs)(
            delayed(self._measure)(part, x, target) for part in (*every[:, None], every, *without)
        )
        values, pointwise = (np.array(each) for each in zip(*measured, strict=True))
        self.alone_ = values[:d]
        self.lost_ = values[d] - values[d + 1 :] if d > 1 else self.alone_
        # The folds are the same, so most of the sampling noise cancels in the difference.
        differences = pointwise[d] - pointwise[d + 1 :] if d > 1 else pointwise[:d]
        self.scores_: NDArray[np.float64] = np.maximum(self.alone_, self.lost_)
        of_larger = np.where((self.alone_ >= self.lost_)[:, None], pointwise[:d], differences)
        self.errors_ = of_larger.std(axis=1) / np.sqrt(len(x))
        # A difference has the training noise of two estimates.
        hidden = np.where(self.alone_ >= self.lost_, _HIDDEN, 2 * _HIDDEN) / len(x)
        self.least_ = np.maximum(_CLEAR * self.errors_, hidden)
        return self

    def _measure(
        self, part: NDArray[np.int64], x: NDArray[np.float64], target: Any
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the nats of the columns `part` about the target, in all and row by row.

        The columns are copied here, not by the caller: so each process holds one copy at a time.
        """
        columns = np.take(x, part, axis=1)
        sample = as_sample(columns, target, least=LEAST_PAIRS).without_constants()
        if isinstance(target, np.ndarray):  # classes are indicators
            sample = replace(sample, y_discrete=(False,) * sample.y.shape[1])
        if sample.is_constant():
            return 0.0, np.zeros(len(x))
        estimator = estimator_for("demi", self.preset, sample, self.seed)
        result = estimator.measure(sample, folds=self.folds, n_jobs=1, progress=None)
        return result.mi, result.pointwise

    def _is_discrete(self, y: NDArray[Any]) -> bool:
        if self.discrete_target != "auto":
            return bool(self.discrete_target)
        return y.dtype.kind in "OUSb" or (y.dtype.kind in "iu" and len(np.unique(y)) <= _CLASSES)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        best = np.argsort(-self.scores_, kind="stable")[: self.n_features_to_select]
        selected = np.zeros(len(self.scores_), dtype=bool)
        selected[best[self.scores_[best] > self.least_[best]]] = True
        selected[best[0]] = True
        return selected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _classes(y: NDArray[Any]) -> pl.Series:
    """Return classes as a categorical column, which `estimate` treats as classes."""
    names = [str(value) for value in y]
    return pl.Series("y", names, dtype=pl.Enum(sorted(set(names))))
