r"""What was fitted, for scoring pairs: of one fold, of all folds, and given z.

Each fold has a critic $f_j$ of its own. A row of the estimate may be scored only by the critic that
was not trained on it. New rows were seen by none, so all are averaged: $f = \frac1J \sum_j f_j$,
whose error is at most their mean error. Given z it is what y adds to z, by the chain rule row by
row: $f(x; y, z) - f(x; z)$.

New rows must have the columns of the fit. Columns with names are matched by name. A level of a
category that no new row has is a column of zeros; one that the fit never saw is an error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..critics.features import Features
from ..critics.scoring import joint_scores, product_scores, score_table
from ..data.arrays import columns_of
from ..data.pairs import draw_partners
from ..data.sample import (
    UNNAMED,
    NanPolicy,
    RowOptions,
    Sample,
    as_sample,
    as_samples_given,
    complete_rows,
    varying_columns,
)
from ..data.schema import Schema
from ..data.source import Source
from ..data.units import PAIR_SIZE, row_pairs
from ..errors import DataError, printable
from ..runtime.process import one_thread
from .scaling import Scales
from .scores import Scores

__all__ = [
    "ColumnNames",
    "FittedModel",
    "FittedScorer",
    "FoldEnsemble",
    "PairScorer",
    "PooledScorer",
    "Scorer",
    "Tables",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
Tables = NDArray[np.float64]  # (draws, pairs, 2, 2) scores of each x of a pair of rows with each y

_AT_ONCE = 1 << 12  # pairs of rows that are scored together: bounds the memory
_NAMES = 5  # of a side in a message


class PairScorer(Protocol):
    """Something fitted that scores pairs."""

    def joint(self, sample: Sample) -> Array:
        """Return the log ratio (n,) of the pairs of a sample, in nats."""


class Scorer(PairScorer, Protocol):
    """What is left of a trained estimator: it scores unpaired rows too."""

    def scores(self, sample: Sample, k: int, seed: int) -> Scores:
        """Return the scores of the pairs of a sample and of k unpaired partners of each."""
        ...

    def tables(self, sample: Sample, seed: int) -> Tables:
        """Return the scores of pairs of independent rows, each x of a pair with each y."""
        ...

    def table(self, x: Sample, y: Sample) -> Array:
        """Return the scores (m, k) of each x of a sample with each y of another."""
        ...

    def at(self, sample: Sample, x_rows: Places, y_rows: Places) -> Array:
        """Return the scores (m,) of some rows' x with other rows' y."""
        ...


@dataclass(frozen=True)
class FittedScorer:
    """What is left of a trained estimator to score pairs.

    Args:
        scales: How rows become features.
        critic: Scores them.
        offset: Subtracted from the scores, in nats.
    """

    scales: Scales
    critic: nn.Module
    offset: float = 0.0

    def joint(self, sample: Sample) -> Array:
        """Return the scores (n,) of the pairs of a sample."""
        return self.joint_of(*self.scales(sample))

    def joint_of(self, x: Features, y: Features) -> Array:
        """Return the scores (n,) of pairs of features."""
        with one_thread():
            joint = joint_scores(self.critic, x, y)
        return np.asarray(joint.double().numpy() - self.offset)

    def scores(self, sample: Sample, k: int, seed: int) -> Scores:
        """Return the scores of the pairs of a sample and of k unpaired partners of each."""
        x, y = self.scales(sample)
        partners = draw_partners(sample, k, seed)
        with one_thread():
            joint = joint_scores(self.critic, x, y)
            product = product_scores(self.critic, x, y, partners)
        return Scores(joint.double().numpy() - self.offset, product.double().numpy() - self.offset)

    def tables(self, sample: Sample, seed: int) -> Tables:
        """Return the scores of pairs of independent rows, each x of a pair with each y."""
        rows = row_pairs(sample, seed)
        x, y = self.scales(sample)
        found = []
        with one_thread():
            for some in torch.split(torch.from_numpy(rows).view(-1, PAIR_SIZE), _AT_ONCE):
                left, right = some.repeat_interleave(PAIR_SIZE, dim=1), some.repeat(1, PAIR_SIZE)
                found.append(joint_scores(self.critic, x[left.flatten()], y[right.flatten()]))
        scores = torch.cat(found) if rows.size else torch.empty(0)
        return scores.double().numpy().reshape(*rows.shape, PAIR_SIZE) - self.offset

    def table(self, x: Sample, y: Sample) -> Array:
        """Return the scores (m, k) of each x of a sample with each y of another."""
        return self.table_of(self.scales.of_x(x), self.scales.of_y(y))

    def at(self, sample: Sample, x_rows: Places, y_rows: Places) -> Array:
        """Return the scores (m,) of some rows' x with other rows' y."""
        x, y = self.scales(sample)
        return self.joint_of(x[torch.from_numpy(x_rows)], y[torch.from_numpy(y_rows)])

    def table_of(self, x: Features, y: Features) -> Array:
        """Return the scores (m, k) of each x with each y."""
        with one_thread():
            found = score_table(self.critic, x, y)
        return np.asarray(found.double().numpy() - self.offset)


@dataclass(frozen=True)
class PooledScorer:
    """A weighted mean of the ratios of experts.

    Args:
        experts: Score pairs.
        log_weights: (m,) of the experts.
        log_nothing: Log weight of a ratio of 1: x and y are independent.
        highest: Nats that no pair exceeds, since the rows of the fit could not show as many.
    """

    experts: tuple[FittedScorer, ...]
    log_weights: Array
    log_nothing: float
    highest: float = math.inf

    def joint(self, sample: Sample) -> Array:
        """Return the log ratio (n,) of the pairs of a sample, in nats."""
        return self._pooled([e.joint(sample) for e in self.experts], np.zeros(len(sample)))

    def scores(self, sample: Sample, k: int, seed: int) -> Scores:
        """Return the scores of the pairs of a sample and of k unpaired partners of each."""
        each, n = [e.scores(sample, k, seed) for e in self.experts], len(sample)
        product = np.zeros((n, min(k, n - 1)))
        return Scores(
            self._pooled([s.joint for s in each], np.zeros(n)),
            self._pooled([s.product for s in each], product),
        )

    def tables(self, sample: Sample, seed: int) -> Tables:
        """Return the scores of pairs of independent rows, each x of a pair with each y."""
        shape = *row_pairs(sample, seed).shape, PAIR_SIZE
        return self._pooled([e.tables(sample, seed) for e in self.experts], np.zeros(shape))

    def table(self, x: Sample, y: Sample) -> Array:
        """Return the scores (m, k) of each x of a sample with each y of another."""
        each = [e.table(x, y) for e in self.experts]
        return self._pooled(each, np.zeros((len(x), len(y))))

    def at(self, sample: Sample, x_rows: Places, y_rows: Places) -> Array:
        """Return the scores (m,) of some rows' x with other rows' y."""
        each = [e.at(sample, x_rows, y_rows) for e in self.experts]
        return self._pooled(each, np.zeros(len(x_rows)))

    def _pooled(self, each: Sequence[Array], nothing: Array) -> Array:
        weighted = [w + scores for w, scores in zip(self.log_weights, each, strict=True)]
        pooled = np.logaddexp.reduce([*weighted, nothing + self.log_nothing], axis=0)
        return np.asarray(np.minimum(pooled, self.highest))


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
        some = value.take(np.arange(1)) if isinstance(value, Source) else value
        names, categorical = columns_of(some)
        return cls(names, categorical) if all(names) else cls()


@dataclass(frozen=True)
class FoldEnsemble:
    """The models of all folds, of pairs of the same columns.

    Args:
        schema: Of the rows as they were given.
        x_kept: Columns of x that vary and that the models know; `None` for all.
        y_kept: The same of y.
        members: One for each fold; none where a side is constant, so that the log ratio is 0.
    """

    schema: Schema
    x_kept: Mask | None
    y_kept: Mask | None
    members: tuple[PairScorer, ...]

    @classmethod
    def of(cls, sample: Sample, members: Sequence[PairScorer]) -> Self:
        """Return the ensemble that was fitted to a sample without its constant columns."""
        kept = varying_columns(sample.x), varying_columns(sample.y)
        return cls(Schema.of(sample), *kept, tuple(members))

    def __call__(self, sample: Sample, x_levels: "_Levels", y_levels: "_Levels") -> Array:
        """Return the mean score (n,) of pairs, in nats."""
        x_names, y_names = self.schema.names
        x = _matched(sample.x, sample.x_names, x_names, x_levels)
        y = _matched(sample.y, sample.y_names, y_names, y_levels)
        sample = replace(sample, x=x[0], x_names=x[1], y=y[0], y_names=y[1])
        self.schema.check(sample)
        if not self.members:
            return np.zeros(len(sample))
        x, y = _selected(*x, self.x_kept), _selected(*y, self.y_kept)
        known = replace(sample, x=x[0], x_names=x[1], y=y[0], y_names=y[1])
        return np.asarray(np.mean([member.joint(known) for member in self.members], axis=0))


@dataclass(frozen=True)
class FittedModel:
    """What results carry.

    Args:
        sources: Columns of x, of y and, if anything is given, of that.
        whole: Scores x with y, or with y and what is given.
        known: Scores x with what is given, if anything is.
    """

    sources: tuple[ColumnNames, ...]
    whole: FoldEnsemble
    known: FoldEnsemble | None = None

    def log_ratio(self, x: Any, y: Any, given: Any = None, nan: NanPolicy = "raise") -> Array:
        """Return the log ratio (n,) of new rows, in nats; NaN for rows that are omitted."""
        if self.known is None and given is not None:
            raise DataError("nothing was given in the estimate: leave given out")
        if self.known is not None and given is None:
            raise DataError("the estimate was given z: pass given= (--given) for the new rows too")
        options = RowOptions(nan=nan)
        of_x, of_y, *of_given = self._levels(x, y, given)
        if self.known is None:
            sample = as_sample(x, y, options, least=1)
            found = self.whole(sample, of_x, of_y)
        else:
            sample, known, _ = as_samples_given(x, y, given, options, least=1)
            found = self.whole(sample, of_x, of_y + of_given[0])
            found = found - self.known(known, of_x, of_given[0])
        if not sample.dropped:
            return found
        everywhere = np.full(len(found) + sample.dropped, np.nan)
        everywhere[complete_rows(x, y, given)] = found
        return everywhere

    def _levels(self, *sides: Any) -> "list[_Levels]":
        names = "x", "y", "given"
        return [
            _Levels(name, source.categorical, ColumnNames.of(side).categorical)
            for name, source, side in zip(names, self.sources, sides, strict=False)
        ]


@dataclass(frozen=True)
class _Levels:
    """Which columns of a side are categories: in the fit, and in new rows."""

    side: str
    fitted: tuple[str, ...]
    new: tuple[str, ...]

    def __add__(self, other: "_Levels") -> "_Levels":
        return _Levels(self.side, self.fitted + other.fitted, self.new + other.new)


def _selected(a: Array, names: tuple[str, ...], kept: Mask | None) -> tuple[Array, tuple[str, ...]]:
    if kept is None:
        return a, names
    return a[:, kept], tuple(name for name, keep in zip(names, kept, strict=True) if keep)


def _matched(
    a: Array, names: tuple[str, ...], wanted: tuple[str, ...], levels: _Levels
) -> tuple[Array, tuple[str, ...]]:
    """Return rows with the columns in the order of the fit, where both have names."""
    if names == wanted or UNNAMED in (names[0], wanted[0]) or a.ndim > 2:
        return a, names
    if len(set(wanted)) < len(wanted):  # by position, or not at all
        return a, names
    position = {name: j for j, name in enumerate(names)}
    extra = [name for name in names if name not in wanted]
    unseen = [n for n in extra if _is_level(n, levels.fitted) and a[:, position[n]].any()]
    if unseen:
        raise DataError(
            f"{levels.side} has {unseen[0]}, a level that the fit never saw: leave those rows out"
        )
    missing = any(n not in position and not _is_level(n, levels.new) for n in wanted)
    if missing or any(not _is_level(n, levels.fitted) for n in extra):
        raise DataError(
            f"{levels.side} has columns {', '.join(names[:_NAMES])}; the fit had "
            f"{', '.join(wanted[:_NAMES])}: pass the same"
        )
    nothing = np.zeros(len(a))
    columns = [a[:, position[name]] if name in position else nothing for name in wanted]
    return np.stack(columns, axis=1), wanted


def _is_level(name: str, categories: Sequence[str]) -> bool:
    """Tell whether a column stands for a level of one of the categories."""
    prefixes = (printable(f"{category}=").removesuffix("…") for category in categories)
    return any(name.startswith(prefix) for prefix in prefixes)
