"""Experts in closed form: log ratios that compete in the pool of the default recipe.

An expert is a function from rows to fit to, and held-out rows, to baselines. To add one, write its
module and one line in `EXPERTS`; its class stands in `SAVED`, so that results can be saved.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...data.transforms import Array
from .additive import Additive, ColumnBasis
from .base import Baseline, Frames, log_ratio
from .classes import ClassNormals
from .copula import GaussianCopula
from .ica import independent_frames
from .mixture import Mixture, View, mixture_on, views
from .table import Cells, Table

__all__ = ["EXPERTS", "SAVED", "Expert", "closed_form_experts", "is_continuous"]

Expert = Callable[[Array, Array, Array, Array], Iterable[Baseline]]

_SIZES = 3, 8, 16, 32, 64  # components of mixtures
_COLUMNS = 40  # of both sides, beyond which covariances of several components have too many entries
_SHARE = 0.3  # parameters of a mixture, at most, as a share of the values of all rows
_BETTER = 0.004  # nats by which a larger mixture must be better, or no more are fitted
_WORSE = 0.02  # ... in two columns, where they cost little, only if it is so much worse
_LEAST = 300  # rows for a mixture
_FREQUENT = 0.05  # share of the rows that makes a value frequent
_WIDEST = 100  # columns of both sides up to which pairs of columns are added up


def closed_form_experts(x: Array, y: Array, x_held: Array, y_held: Array) -> list[Baseline]:
    """Return all baselines of rows x (n, dx), y (n, dy)."""
    return [found for expert in EXPERTS.values() for found in expert(x, y, x_held, y_held)]


def is_continuous(a: Array) -> bool:
    """Tell whether ties are rare in all columns. Repeated values have no density."""
    return all(len(np.unique(column)) > 0.9 * len(column) for column in a.T)


def _copulas(x: Array, y: Array, x_held: Array, y_held: Array) -> Iterator[Baseline]:
    yield from GaussianCopula.candidates(x, y)
    if len(x) >= _LEAST and is_continuous(x) and is_continuous(y):
        frames = independent_frames(x, y)
        if frames is not None:
            yield from GaussianCopula.candidates(x, y, frames)


def _mixtures(x: Array, y: Array, x_held: Array, y_held: Array) -> Iterator[Baseline]:
    """Yield mixtures of ever more components, in each view, while held-out scores rise."""
    columns = x.shape[1] + y.shape[1]
    if len(x) < _LEAST or columns > _COLUMNS or not (is_continuous(x) and is_continuous(y)):
        return
    for view in views(x, y, None):
        best = -np.inf
        for size in _SIZES:
            if size * (columns + 3) / 2 > _SHARE * len(x):
                break
            found = mixture_on(view, x, y, size)
            if found is None:
                continue
            yield found
            score = _held_mean(found, x_held, y_held)
            if score < best + _BETTER and (columns > 2 or score < best - _WORSE):
                break
            best = max(best, score)


def _held_mean(mixture: Mixture, x: Array, y: Array) -> float:
    return float(log_ratio(mixture.left(x), mixture.right(y), mixture.components).mean())


def _tables(x: Array, y: Array, x_held: Array, y_held: Array) -> Iterator[Baseline]:
    yield from Table.candidates(x, y, x_held, y_held)


def _classes(x: Array, y: Array, x_held: Array, y_held: Array) -> Iterator[Baseline]:
    yield from ClassNormals.candidates(x, y)


def _sums(x: Array, y: Array, x_held: Array, y_held: Array) -> Iterator[Baseline]:
    """Yield a sum over pairs of columns, if some values are frequent."""
    columns = x.shape[1] + y.shape[1]
    most = (np.unique(c, return_counts=True)[1].max() for a in (x, y) for c in a.T)
    if 2 < columns <= _WIDEST and any(count > _FREQUENT * len(x) for count in most):
        found = Additive.fit(x, y)
        if found is not None:
            yield found


EXPERTS: dict[str, Expert] = {
    "copula": _copulas,
    "mixture": _mixtures,
    "table": _tables,
    "classes": _classes,
    "sum": _sums,
}

# Dataclasses of which closed forms consist.
SAVED: tuple[type[Any], ...] = (
    *(Additive, Cells, ClassNormals, ColumnBasis, Frames, GaussianCopula, Mixture, Table, View),
)
