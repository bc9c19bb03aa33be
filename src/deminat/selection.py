r"""Which columns matter? Selection for pipelines of scikit-learn, by information alone or together.

A column may tell about y by itself, or only together with others: of two coins whose equality is
y, neither tells anything. So a column's score is the larger of two: what it tells alone, $I(x_j;
y)$, and what is lost without it, $I(x; y) - I(x_{-j}; y)$. The first finds columns that say the
same, of which none is missed; the second those that matter only together.
"""

from typing import Any, Self

import numpy as np
import polars as pl
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .data.sample import LEAST_PAIRS, as_sample
from .estimators.recipes import Preset
from .estimators.registry import estimator_for

__all__ = ["MISelector"]

_CLEAR = 2.0  # standard errors above 0
_CLASSES = 20  # whole numbers of so many values are taken for classes


class MISelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects the columns that tell most about y, alone or together with the others.

    Args:
        n_features_to_select: How many columns to keep at most. Those whose score is not above two
            of its standard errors are left out, except that one is always kept.
        discrete_target: Whether y are classes; `"auto"` takes text, truth values, and whole
            numbers of at most 20 values for classes.
        preset: As of `deminat.estimate`.
        folds: As of `deminat.estimate`.
        seed: One seed gives one answer.
        n_jobs: Processes to use.

    Attributes:
        alone_: (d,) nats that each column tells by itself.
        lost_: (d,) nats that are lost without it.
        scores_: (d,) the larger of both.
        errors_: (d,) the standard error of that one.
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        *,
        discrete_target: bool | str = "auto",
        preset: Preset = "quick",
        folds: int = 2,
        seed: int = 0,
        n_jobs: int | None = None,
    ):
        self.n_features_to_select = n_features_to_select
        self.discrete_target = discrete_target
        self.preset = preset
        self.folds = folds
        self.seed = seed
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 (scikit-learn's name)
        """Estimate what each column tells about y.

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
        d = x.shape[1]
        alone = [x[:, [j]] for j in range(d)]
        without = [np.delete(x, j, axis=1) for j in range(d)] if d > 1 else []
        told = Parallel(n_jobs=self.n_jobs)(
            delayed(self._told)(columns, target) for columns in (*alone, x, *without)
        )
        pointwise = np.array([rows for _, rows in told])
        values = np.array([mi for mi, _ in told])
        self.alone_ = values[:d]
        self.lost_ = values[d] - values[d + 1 :] if d > 1 else self.alone_
        # In the same folds, so that the chance of most rows cancels in the difference.
        differences = pointwise[d] - pointwise[d + 1 :] if d > 1 else pointwise[:d]
        self.scores_: NDArray[np.float64] = np.maximum(self.alone_, self.lost_)
        of_larger = np.where((self.alone_ >= self.lost_)[:, None], pointwise[:d], differences)
        self.errors_ = of_larger.std(axis=1) / np.sqrt(len(x))
        return self

    def _told(self, columns: NDArray[np.float64], target: Any) -> tuple[float, NDArray[np.float64]]:
        """Return the nats that columns tell about the target, in all and row by row."""
        sample = as_sample(columns, target, least=LEAST_PAIRS).without_constants()
        if sample.is_constant():
            return 0.0, np.zeros(len(columns))
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
        kept = np.zeros(len(self.scores_), dtype=bool)
        kept[best[self.scores_[best] > _CLEAR * self.errors_[best]]] = True
        kept[best[0]] = True
        return kept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _classes(y: NDArray[Any]) -> pl.Series:
    """Return classes, as what `estimate` takes for such."""
    names = [str(value) for value in y]
    return pl.Series("y", names, dtype=pl.Enum(sorted(set(names))))
