r"""Feature selection by mutual information, for pipelines of scikit-learn.

A column may be informative about y by itself, or only together with others: if y says whether two
coins agree, neither coin alone is informative. So every column is tested alone, by its ranks, and
every pair of columns is screened for joint information (see `inference/joint_pairs.py`). The score
of a column is the larger of its own information $I(x_j; y)$ and of what the best of its pairs loses
without it, $I(x_i, x_j; y) - I(x_i; y)$. Both come from counts of ranks, in milliseconds.

Columns whose p-values are small, adjusted by Benjamini and Hochberg, are significant. Of these,
`n_features_to_select` are selected by one of three rules. S are the columns selected so far.

- `relevance`: the largest scores. Redundant columns are all selected.
- `mrmr`: the largest score less the mean of $I(x_j; x_s)$ over S.
- `jmi`: the largest mean of $I(x_j; y | x_s)$ over S. A pair that matters only together is selected
  as one, valued at half of its information.

References:
    Benjamini and Hochberg (1995), Controlling the false discovery rate.
    Peng, Long and Ding (2005), Feature selection based on mutual information (mRMR).
    Yang and Moody (1999), Data visualization and feature selection (JMI).
    Brown, Pocock, Zhao and Lujan (2012), Conditional likelihood maximisation.
"""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Self

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .api import estimate
from .data.column_pairs import with_days
from .data.dependence import group_codes, time_ranks
from .data.labels import Discrete, check_discrete
from .data.sample import LEAST_PAIRS
from .errors import DataError
from .estimators.partition import table_information
from .estimators.registry import Preset
from .inference.all_pairs import Column, tile
from .inference.dependent_rows import Dependence, single_test
from .inference.joint_pairs import JointPair, binned, joint_information, joint_pairs
from .inference.tiles import load_columns

__all__ = ["InformativePair", "MISelector"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Method = Literal["relevance", "mrmr", "jmi"]

_METHODS = "relevance", "mrmr", "jmi"
_CLASSES = 20  # integers of at most so many values are classes
_PERMUTATIONS = 999  # of groups, at least
_OF_COLUMNS = 100  # ... and for each column: q-values of single columns can then be small
_TARGET = "the target\0"  # no column's name: equal names break ties alike
_NOISE = 3.0  # standard deviations of the information of independent columns
_SHOWN = 5  # names in a warning


class InformativePair(NamedTuple):
    """Two columns that are informative about y together, more than each alone.

    Args:
        columns: Their places.
        names: Their names.
        mi: Nats of both about y.
        p_value: Of no joint information, for all pairs of the table together.
    """

    columns: tuple[int, int]
    names: tuple[str, str]
    mi: float
    p_value: float


@dataclass(eq=False, repr=False)
class MISelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects the columns that are most informative about y, alone or in pairs.

    X may be an array or a frame of pandas or polars. It may hold text, categories, dates and
    missing values. Of each column, or pair, the rows without missing values are used.

    Args:
        n_features_to_select: How many columns to select at most. Of columns with a q-value above
            the level only the best may be selected, where there is no other.
        method: `"relevance"` selects the largest scores, `"mrmr"` and `"jmi"` avoid columns that
            repeat others.
        level: The largest q-value of a column that is selected.
        pairs: Whether to look for pairs of columns that matter only together.
        discrete_target: Whether y are classes; `"auto"` treats text, booleans, and integers of at
            most 20 values as classes.
        discrete: Which columns of numbers are labels, as of `pairwise`.
        refine: How many of the best columns are estimated by the recipe of `estimate`, too. Scores
            are then the larger of both estimates.
        preset: That recipe.
        folds: As of `estimate`, for the recipe.
        seed: One seed gives one answer.
        n_jobs: Processes that the recipe uses.

    Attributes:
        scores_: (d,) nats, the larger of `alone_` and `lost_`.
        alone_: (d,) nats of each column by itself.
        lost_: (d,) nats that the best pair of the column loses without it; 0 without a pair.
        errors_: (d,) the standard errors of the scores.
        p_values_: (d,) of independence of y, each column alone.
        q_values_: (d,) adjusted for the number of columns, and for pairs where they are looked for.
        pairs_: The pairs of columns that matter together, with p-values of at most half of the
            level; the smallest first.
        ranking_: (d,) 1 for the best column, and so on.
    """

    n_features_to_select: int = 10
    _: KW_ONLY
    method: Method = "relevance"
    level: float = 0.05
    pairs: bool = True
    discrete_target: bool | str = "auto"
    discrete: Discrete = None
    refine: int = 0
    preset: Preset = "quick"
    folds: int = 5
    seed: int = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, groups: Any = None, order: Any = None) -> Self:  # noqa: N803
        """Test and score each column.

        Args:
            X: (n, d), an array or a frame.
            y: (n,) numbers or classes.
            groups: (n,) rows of one group, such as a subject's, are moved together in tests.
            order: (n,) times; `True` if rows are in the order of time.
        """
        self._check()
        x, y = validate_data(self, X, y, dtype=None, ensure_all_finite="allow-nan", y_numeric=False)
        rows = _dependence(groups, order, len(y))
        target = _target(y, self._is_discrete(y))
        columns = _columns(X, x, self.discrete)
        self._measure(columns, target, rows)
        if self.pairs:
            self._add_pairs(columns, target, rows)
        if self.refine:
            self._refine(columns, target, {"groups": groups, "order": order})
        self._rank(columns, target)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the selected columns; of a frame with their types if `set_output` asks for it.

        Args:
            X: (n, d), as it was fitted.
        """
        check_is_fitted(self)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        asked = getattr(self, "_sklearn_output_config", {}).get("transform")
        kind = asked or get_config()["transform_output"]
        if not isinstance(frame, nw.DataFrame) or frame.implementation.value != kind:
            return super().transform(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return frame[:, self.get_support(indices=True).tolist()].to_native()

    def _check(self) -> None:
        if self.n_features_to_select < 1:
            raise ValueError(
                f"n_features_to_select must be at least 1: {self.n_features_to_select}"
            )
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {self.method!r}")
        if not 0 < self.level <= 1:
            raise ValueError(f"level must be above 0 and at most 1, got {self.level!r}")
        if self.refine < 0:
            raise ValueError(f"refine must be a number of columns, got {self.refine!r}")
        check_discrete(self.discrete)

    def _is_discrete(self, y: NDArray[Any]) -> bool:
        if self.discrete_target != "auto":
            return bool(self.discrete_target)
        return y.dtype.kind in "OUSb" or (y.dtype.kind in "iu" and len(np.unique(y)) <= _CLASSES)

    def _measure(self, columns: Sequence[Column], target: Column, rows: Dependence) -> None:
        """Set scores and p-values of single columns."""
        d = len(columns)
        places = np.stack([np.arange(d), np.zeros(d, dtype=np.int64)], axis=1)
        found = tile(columns, [target], places, self.seed)
        p_values = found.p_value
        if rows:
            count = max(_PERMUTATIONS, _OF_COLUMNS * d)
            p_values = np.array([_dependent(c, target, rows, count, self.seed) for c in columns])
        self.p_values_: Array = np.nan_to_num(p_values, nan=1.0)
        self.q_values_: Array = false_discovery_control(self.p_values_)
        self.alone_: Array = np.maximum(np.nan_to_num(found.mi), 0)
        self.errors_: Array = np.nan_to_num(found.error)
        self.lost_: Array = np.zeros(d)
        self.scores_: Array = self.alone_.copy()
        self.pairs_: list[InformativePair] = []
        self._partners: NDArray[np.int64] = np.full(d, -1)

    def _add_pairs(self, columns: Sequence[Column], target: Column, rows: Dependence) -> None:
        """Find pairs that matter together, and score their columns by what they add."""
        informative = np.flatnonzero(self.q_values_ <= self.level)
        informative = informative[np.argsort(self.p_values_[informative], kind="stable")]
        found = joint_pairs(
            columns,
            target,
            informative=informative.tolist(),
            rows=rows,
            level=self.level / 2,
            permutations=2 * _PERMUTATIONS,
            seed=self.seed,
        )
        codes = _Codes(columns, target, self.seed)
        self.pairs_ = [self._scored(pair, columns, codes) for pair in found]
        of_pairs = np.ones(len(columns))
        for pair in self.pairs_:
            places = list(pair.columns)
            of_pairs[places] = np.minimum(of_pairs[places], pair.p_value)
        # Two ways to be significant: each has half of the level.
        self.q_values_ = np.minimum(1, 2 * np.minimum(self.q_values_, of_pairs))

    def _scored(
        self, pair: JointPair, columns: Sequence[Column], codes: "_Codes"
    ) -> InformativePair:
        """Score both columns of a pair by what it loses without them."""
        places = pair.first, pair.second
        mi = 0.0
        for own, other in (places, places[::-1]):
            mi, error, partner = joint_information(codes[other], codes[own], codes.target)
            if mi - partner > self.lost_[own]:
                self.lost_[own] = mi - partner
                self._partners[own] = other
                if self.lost_[own] > self.scores_[own]:
                    self.scores_[own], self.errors_[own] = self.lost_[own], error
        names = columns[pair.first].name, columns[pair.second].name
        return InformativePair(places, names, mi, pair.p_value)

    def _refine(self, columns: Sequence[Column], target: Column, rows: dict[str, Any]) -> None:
        """Estimate the best columns by the recipe; a column of a pair by what it adds to it.

        Few rows may teach a critic nothing, so the larger of both estimates is kept.
        """
        y = _series(target).alias("y")

        def nats(*places: int) -> tuple[float, float]:
            x = pl.DataFrame([_series(columns[i]) for i in places])
            found = estimate(
                x,
                y,
                preset=self.preset,
                folds=self.folds,
                seed=self.seed,
                n_jobs=self.n_jobs or 1,
                nan="omit",
                discrete=False,
                **rows,
            )
            return found.mi, found.standard_error or 0.0

        order = np.argsort(-self.scores_, kind="stable")[: self.refine]
        for own in order[self.q_values_[order] <= self.level].tolist():
            found, error = nats(own)
            self.alone_[own] = max(self.alone_[own], found)
            partner = int(self._partners[own])
            if partner >= 0:
                both, of_both = nats(own, partner)
                lost = both - nats(partner)[0]
                self.lost_[own] = max(self.lost_[own], lost)
                found, error = (lost, of_both) if lost > found else (found, error)
            if found > self.scores_[own]:
                self.scores_[own], self.errors_[own] = found, error

    def _rank(self, columns: Sequence[Column], target: Column) -> None:
        """Set the ranking: significant columns by the method, then others by their p-values."""
        significant = self.q_values_ <= self.level
        # Scores that differ by less than counts of rows can are equal.
        steps = np.round(self.scores_ * len(target.values))
        best = np.lexsort((self.p_values_, -steps))
        first = best[significant[best]]
        others = np.flatnonzero(~significant)
        others = others[np.lexsort((-self.scores_[others], self.p_values_[others]))]
        if self.method != "relevance" and len(first) > 1:
            codes = _Codes(columns, target, self.seed)
            chosen = self._greedy(first.tolist(), codes)
            rest = [i for i in first.tolist() if i not in set(chosen)]
            first = np.array([*chosen, *rest], dtype=np.int64)
        self.ranking_: NDArray[np.int64] = np.empty(len(columns), dtype=np.int64)
        self.ranking_[np.concatenate([first, others])] = np.arange(1, len(columns) + 1)

    def _greedy(self, candidates: list[int], codes: "_Codes") -> list[int]:
        """Return columns in the order in which the method selects them."""
        value = self._mrmr if self.method == "mrmr" else self._jmi
        chosen: list[int] = []
        left = list(candidates)  # the best first, which ties keep
        sums = dict.fromkeys(left, 0.0)
        while left and len(chosen) < self.n_features_to_select:
            best = max(left, key=lambda i: value(i, sums[i], chosen))
            entering = [best]
            if self.method == "jmi" and self._is_half(best, chosen):
                entering.append(int(self._partners[best]))
            for i in entering:
                chosen.append(i)
                if i in sums:
                    left.remove(i)
                for k in left:
                    sums[k] += self._shared(k, i, codes)
        return list(dict.fromkeys(chosen))[: self.n_features_to_select]

    def _shared(self, column: int, other: int, codes: "_Codes") -> float:
        """Return the nats that a column shares with another, or adds to it about y."""
        if self.method == "mrmr":
            return codes.shared(column, other)
        both, _, alone = joint_information(codes[other], codes[column], codes.target)
        return both - alone

    def _mrmr(self, column: int, total: float, chosen: list[int]) -> float:
        return float(self.scores_[column]) - total / max(1, len(chosen))

    def _jmi(self, column: int, total: float, chosen: list[int]) -> float:
        if self._is_half(column, chosen):
            return float(self.lost_[column]) / 2
        return total / len(chosen) if chosen else float(self.alone_[column])

    def _is_half(self, column: int, chosen: list[int]) -> bool:
        """Tell whether a column matters only with a partner that is not selected yet."""
        only = self.lost_[column] > self.alone_[column]
        return bool(only) and int(self._partners[column]) not in chosen

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        among = self.ranking_ <= self.n_features_to_select
        return np.asarray(among & (self.q_values_ <= self.level) | (self.ranking_ == 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class _Codes:
    """Columns as codes of bins, each made when it is first asked for."""

    def __init__(self, columns: Sequence[Column], target: Column, seed: int):
        self._columns, self._seed = columns, seed
        self._made: dict[int, Places] = {}
        self.target = binned(target, seed)

    def __getitem__(self, place: int) -> Places:
        if place not in self._made:
            self._made[place] = binned(self._columns[place], self._seed)
        return self._made[place]

    def shared(self, one: int, other: int) -> float:
        """Return the nats that two columns share; 0 where that may be sampling noise."""
        x, y = self[one], self[other]
        known = (x >= 0) & (y >= 0)
        if not known.any():
            return 0.0
        nats = table_information(x[known], y[known])[0]
        free = (len(np.unique(x[known])) - 1) * (len(np.unique(y[known])) - 1)
        # Twice n times the nats is about chi-squared: less than its noise is nothing.
        return nats if nats > _NOISE * np.sqrt(2 * free) / (2 * known.sum()) else 0.0


def _dependence(groups: Any, order: Any, n: int) -> Dependence:
    if n < LEAST_PAIRS:
        raise DataError(
            f"{n} rows are too few (n_samples = {n}): at least {LEAST_PAIRS} are needed"
        )
    keep = np.ones(n, dtype=bool)
    labels, (times, _) = group_codes(groups, keep), time_ranks(order, keep)
    if labels is not None and times is not None:
        raise DataError(
            "groups and order were both given: pass groups for rows that belong together, or order "
            "for one series in time"
        )
    return Dependence(labels, times)


def _dependent(column: Column, target: Column, rows: Dependence, count: int, seed: int) -> float:
    """Return the p-value of a column where rows depend on each other."""
    known = ~np.isnan(column.values)
    if known.sum() < LEAST_PAIRS:
        return 1.0
    return single_test(
        column.values[known],
        target.values[known],
        rows.take(known),
        are_labels=(column.is_unordered, target.is_unordered),
        permutations=count,
        seed=seed,
    )


def _target(y: NDArray[Any], is_discrete: bool) -> Column:
    """Return y as numbers, or as codes of its classes."""
    if not is_discrete:
        return Column(_TARGET, np.asarray(y, dtype=np.float64))
    names = np.array([str(value) for value in y])
    codes = np.unique(names, return_inverse=True)[1].astype(np.float64)
    return Column(_TARGET, codes, is_label=True)


def _columns(given: Any, checked: NDArray[Any], discrete: Discrete) -> list[Column]:
    """Return the columns of a frame or of a checked array; those of no use are all missing."""
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        frame = nw.from_native(_framed(checked), eager_only=True)
    frame = frame.rename({name: str(name) for name in frame.columns if not isinstance(name, str)})
    frame = with_days(frame, ())
    names = list(frame.columns)
    loaded = load_columns(frame, names, discrete, omits=True)
    if loaded.refused:
        shown = ", ".join(list(loaded.refused)[:_SHOWN])
        first = next(iter(loaded.refused.values()))
        warnings.warn(f"never selected: {shown}: {first}", stacklevel=3)
    missing = np.full(len(checked), np.nan)
    return [loaded.columns.get(name) or Column(name, missing) for name in names]


def _framed(array: NDArray[Any]) -> pl.DataFrame:
    """Return an array (n, d) as a frame: columns of objects as text, if any of them is text."""
    if array.dtype.kind not in "OUS":
        return pl.DataFrame({f"column {j}": column for j, column in enumerate(array.T)})
    made = []
    for j, column in enumerate(array.T):
        values = [None if v is None or v != v else v for v in column.tolist()]
        if any(isinstance(v, str) for v in values):
            values = [None if v is None else str(v) for v in values]
        made.append(pl.Series(f"column {j}", values, strict=False))
    return pl.DataFrame(made)


def _series(column: Column) -> pl.Series:
    """Return a column as numbers, or as text if it is a label."""
    if not column.is_label:
        return pl.Series(column.name, column.values)
    names = [None if np.isnan(value) else f"level {value:g}" for value in column.values]
    return pl.Series(column.name, names, dtype=pl.Enum(sorted({n for n in names if n})))
