r"""The log ratio of new rows, by what was fitted to old ones.

Each fold has a critic $f_j$ of its own. An old row may be scored by one of them only, the one that
has not seen it. New rows were seen by none, so all speak: $f = \frac1J \sum_j f_j$, which errs no
more than they do on average, and mostly less. Given z it is what y adds to it, by the chain rule
row by row: $f(x; y, z) - f(x; z)$.

New rows must look like the old ones. Columns with names are matched by name; a level of a category
that no new row has is a column of zeros, and one that no old row had is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..critics.scoring import joint_scores
from ..data.arrays import columns_of
from ..data.sample import (
    UNNAMED,
    NanPolicy,
    Sample,
    Schema,
    as_sample,
    as_samples_given,
    complete_rows,
    varying_columns,
)
from ..data.source import Source as Stored
from ..errors import DataError
from ..runtime.process import one_thread
from .scaling import Scales

__all__ = ["ColumnNames", "FittedModel", "FittedScorer", "FoldEnsemble", "PairScorer"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LEVEL = "="  # between the name of a category and its level
_NAMES = 5  # of a side in a message


class PairScorer(Protocol):
    """A fitted estimator, as far as it is needed here."""

    def joint(self, sample: Sample) -> Array:
        """Score the pairs of a sample."""
        ...


@dataclass(frozen=True)
class FittedScorer:
    """What is left of a trained estimator to score pairs.

    Args:
        scales: How rows become tensors.
        critic: Scores them.
        offset: Taken off the scores, in nats.
    """

    scales: Scales
    critic: Any
    offset: float = 0.0

    def joint(self, sample: Sample) -> Array:
        """Score the pairs of a sample."""
        with one_thread():
            joint = joint_scores(self.critic, *self.scales(sample))
        return np.asarray(joint.double().numpy() - self.offset)


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a frame, before categories became columns of zeros and ones.

    Args:
        names: Of all; none of an array.
        categorical: Of those that are categories.
    """

    names: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return the columns of a frame or series, in memory or in a file."""
        some = value.take(np.arange(1)) if isinstance(value, Stored) else value
        names, categorical = columns_of(some)
        return cls(names, categorical) if all(names) else cls()


@dataclass(frozen=True)
class FoldEnsemble:
    """Members that score pairs of the same columns.

    Args:
        schema: Of the rows as they came.
        x_kept: Which columns of x the members know, the others being constant; `None` for all.
        y_kept: The same of y.
        members: One for each fold; none where a side never varied, so that the log ratio is 0.
    """

    schema: Schema
    x_kept: Mask | None
    y_kept: Mask | None
    members: tuple[PairScorer, ...]

    @classmethod
    def of(cls, sample: Sample, members: Sequence[PairScorer]) -> Self:
        """Return what was fitted to a sample without its constant columns."""
        kept = varying_columns(sample.x), varying_columns(sample.y)
        return cls(Schema.of(sample), *kept, tuple(members))

    def __call__(self, sample: Sample) -> Array:
        """Return the mean score (n,) of pairs, in nats."""
        x_names, y_names = self.schema.names
        x = _matched(sample.x, sample.x_names, x_names, "x")
        y = _matched(sample.y, sample.y_names, y_names, "y")
        sample = replace(sample, x=x[0], x_names=x[1], y=y[0], y_names=y[1])
        self.schema.check(sample)
        if not self.members:
            return np.zeros(len(sample))
        x, y = _taken(*x, self.x_kept), _taken(*y, self.y_kept)
        known = replace(sample, x=x[0], x_names=x[1], y=y[0], y_names=y[1])
        return np.asarray(np.mean([member.joint(known) for member in self.members], axis=0))


@dataclass(frozen=True)
class FittedModel:
    """What results carry.

    Args:
        sources: Of x, of y and, if anything is given, of that.
        whole: Scores x with y, or with y and what is given.
        known: Scores x with what is given, if anything is.
    """

    sources: tuple[ColumnNames, ...]
    whole: FoldEnsemble
    known: FoldEnsemble | None = None

    def log_ratio(self, x: Any, y: Any, given: Any = None, nan: NanPolicy = "raise") -> Array:
        """Return the log ratio (n,) of new rows, in nats; NaN of those that are omitted."""
        if self.known is None and given is not None:
            raise DataError("nothing was given in the estimate: leave given out")
        if self.known is not None and given is None:
            raise DataError("the estimate was given z: pass given= (--given) for the new rows too")
        if self.known is None:
            sample = as_sample(x, y, nan=nan, least=1)
            found = self.whole(sample)
        else:
            sample, known, _ = as_samples_given(x, y, given, nan=nan, least=1)
            found = self.whole(sample) - self.known(known)
        if not sample.dropped:
            return found
        everywhere = np.full(len(found) + sample.dropped, np.nan)
        everywhere[complete_rows(x, y, given)] = found
        return everywhere


def _taken(a: Array, names: tuple[str, ...], kept: Mask | None) -> tuple[Array, tuple[str, ...]]:
    if kept is None:
        return a, names
    return a[:, kept], tuple(name for name, keep in zip(names, kept, strict=True) if keep)


def _matched(
    a: Array, names: tuple[str, ...], wanted: tuple[str, ...], side: str
) -> tuple[Array, tuple[str, ...]]:
    """Return rows with the columns in the order of the fit, where both have names."""
    if names == wanted or UNNAMED in (names[0], wanted[0]) or a.ndim > 2:
        return a, names
    if len(set(wanted)) < len(wanted):  # by place, or not at all
        return a, names
    place = {name: j for j, name in enumerate(names)}
    levels, known = _categories(names), _categories(wanted)
    extra = [name for name in names if name not in wanted]
    new = [name for name in extra if _of(name) in known and a[:, place[name]].any()]
    if new:
        raise DataError(
            f"{side} has {new[0]}, a level that the fit never saw: leave those rows out"
        )
    missing = any(name not in place and _of(name) not in levels for name in wanted)
    if missing or any(_of(name) not in known for name in extra):
        raise DataError(
            f"{side} has columns {', '.join(names[:_NAMES])}; the fit had "
            f"{', '.join(wanted[:_NAMES])}: pass the same"
        )
    nothing = np.zeros(len(a))
    columns = [a[:, place[name]] if name in place else nothing for name in wanted]
    return np.stack(columns, axis=1), wanted


def _of(name: str) -> str | None:
    """Return the category that a column is a level of, if it may be one."""
    category, equals, _ = name.partition(_LEVEL)
    return category if equals else None


def _categories(names: Sequence[str]) -> set[str | None]:
    return {_of(name) for name in names} - {None}
