"""Experts in closed form: log ratios that compete in the pool of the default recipe.

An expert is a function from rows to fit to, and held-out rows, to baselines. To add one, write its
module and one line in `EXPERTS`; its class stands in `SAVED`, so that results can be saved.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from ...data.sample import Sample
from .additive import Additive, ColumnBasis
from .base import Baseline, Frames, log_ratio
from .classes import ClassNormals
from .columns import ColumnPairs
from .copula import GaussianCopula
from .curve import Curve, NoiseAround
from .elliptical import Elliptical, StudentRanks
from .hidden import Coded, HiddenClasses
from .ica import independent_frames
from .mixture import Mixture, View, mixture_on, views
from .table import Cells, Table

__all__ = ["EXPERTS", "SAVED", "Expert", "closed_form_experts", "is_continuous"]

Expert = Callable[[Sample, Sample], Iterable[Baseline]]

_SIZES = 3, 8, 16, 32, 64  # components of mixtures
_FINER = 2, 3, 4, 6, 8, 12, 16, 24, 32  # ... of many columns, where each one too many costs much
_COLUMNS = 60  # of both sides, beyond which covariances of several components have too many entries
_NOT_FEW = 8  # columns of both sides up to which mixtures do as well as hidden classes
_MANY = 400  # columns of both sides up to which classes cost little
_SHARE = 0.3  # parameters of a mixture, at most, as a share of the values of all rows
_BETTER = 0.004  # nats by which a larger mixture must be better, or no more are fitted
_WORSE = 0.02  # ... in two columns, where they cost little, only if it is so much worse
_BEHIND = 0.9  # share of what a copula knows that a mixture of many columns must know
_LEAST = 100  # rows for a mixture or hidden classes
_LEAST_TURNED = 300  # ... for independent components, or sizes
_FREQUENT = 0.05  # share of the rows that makes a value frequent
_WIDEST = 100  # columns of both sides up to which pairs of columns are added up


def closed_form_experts(fitted: Sample, held: Sample) -> list[Baseline]:
    """Return all baselines of rows; what they need to choose is chosen by held-out rows."""
    found: list[Baseline] = []
    for expert in EXPERTS.values():
        # Of columns that determine each other some have no density, and what is left suffices.
        with suppress(np.linalg.LinAlgError):
            found.extend(expert(fitted, held))
    return found


def is_continuous(sample: Sample, but_labels: bool = False) -> bool:
    """Tell whether ties are rare in all columns, or in all but labels.

    Repeated values have no density.
    """
    sides = (sample.x, sample.x_discrete), (sample.y, sample.y_discrete)
    columns = [(c, label) for a, labels in sides for c, label in zip(a.T, labels, strict=True)]
    return all(
        (but_labels and label) or len(np.unique(column)) > 0.9 * len(column)
        for column, label in columns
    )


def _copulas(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    yield from GaussianCopula.candidates(fitted.x, fitted.y)
    if len(fitted) >= _LEAST_TURNED and is_continuous(fitted):
        frames = independent_frames(fitted.x, fitted.y)
        if frames is not None:
            yield from GaussianCopula.candidates(fitted.x, fitted.y, frames)


def _mixtures(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    """Yield mixtures of ever more components, in each view, while held-out scores rise.

    Of many columns they take long, and are given up if the first knows far less than a copula.
    """
    columns = _columns(fitted)
    if len(fitted) < _LEAST or columns > _COLUMNS or not is_continuous(fitted):
        return
    known = _copula_score(fitted, held) if columns > _NOT_FEW else 0.0
    for view in views(fitted.x, fitted.y, None):
        best = -np.inf
        for size in _SIZES if columns <= _NOT_FEW else _FINER:
            if size * (columns + 3) / 2 > _SHARE * len(fitted):
                break
            found = mixture_on(view, fitted.x, fitted.y, size)
            if found is None:
                continue
            yield found
            score = _held_mean(found, held)
            if score < _BEHIND * known:
                return
            if score < best + _BETTER and (columns > 2 or score < best - _WORSE):
                break
            best = max(best, score)


def _ellipticals(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    several = 2 < _columns(fitted) <= _MANY and len(fitted) >= _LEAST_TURNED
    if several and is_continuous(fitted):
        yield from Elliptical.candidates(fitted.x, fitted.y, held.x, held.y)


def _columns(sample: Sample) -> int:
    return int(sample.x.shape[1] + sample.y.shape[1])


def _copula_score(fitted: Sample, held: Sample) -> float:
    """Return the mean held-out score of a copula, in nats."""
    copula = GaussianCopula.fit(fitted.x, fitted.y)
    return float(log_ratio(copula.left(held.x), copula.right(held.y)).mean())


def _held_mean(mixture: Mixture, held: Sample) -> float:
    left, right = mixture.left(held.x), mixture.right(held.y)
    return float(log_ratio(left, right, mixture.components).mean())


def _hidden(fitted: Sample, held: Sample) -> Iterator[Baseline]:
    several = _NOT_FEW < _columns(fitted) <= _MANY
    if several and len(fitted) >= _LEAST and is_continuous(fitted, but_labels=True):
        known, labels = _copula_score(fitted, held), (fitted.x_discrete, fitted.y_discrete)
        yield from HiddenClasses.candidates(fitted.x, fitted.y, labels, held.x, held.y, known)


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
    "elliptical": _ellipticals,
    "mixture": _mixtures,
    "hidden": _hidden,
    "table": _tables,
    "curve": _curves,
    "columns": _pairs,
    "classes": _classes,
    "sum": _sums,
}

# Dataclasses of which closed forms consist.
SAVED: tuple[type[Any], ...] = (
    *(Additive, Cells, ClassNormals, Coded, ColumnBasis, ColumnPairs, Curve, Elliptical, Frames),
    *(GaussianCopula, HiddenClasses, Mixture, NoiseAround, StudentRanks, Table, View),
)
