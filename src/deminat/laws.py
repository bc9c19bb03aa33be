"""Does the estimate obey the laws of information, on these very data?

The truth is not known, but how it must change is (appendix A of the paper, for any data):

- independence: with y permuted there is nothing;
- symmetry: x tells of y what y tells of x;
- invariance: monotone maps of columns change nothing;
- data processing: with noise added to y, or columns left out, there is no more than before;
- additivity: of rows in pairs, side by side, there is twice as much, in half as many rows.

What is allowed for chance and for training is part of the answer. Not every estimator passes, and
one that does may still be wrong; one that fails is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .api import estimate
from .data.sample import LEAST_PAIRS, NanPolicy, Sample, as_sample
from .estimators.recipes import Preset
from .estimators.registry import Method
from .results import MIResult
from .runtime.progress import Progress, progress_of_part

__all__ = ["Check", "check"]

Array = NDArray[np.float64]
Sides = tuple[Array, Array]

_TAG = 0xC4EC  # rows may have been drawn by the stream of the seed alone
_LEAST = 0.02  # nats that are nothing
_SHARE = 0.05  # of the estimate that training may be off by
_FEWER = 0.10  # ... with half as many rows
_SIGMAS = 3.0


@dataclass(frozen=True)
class Check:
    """A law and what was found.

    Args:
        law: What it is called.
        change: What was done to the data.
        found: The estimate after it, in nats.
        low: What it must be at least; minus infinity if that does not matter.
        high: What it must be at most.
    """

    law: str
    change: str
    found: float
    low: float
    high: float

    @property
    def passed(self) -> bool:
        """Whether the law held."""
        return self.low <= self.found <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold, in nats."""
        return {
            "law": self.law,
            "change": self.change,
            "found": self.found,
            "low": None if np.isinf(self.low) else self.low,
            "high": self.high,
            "unit": "nats",
            "passed": self.passed,
        }


def check(
    x: Any,
    y: Any,
    *,
    method: Method = "demi",
    preset: Preset = "auto",
    folds: int = 5,
    seed: int = 0,
    nan: NanPolicy = "raise",
    groups: Any = None,
    order: Any = None,
    max_rows: int | None = None,
    n_jobs: int = 1,
    budget: float | None = None,
    progress: Progress | None = None,
) -> tuple[MIResult, list[Check]]:
    """Estimate the mutual information, and again of changed data; return both.

    Args are those of `estimate`; `budget` is that of all estimates together. With `groups` or
    `order`, rows are not put side by side.
    """
    rows = {"groups": groups, "order": order, "nan": nan, "least": LEAST_PAIRS}
    sample = as_sample(x, y, **rows, max_rows=max_rows, seed=seed).without_constants()
    rng = np.random.default_rng([_TAG, seed])
    changes = list(_changes(sample, rng))
    count = len(changes) + 1

    def measured(sides: Sides, i: int, **about: Any) -> MIResult:
        return estimate(
            *sides,
            method=method,
            preset=preset,
            folds=folds,
            seed=seed,
            max_rows=len(sample),
            n_jobs=n_jobs,
            budget=None if budget is None else budget / count,
            progress=progress_of_part(progress, i, count),
            **about,
        )

    groups = None if sample.labels is sample.copies else sample.labels
    about = {"groups": groups, "order": order if sample.times is None else sample.times}
    base = measured((sample.x, sample.y), 0, **about)
    base = replace(base, warnings=tuple(dict.fromkeys(sample.warnings + base.warnings)))
    found = []
    for i, change in enumerate(changes, start=1):
        result = measured(change.sides, i, **(about if change.keeps_rows else {}))
        found.append(Check(change.law, change.words, result.mi, *change.limits(base, result)))
    return base, found


@dataclass(frozen=True)
class _Change:
    law: str
    words: str
    sides: Sides
    limits: Callable[[MIResult, MIResult], tuple[float, float]]
    keeps_rows: bool = True


def _changes(sample: Sample, rng: np.random.Generator) -> Iterator[_Change]:
    """Yield what can be done to a sample."""
    x, y = sample.x, sample.y
    yield _Change(
        "independence", "y permuted", (x, y[rng.permutation(len(y))]), _nothing, keeps_rows=False
    )
    yield _Change("symmetry", "x and y exchanged", (y, x), _the_same)
    if x.ndim == y.ndim == 2:
        bent = "columns cubed and made skew"
        yield _Change("invariance", bent, (_cubed(x), _skewed(y)), _the_same)
    noise = rng.standard_normal(y.shape) * y.std(axis=0)
    yield _Change("data processing", "as much noise added to y", (x, y + noise), _no_more)
    for name, side in (("x", x), ("y", y)):
        if side.ndim == 2 and side.shape[1] > 1:
            half = side[:, : side.shape[1] // 2]
            sides = (half, y) if name == "x" else (x, half)
            yield _Change("data processing", f"half of the columns of {name}", sides, _no_more)
    if sample.labels is None and sample.times is None and len(x) >= 2 * LEAST_PAIRS:
        yield _Change("additivity", "rows side by side", _paired(x, y, rng), _twice)


def _allowed(base: MIResult, other: MIResult, share: float = _SHARE) -> float:
    """Return how far two estimates may be apart, in nats."""
    chance = _SIGMAS * max(base.standard_error, other.standard_error)
    return max(_LEAST, chance, share * abs(base.mi))


def _nothing(base: MIResult, other: MIResult) -> tuple[float, float]:
    allowed = max(_LEAST, _SIGMAS * other.standard_error)
    return -allowed, allowed


def _the_same(base: MIResult, other: MIResult) -> tuple[float, float]:
    allowed = _allowed(base, other)
    return base.mi - allowed, base.mi + allowed


def _no_more(base: MIResult, other: MIResult) -> tuple[float, float]:
    return -np.inf, base.mi + _allowed(base, other)


def _twice(base: MIResult, other: MIResult) -> tuple[float, float]:
    allowed = 2 * _allowed(base, other, _FEWER)
    return 2 * base.mi - allowed, 2 * base.mi + allowed


def _cubed(a: Array) -> Array:
    z = (a - a.mean(axis=0)) / a.std(axis=0)
    return np.asarray(z**3 + z)


def _skewed(a: Array) -> Array:
    z = (a - a.mean(axis=0)) / a.std(axis=0)
    return np.asarray(np.logaddexp(0, 2 * z))


def _paired(x: Array, y: Array, rng: np.random.Generator) -> Sides:
    """Return rows in pairs, their columns or channels side by side."""
    half = len(x) // 2
    rows = rng.permutation(len(x))
    first, second = rows[:half], rows[half : 2 * half]
    return tuple(np.concatenate([a[first], a[second]], axis=1) for a in (x, y))  # type: ignore[return-value]
