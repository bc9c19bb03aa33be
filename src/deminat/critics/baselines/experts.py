"""Experts in closed form: log ratios that compete in the pool of the default recipe.

An expert is a function from rows to fit to, and held-out rows, to baselines. To add one, write its
module and one line in `EXPERTS`; its class stands in `SAVED`, so that results can be saved.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...data.sample import Sample
from .additive import Additive, ColumnBasis
from .base import Baseline, Frames, log_ratio
from .classes import ClassNormals
from .columns import ColumnPairs
from .copula import GaussianCopula
from .curve import Curve, NoiseAround
from .ica import independent_frames
from .mixture import Mixture, View, mixture_on, views
from .table import Cells, Table

__all__ = ["EXPERTS", "SAVED", "Expert", "closed_form_experts", "is_continuous"]

Expert = Callable[[Sample, Sample], Iterable[Baseline]]

_SIZES = 3, 8, 16, 32, 64  # components of mixtures
_COLUMNS = 40  # of both sides, beyond which covariances of several components have too many entries
_SHARE = 0.3  # parameters of a mixture, at most, as a share of the values of all rows
_BETTER = 0.004  # nats by which a larger mixture must be better, or no more are fitted
_WORSE = 0.02  # ... in two columns, where they cost little, only if it is so much worse
_LEAST = 300  # rows for a mixture
_FREQUENT = 0.05  # share of the rows that makes a value frequent
_WIDEST = 100  # columns of both sides up to which pairs of columns are added up


def closed_form_experts(fitted: Sample, held: Sample) -> list[Baseline]:
    """Return all baselines of rows; what they need to choose is chosen by held-out rows."""
    return [found for expert in EXPERTS.values() for found in expert(fitted, held)]


def is_continuous(sample: Sample) -> bool:
    """Tell whether ties are rare in all columns. Repeated values have no density."""
    columns = (column for a in (sample.x, sample.y) for column in a.T)
    return all(len(np.unique(column)) > 0.9 * len(column) for column in columns)


def _copulas(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    yield from GaussianCopula.candidates(fitted.x, fitted.y)
    if len(fitted) >= _LEAST and is_continuous(fitted):
        frames = independent_frames(fitted.x, fitted.y)
        if frames is not None:
            yield from GaussianCopula.candidates(fitted.x, fitted.y, frames)


def _mixtures(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    """Yield mixtures of ever more components, in each view, while held-out scores rise."""
    columns = _columns(fitted)
    if len(fitted) < _LEAST or columns > _COLUMNS or not is_continuous(fitted):
        return
    for view in views(fitted.x, fitted.y, None):
        best = -np.inf
        for size in _SIZES:
            if size * (columns + 3) / 2 > _SHARE * len(fitted):
                break
            found = mixture_on(view, fitted.x, fitted.y, size)
            if found is None:
                continue
            yield found
            score = _held_mean(found, held)
            if score < best + _BETTER and (columns > 2 or score < best - _WORSE):
                break
            best = max(best, score)


def _columns(sample: Sample) -> int:
    return int(sample.x.shape[1] + sample.y.shape[1])


def _held_mean(mixture: Mixture, held: Sample) -> float:
    left, right = mixture.left(held.x), mixture.right(held.y)
    return float(log_ratio(left, right, mixture.components).mean())


def _tables(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    labels = fitted.are_labels()
    yield from Table.candidates(fitted.x, fitted.y, held.x, held.y, labels)


def _classes(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    yield from ClassNormals.candidates(fitted.x, fitted.y, fitted.are_labels())


def _sums(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    """Yield a sum over pairs of columns, if some values are frequent."""
    sides = fitted.x, fitted.y
    most = (np.unique(c, return_counts=True)[1].max() for a in sides for c in a.T)
    if 2 < _columns(fitted) <= _WIDEST and any(c > _FREQUENT * len(fitted) for c in most):
        found = Additive.fit(*sides)
        if found is not None:
            yield found


def _curves(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    if is_continuous(fitted):
        yield from NoiseAround.candidates(fitted.x, fitted.y, held.x, held.y)


def _pairs(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    if _columns(fitted) > 2:
        yield from ColumnPairs.candidates(fitted.x, fitted.y, held.x, held.y)


EXPERTS: dict[str, Expert] = {
    "copula": _copulas,
    "mixture": _mixtures,
    "table": _tables,
    "curve": _curves,
    "columns": _pairs,
    "classes": _classes,
    "sum": _sums,
}

# Dataclasses of which closed forms consist.
SAVED: tuple[type[Any], ...] = (
    *(Additive, Cells, ClassNormals, ColumnBasis, ColumnPairs, Curve, Frames, GaussianCopula),
    *(Mixture, NoiseAround, Table, View),
)
