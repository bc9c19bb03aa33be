r"""Where the truth may be: an interval that allows for training, not only for the spread of pairs.

Three things keep an estimate from the truth, and each leaves a trace:

- chance in the pairs that are scored: the standard error, or the scatter between folds if that is
  clearly larger;
- chance in the pairs that critics were trained on. Half of what those read above others is added to
  the estimate (see `crossfit`): it is an expansion to first order, and may be off by as much as
  itself in both directions, and where much was lost, twice as much more is lost for good;
- what no critic found. Nothing shows it. What stands in closed form is nearly exact where it
  suffices; of what only networks found, some 15% may be missing.

Where the interval reaches down to 0 it ends no lower than what n pairs may hide: a correlation is
seen at the 5% level in 95 of 100 samples only if $n \rho^2 \ge (1.96 + 1.64)^2 = 13$, which are
$6.5 / n$ nats.

The first is two-sided, the last one-sided: critics that are tried on new pairs find too little, not
too much. The three are added up, not their squares, since biases do not cancel. The interval never
ends below the lower bound. The factors were chosen on samples of benchmark tasks that report
nothing; `deminat bench trust` measures how often the interval covers the truth, by family, for
5,000 pairs and more, 20 columns a side and 3 nats at most. Outside of that it carries the warning
`range`.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import chi2, norm
from scipy.stats import t as student

from ..data.sample import Sample
from ..data.units import effective_rows
from ..estimators.crossfit import CrossFit
from ..results import Caution, MIResult

__all__ = ["interval", "range_warnings"]

_LOST = 3.0  # corrections by which the truth may be higher
_GAINED = 1.0  # ... and lower
_UNFOUND = 0.15  # of what networks found
_HIDDEN = 6.5  # nats that pairs may hide, times their number

_PAIRS, _COLUMNS, _NATS = 5_000, 20, 3.0


def interval(
    result: MIResult, fit: CrossFit, count: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the nats between which the truth should be, with a probability of `level`.

    Args:
        result: The estimate, with its lower bound.
        fit: What it was read off.
        count: Independent observations.
        level: Of the interval.
    """
    chance = _chance(result.standard_error, fit.fold_means, level)
    correction = abs(fit.optimism)
    learnt = max(0.0, result.mi - float(np.mean(fit.baseline_means)))
    low = result.mi - chance - _GAINED * correction
    high = result.mi + chance + _LOST * correction + _UNFOUND * learnt
    hidden = _HIDDEN / count if low <= 0 else 0.0
    return max(0.0, low), max(high, hidden, result.lower_bound or 0.0)


def _chance(error: float, fold_means: Sequence[float], level: float) -> float:
    """Return 1.96 standard errors, or as much of the scatter of folds if that is clearly more."""
    upper, folds = (1 + level) / 2, len(fold_means)
    scatter = float(np.std(fold_means, ddof=1)) / math.sqrt(folds)
    if scatter**2 <= error**2 * float(chi2.ppf(0.95, folds - 1)) / (folds - 1):
        return float(norm.ppf(upper)) * error
    return float(student.ppf(upper, folds - 1)) * scatter


def range_warnings(result: MIResult, sample: Sample, is_default: bool = True) -> Iterator[Caution]:
    """Say so where coverage was not measured."""
    count = effective_rows(sample)
    columns = max(math.prod(a.shape[1:]) for a in (sample.x, sample.y))
    outside = [
        words
        for words, is_so in {
            f"{count} pairs": count < _PAIRS,
            f"{columns} columns": columns > _COLUMNS,
            f"{result.mi:.1f} nats": result.mi > _NATS,
            "this recipe": not is_default,
        }.items()
        if is_so
    ]
    if outside:
        # Rows that depend on each other, and what is given, have p-values of another kind.
        exact = result.lower_bound is not None and not _is_serial(result)
        yield Caution(
            "range",
            f"the interval was not tried for {' and '.join(outside)}, only for at least "
            f"{_PAIRS:,} pairs, at most {_COLUMNS} columns a side and {_NATS:g} nats, by the "
            "default recipe",
            "Take it for a rough guess"
            + ("; the p-value and the lower bound hold here too" if exact else ""),
        )


def _is_serial(result: MIResult) -> bool:
    return any(caution.code == "autocorrelated" for caution in result.warnings)
