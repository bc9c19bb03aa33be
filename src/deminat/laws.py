"""Does the estimate obey the laws of information, on these very data?

The truth is not known, but how it must change is (appendix A of the paper, for any data):

- independence: with y permuted, it is 0;
- symmetry: with x and y exchanged, it is the same;
- invariance: under monotone maps of columns, it is the same;
- data processing: with noise added to y, or columns left out, it is no larger;
- additivity: of rows concatenated two by two, it is twice as large, with half as many rows.

The tolerance for sampling noise and training error is part of the result. An estimator that passes
may still be wrong; one that fails is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .api import estimate
from .data.labels import Discrete
from .data.sample import LEAST_PAIRS, NanPolicy, RowOptions, Sample, as_sample, label_warnings
from .estimators.base import TrainedEstimator
from .estimators.registry import Method, Preset, estimator_for
from .results import Caution, MIResult
from .runtime.progress import AskedProgress, progress_of_part, shown

__all__ = ["Check", "check"]

Array = NDArray[np.float64]
Sides = tuple[Array, Array]
Flags = tuple[tuple[bool, ...], tuple[bool, ...]]  # for each column of x and of y

_TAG = 0xC4EC  # rows may have been drawn by the stream of the seed alone
_LEAST = 0.02  # nats that are always tolerated
_SHARE = 0.05  # of the estimate that is tolerated for training error
_FEWER = 0.10  # ... with half as many rows
_SIGMAS = 3.0


@dataclass(frozen=True)
class Check:
    """A law and whether it held.

    Args:
        law: Its name.
        change: What was done to the data.
        found: The estimate of the changed data, in nats.
        low: Its lower limit; minus infinity if there is none.
        high: Its upper limit.
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
        low = None if np.isinf(self.low) else self.low
        return {**asdict(self), "low": low, "unit": "nats", "passed": self.passed}


@dataclass(frozen=True)
class _Change:
    """Changed data, whose information is `times` that of the data, or less."""

    law: str
    words: str
    sides: Sides
    discrete: Flags
    times: int = 1
    or_less: bool = False
    keeps_rows: bool = True  # so that groups and order still hold

    @property
    def labels(self) -> list[str]:
        """The columns that are labels, so that all estimates read them alike."""
        pairs = zip("xy", self.discrete, strict=True)
        return [f"column {j} of {side}" for side, flags in pairs for j in np.flatnonzero(flags)]

    def limits(self, base: MIResult, found: MIResult) -> tuple[float, float]:
        """Return the limits of the estimate of the changed data, in nats."""
        noise = _SIGMAS * max(found.standard_error, base.standard_error if self.times else 0.0)
        expected, share = self.times * base.mi, _FEWER if self.times > 1 else _SHARE
        tolerance = max(max(1, self.times) * max(_LEAST, noise), share * abs(expected))
        return -np.inf if self.or_less else expected - tolerance, expected + tolerance


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
    discrete: Discrete = None,
    max_rows: int | None = None,
    n_jobs: int = 1,
    budget: float | None = None,
    progress: AskedProgress = None,
) -> tuple[MIResult, list[Check]]:
    """Return the estimate of the mutual information, and a check of each law on changed data.

    Args are those of `estimate`; `budget` is that of all estimates together. With `groups` or
    `order`, additivity is not checked.
    """
    options = RowOptions(groups, order, nan, max_rows, seed, discrete)
    sample = as_sample(x, y, options, least=LEAST_PAIRS).without_constants()
    changes = list(_changes(sample, seed))
    count = len(changes)
    sample_groups = None if sample.labels is sample.copies else sample.labels
    sample_order = order if sample.times is None else sample.times
    with shown(progress, "checking") as reported:
        results = [
            estimate(
                *change.sides,
                method=method,
                preset=preset,
                folds=folds,
                seed=seed,
                max_rows=len(sample),
                n_jobs=n_jobs,
                budget=None if budget is None else budget / count,
                progress=progress_of_part(reported, i, count),
                groups=sample_groups if change.keeps_rows else None,
                order=sample_order if change.keeps_rows else None,
                discrete=change.labels,
            )
            for i, change in enumerate(changes)
        ]
    trained = isinstance(estimator_for(method, preset, sample, seed), TrainedEstimator)
    labels = label_warnings([sample]) if discrete is None and trained else ()
    return _checked(changes, results, sample.warnings, labels)


def _checked(
    changes: Sequence[_Change],
    results: Sequence[MIResult],
    before: tuple[Caution, ...],
    after: tuple[Caution, ...],
) -> tuple[MIResult, list[Check]]:
    """Return the estimate of the data as they are, with further warnings, and the checks."""
    warnings = tuple(dict.fromkeys(before + results[0].warnings + after))
    base = replace(results[0], warnings=warnings)
    return base, [
        Check(change.law, change.words, result.mi, *change.limits(base, result))
        for change, result in zip(changes[1:], results[1:], strict=True)
    ]


def _changes(sample: Sample, seed: int) -> Iterator[_Change]:
    """Yield the data as they are, and changed for each law."""
    rng = np.random.default_rng([_TAG, seed])
    x, y = sample.x, sample.y
    of_x, of_y = both = sample.x_discrete, sample.y_discrete
    yield _Change("", "", (x, y), both)
    permuted = x, y[rng.permutation(len(y))]
    yield _Change("independence", "y permuted", permuted, both, times=0, keeps_rows=False)
    yield _Change("symmetry", "x and y exchanged", (y, x), (of_y, of_x))
    if x.ndim == y.ndim == 2:
        u, v = ((a - a.mean(axis=0)) / a.std(axis=0) for a in (x, y))
        mapped = u**3 + u, np.logaddexp(0, 2 * v)
        yield _Change("invariance", "columns cubed and skewed", mapped, both)
    noisy = x, y + rng.standard_normal(y.shape) * y.std(axis=0)
    yield _Change("data processing", "as much noise added to y", noisy, (of_x, ()), or_less=True)
    for name, side in (("x", x), ("y", y)):
        if side.ndim == 2 and side.shape[1] > 1:
            half = side.shape[1] // 2
            if name == "x":
                sides, flags = (x[:, :half], y), (of_x[:half], of_y)
            else:
                sides, flags = (x, y[:, :half]), (of_x, of_y[:half])
            words = f"half of the columns of {name}"
            yield _Change("data processing", words, sides, flags, or_less=True)
    if sample.labels is None and sample.times is None and len(x) >= 2 * LEAST_PAIRS:
        first, second = np.split(rng.permutation(len(x))[: len(x) // 2 * 2], 2)
        two_x, two_y = (np.concatenate([a[first], a[second]], axis=1) for a in (x, y))
        two, flags = (two_x, two_y), (2 * of_x, 2 * of_y)
        yield _Change("additivity", "rows concatenated two by two", two, flags, times=2)
