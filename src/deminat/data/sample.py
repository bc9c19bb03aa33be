"""Arrays, frames and tensors -> Sample(x, y): every error of input is raised here.

Both sides become float64 arrays of n rows, never cast in place. What cannot be used as it is
(missing values, strings, unequal lengths) is an error that says what to do. What can be repaired
(constant columns, declared categories) is repaired and, where it matters, reported in a `Caution`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..results import Caution
from .arrays import UNNAMED, SideRows, as_rows
from .dependence import (
    gap_between,
    group_codes,
    label_copies,
    merge_labels,
    serial_warnings,
    time_ranks,
)
from .labels import (
    Declared,
    Discrete,
    check_discrete,
    declared_labels,
    describe_labels,
    discrete_columns,
)
from .source import Rows, as_two_sides
from .subsample import Subsample, subsample

__all__ = [
    "LEAST_PAIRS",
    "UNNAMED",
    "NanPolicy",
    "RowOptions",
    "Sample",
    "as_sample",
    "as_samples_given",
    "complete_rows",
    "label_warnings",
    "varying_columns",
]

Array = NDArray[np.float64]
NanPolicy = Literal["raise", "omit"]
LEAST_PAIRS = 20  # five folds of four: fewer cannot be trained on and held out
_NAMES = 5  # of a side, in messages and descriptions
_OF_A_SIDE = "", "_names", "_discrete"  # what fields of a sample are called, after x or y


@dataclass(frozen=True)
class RowOptions:
    """Which rows to use, and which of them depend on each other.

    Args:
        groups: (n,) numbers or names, equal for rows that belong together, such as a subject's.
        order: (n,) times; `True` if rows are in the order of time, `False` if their order means
            nothing: similarity of adjacent rows is then ignored.
        nan: `"raise"` an error on NaN and inf, or `"omit"` the pairs that hold one.
        max_rows: Use at most this many rows, sampled at random; `None` for the default limit of
            `subsample`, infinity for all.
        seed: Of that sample.
        discrete: Which columns of numbers are labels: all (`True`), none (`False`), or those named
            as in messages, such as "zip", "column 0 of x" or "x" for all of x. `None` for those
            that take few values, each repeated often. Text and categories are labels always.
    """

    groups: Any = None
    order: Any = None
    nan: NanPolicy = "raise"
    max_rows: float | None = math.inf
    seed: int = 0
    discrete: Discrete = None

    def __post_init__(self) -> None:
        if self.nan not in ("raise", "omit"):
            raise ValueError(f'nan must be "raise" or "omit", got {self.nan!r}')
        check_discrete(self.discrete)


_ALL_ROWS = RowOptions()


@dataclass(frozen=True)
class Sample:
    """Pairs that are finite, numeric and of equal length.

    Args:
        x: (n, ...), float64.
        y: (n, ...), float64.
        x_names: What messages call the columns of x.
        y_names: What messages call the columns of y.
        labels: (n,) integers, equal for rows of one group or copies of one observation; `None`
            where every row stands for itself.
        copies: (n,) the same for copies alone.
        times: (n,) the rank of each row in time; `None` where rows have no order.
        gap: Rows to leave out between blocks of rows in that order.
        dropped: How many pairs were left out because a value was missing.
        rows: (n,) row numbers in the input, counted from 0; `None` where they are not known.
        warnings: What was repaired on the way.
        x_discrete: For each column of x, whether its values are labels whose order means nothing;
            () for images.
        y_discrete: The same of y.
    """

    x: Array
    y: Array
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    labels: Rows | None = None
    copies: Rows | None = None
    times: Rows | None = None
    gap: int = 0
    dropped: int = 0
    warnings: tuple[Caution, ...] = ()
    rows: Rows | None = None
    x_discrete: tuple[bool, ...] = ()
    y_discrete: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def are_labels(self) -> tuple[bool, bool]:
        """Tell of each side whether all of its columns are labels."""
        return tuple(bool(d) and all(d) for d in (self.x_discrete, self.y_discrete))  # type: ignore[return-value]

    def take(self, rows: Rows) -> "Sample":
        """Return the pairs at `rows`."""
        each = {
            name: getattr(self, name) for name in ("x", "y", "labels", "copies", "times", "rows")
        }
        return replace(self, **{name: a[rows] for name, a in each.items() if a is not None})

    def without_constants(self) -> "Sample":
        """Return the sample less its constant columns; of an all-constant side one stays."""
        kept = self
        for side in ("x", "y"):
            rows, names, discrete = (getattr(self, f"{side}{what}") for what in _OF_A_SIDE)
            keep = varying_columns(rows)
            if keep is None:
                continue
            parts = rows[:, keep], tuple(compress(names, keep)), tuple(compress(discrete, keep))
            changed = {f"{side}{what}": part for what, part in zip(_OF_A_SIDE, parts, strict=True)}
            warnings = (*kept.warnings, _constants(rows, names, side))
            kept = replace(kept, **changed, warnings=warnings)
        return kept

    def is_constant(self) -> bool:
        """Tell whether one side is constant, so that the MI is 0."""
        return any(bool((a == a[:1]).all()) for a in (self.x, self.y))


def as_sample(x: Any, y: Any, options: RowOptions = _ALL_ROWS, *, least: int = 2) -> Sample:
    """Check two aligned collections of values and make them a `Sample`.

    Args:
        x: Array, tensor, frame, series or list; (n,), (n, d) or (n, c, h, w).
        y: The same number of rows.
        options: Which rows to use.
        least: The smallest usable number of pairs.
    """
    _check_labels(x, y)
    used = subsample(
        as_two_sides(x, y), options.groups, options.order, options.max_rows, options.seed
    )
    sides = dict(zip("xy", map(as_rows, used.sides, "xy"), strict=True))
    of_x, of_y = _declared(sides, options.discrete)
    return _checked(of_x, of_y, used, options.nan, least)


def as_samples_given(
    x: Any, y: Any, z: Any, options: RowOptions = _ALL_ROWS, *, least: int = 2
) -> tuple[Sample, Sample, Sample]:
    """Return three samples of the same rows: x with y and z, x with z, x with y.

    Arguments are those of `as_sample`, and z has as many rows as x and y.
    """
    _check_labels(x, y)
    _check_labels(x, z, "given")
    sides = *as_two_sides(x, y), z
    used = subsample(sides, options.groups, options.order, options.max_rows, options.seed)
    names = "x", "y", "given"
    read = dict(zip(names, map(as_rows, used.sides, names), strict=True))
    counts = [len(side.rows) for side in read.values()]
    if len(set(counts)) > 1:
        raise DataError(
            f"x has {counts[0]} rows, y {counts[1]} and given {counts[2]}; row i of each must go "
            "together"
        )
    of_x, of_y, of_z = _declared(read, options.discrete)
    of_y, of_z = of_y.flat(), of_z.flat()
    rows = np.hstack([of_y.rows, of_z.rows])
    both = _Side(rows, of_y.names + of_z.names, of_y.declared + of_z.declared)
    sample, d = _checked(of_x, both, used, options.nan, least), len(of_y.names)
    known, pair = sample.y_discrete[d:], sample.y_discrete[:d]
    return (
        sample,
        replace(sample, y=sample.y[:, d:], y_names=of_z.names, y_discrete=known),
        replace(sample, y=sample.y[:, :d], y_names=of_y.names, y_discrete=pair),
    )


def label_warnings(samples: Sequence[Sample]) -> tuple[Caution, ...]:
    """Return a warning of the numbers that are read as labels, where nothing was declared.

    Args:
        samples: One, or those of `as_samples_given`.
    """
    whole, *parts = samples
    pair = parts[-1] if parts else whole
    sides = {
        "x": (whole.x, whole.x_names, whole.x_discrete),
        "y": (pair.y, pair.y_names, pair.y_discrete),
    }
    if parts:
        sides["given"] = parts[0].y, parts[0].y_names, parts[0].y_discrete
    return describe_labels(sides)


class _Side(NamedTuple):
    """The rows of a side, what messages call its columns, and which are declared labels."""

    rows: Array
    names: tuple[str, ...]
    declared: Declared

    def flat(self) -> "_Side":
        """Return rows (n, d) of any shape; pixels are no labels."""
        if self.rows.ndim == 2:
            return self
        flat = self.rows.reshape(len(self.rows), -1)
        each = flat.shape[1] // max(1, len(self.names))
        names = tuple(f"{name}[{i}]" for name in self.names for i in range(each))
        return _Side(flat, self.names if each == 1 else names, (False,) * flat.shape[1])


def _declared(sides: Mapping[str, SideRows], discrete: Discrete) -> list[_Side]:
    """Return the sides with what is declared of their columns."""
    pairs = zip(sides.values(), declared_labels(sides, discrete), strict=True)
    return [_Side(side.rows, side.names, declared) for side, declared in pairs]


def _check_labels(x: Any, y: Any, name: str = "y") -> None:
    """Refuse two pandas objects whose rows have the same labels in another order."""
    indexes: list[Any] = [getattr(side, "index", None) for side in (x, y)]
    one, other = indexes
    # Lists have an index too, of another kind.
    known = hasattr(one, "equals") and hasattr(other, "equals") and not one.equals(other)
    if known and len(one) == len(other) and set(one) == set(other):
        raise DataError(
            f"x and {name} have the same index in another order, and rows go by position: pass "
            f"{name}.loc[x.index] to pair them by index, or {name}.reset_index(drop=True) to leave "
            "them as they are"
        )


def complete_rows(*sides: Any) -> NDArray[np.bool_]:
    """Return which rows hold no NaN nor inf on any side; None is no side."""
    named = (as_rows(side, "a side")[0] for side in sides if side is not None)
    return np.asarray(np.logical_and.reduce([_finite_rows(rows) for rows in named]))


def _checked(x_side: _Side, y_side: _Side, used: Subsample, nan: NanPolicy, least: int) -> Sample:
    """Return a sample of the rows in use, with names of their columns."""
    (x, x_names, x_declared), (y, y_names, y_declared) = x_side, y_side
    if len(x) != len(y):
        raise DataError(
            f"x has {len(x)} rows and y has {len(y)}; row i of x must go with row i of y"
        )
    finite = _finite_rows(x) & _finite_rows(y)
    if not finite.all() and nan == "raise":
        where = filter(None, [_missing(x, x_names, "x"), _missing(y, y_names, "y")])
        raise DataError(
            f"{'; '.join(where)}; omit those pairs (nan='omit', --nan omit) or fill them in"
        )
    n = int(finite.sum())
    dropped, warnings = len(finite) - n, used.warnings
    if dropped:
        message = f"{dropped} of {len(finite)} pairs held NaN or inf and were dropped"
        warnings += (Caution("missing", message, "The estimate is of complete pairs only"),)
    if n < least:
        raise DataError(f"{n} pairs are too few (n_samples = {n}): at least {least} are needed")
    grouped, (times, tied) = group_codes(used.groups, finite), time_ranks(used.order, finite)
    if grouped is not None and times is not None:
        raise DataError(
            "groups and order were both given: pass groups for rows that belong together, or order "
            "for one series in time"
        )
    warnings, rows = warnings + tied, used.numbers(np.flatnonzero(finite))
    x, y = x[finite], y[finite]
    sample = Sample(
        x,
        y,
        x_names,
        y_names,
        dropped=dropped,
        warnings=warnings,
        rows=rows,
        x_discrete=discrete_columns(x, x_declared),
        y_discrete=discrete_columns(y, y_declared),
    )
    if times is None:
        # order=False: the order of rows means nothing
        return _with_groups(sample, grouped, check_serial=used.order is None)
    return _in_time(sample, times)


def _with_groups(sample: Sample, groups: Rows | None, check_serial: bool) -> Sample:
    """Return the sample with labels, equal for rows of one group and for copies of one row.

    With `check_serial`, adjacent rows that are similar cause a warning.
    """
    copies, found = label_copies(sample.x, sample.y)
    if groups is None and check_serial:
        first = slice(None) if copies is None else np.sort(np.unique(copies, return_index=True)[1])
        found += serial_warnings(sample.x[first], sample.y[first])
    labels, warnings = merge_labels(groups, copies), sample.warnings + found
    return replace(sample, labels=labels, copies=copies, warnings=warnings)


def _in_time(sample: Sample, times: Rows) -> Sample:
    """Return the sample with the rank of each row in time, and the gap to leave between blocks."""
    _, copied = label_copies(sample.x, sample.y)
    if copied:
        raise DataError(
            f"{copied[0].message}, and copies cannot stay together in a time series: leave the "
            "copies out, or order"
        )
    rows = times.argsort()
    gap, found = gap_between(sample.x[rows], sample.y[rows])
    return replace(sample, times=times, gap=gap, warnings=sample.warnings + found)


def _finite_rows(a: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(a).all(axis=tuple(range(1, a.ndim))))


def _missing(a: Array, names: Sequence[str], side: str) -> str | None:
    """Say where the missing values of one side are, if it has any."""
    bad = ~np.isfinite(a)
    if not bad.any():
        return None
    per_column = bad.sum(axis=(0, *range(2, a.ndim)))
    where = ", ".join(f"{names[j]} ({per_column[j]})" for j in np.flatnonzero(per_column)[:_NAMES])
    rows = int(bad.reshape(len(a), -1).any(axis=1).sum())
    return f"{side} has NaN or inf in {rows} of {len(a)} rows: {where}"


def _constants(a: Array, names: Sequence[str], side: str) -> Caution:
    """Return the warning that some columns of a side are constant."""
    varies = (a != a[:1]).any(axis=0)
    listed = ", ".join(names[j] for j in np.flatnonzero(~varies)[:_NAMES])
    return Caution(
        "constant",
        f"{int((~varies).sum())} constant column(s) of {side} carry no information: {listed}",
        "They were left out" if varies.any() else "Nothing varies, so the MI is 0",
    )


def varying_columns(a: Array) -> NDArray[np.bool_] | None:
    """Return which columns of rows (n, ...) vary, or the first if none does; None for all."""
    varies = (a != a[:1]).any(axis=0)
    if a.ndim != 2 or varies.all():  # a constant pixel keeps its place in the image
        return None
    return np.asarray(varies if varies.any() else np.arange(a.shape[1]) == 0)
