r"""A 95% interval that allows for training error, not only for the spread of pairs.

Three things keep an estimate from the truth, and each leaves a trace:

- sampling noise in the pairs that are scored: the standard error, or the scatter between folds if
  that is clearly larger;
- sampling noise in the pairs that critics were trained on. Half the gap between training and
  held-out scores is added to the estimate (see `crossfit`). This is an expansion to first order,
  which may be off by half as much below and as much above. Networks may have lost twice as much
  more for good;
- what no critic found. Nothing shows it. A baseline in closed form is nearly exact where it
  suffices, and then several kinds agree. Where one is ahead of all others, as much as its lead may
  be missing, up to some share of the estimate. Of what only networks found, some 15% may be
  missing.

Of single columns, neighbours tell what critics missed (see `neighbours`). Then the last is known up
to the error of the neighbours, and twice the lead: at an edge they are too coarse as well.

Where the interval reaches down to 0 it ends no lower than what n pairs may hide: a correlation is
detected at the 5% level in 95 of 100 samples only if $n \rho^2 \ge (1.96 + 1.64)^2 = 13$, which are
$6.5 / n$ nats.

The first is two-sided, the last one-sided: critics that are evaluated on new pairs find too little,
not too much. They are added up, not their squares, since biases do not cancel. The interval
never ends below the lower bound. The factors were chosen on samples of benchmark tasks that report
nothing. `deminat bench trust` measures how often the interval covers the truth, by family, for
5,000 pairs and more, 20 columns a side and 3 nats at most: the validated range. Outside of it a
result carries the warning `unvalidated`.
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

_ABOVE, _BELOW = 1.0, 0.5  # corrections by which the truth may be higher, and lower
_LOST = 2.0  # ... higher still, if networks found all of it
_UNFOUND = 0.15  # of what networks found
_MOST_LEAD = 0.06  # of the estimate, that closed forms may have missed
_COARSE = 2.0  # leads, of single columns: where one is ahead, neighbours are too coarse as well
_OF_NEIGHBOURS = 1.5  # standard errors that neighbours claim, by which they are off in few rows
_HIDDEN = 6.5  # nats that pairs may hide, times their number
_PAIRS, _COLUMNS, _NATS = 5_000, 20, 3.0  # the validated range


def interval(
    result: MIResult, fit: CrossFit, count: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the ends of the interval, in nats.

    Args:
        result: The estimate, with its lower bound.
        fit: What it was read off.
        count: Effective number of rows.
        level: Probability of covering the truth.
    """
    noise = _sampling_noise(result.standard_error, fit.fold_means, level)
    below, above = _biases(result.mi, fit, level)
    low, high = result.mi - noise - below, result.mi + noise + above
    hidden = _HIDDEN / count if low <= 0 else 0.0
    return max(0.0, low), max(high, hidden, result.lower_bound or 0.0)


def _biases(mi: float, fit: CrossFit, level: float) -> tuple[float, float]:
    """Return by how much the truth may be below and above an estimate without sampling noise."""
    lead, most = float(np.mean(fit.leads)), _MOST_LEAD * max(0.0, mi)
    if fit.neighbours is not None:
        error = _OF_NEIGHBOURS * fit.neighbours.error * float(norm.ppf((1 + level) / 2))
        return error / 2, error + min(_COARSE * lead, most)
    correction = abs(fit.optimism)
    learnt = max(0.0, mi - max(0.0, float(np.mean(fit.baseline_means))))
    share = min(1.0, learnt / mi) if mi > 0 else 1.0
    lead = min(lead, most)
    above = (_ABOVE + _LOST * share) * correction + _UNFOUND * learnt + lead
    return _BELOW * correction, above


def _sampling_noise(error: float, fold_means: Sequence[float], level: float) -> float:
    """Return 1.96 standard errors, or the scatter of folds if that is clearly larger."""
    upper, folds = (1 + level) / 2, len(fold_means)
    scatter = float(np.std(fold_means, ddof=1)) / math.sqrt(folds)
    if scatter**2 <= error**2 * float(chi2.ppf(0.95, folds - 1)) / (folds - 1):
        return float(norm.ppf(upper)) * error
    return float(student.ppf(upper, folds - 1)) * scatter


def range_warnings(result: MIResult, sample: Sample, is_validated: bool) -> Iterator[Caution]:
    """Warn where the coverage of the interval was not measured.

    Args:
        result: The estimate.
        sample: All pairs.
        is_validated: Whether the recipe is the one that was measured.
    """
    count = effective_rows(sample)
    columns = max(math.prod(a.shape[1:]) for a in (sample.x, sample.y))
    rows = f"{count:,} pairs" if count == len(sample) else f"about {count:,} effective rows"
    checks = {
        rows: count < _PAIRS,
        f"{columns} columns": columns > _COLUMNS,
        f"{result.mi:.1f} nats": result.mi > _NATS,
        "another recipe than the default": not is_validated,
    }
    if outside := [words for words, is_outside in checks.items() if is_outside]:
        # The p-value is not exact for dependent rows, nor given z, where there is no lower bound.
        serial = any(caution.code == "autocorrelated" for caution in result.warnings)
        exact = result.lower_bound is not None and not serial
        yield Caution(
            "unvalidated",
            f"the interval is unvalidated here: {', '.join(outside)}; its validated range is "
            f"{_PAIRS:,} pairs or more, at most {_COLUMNS} columns a side and {_NATS:g} nats, by "
            "the default recipe",
            "Read it as a rough guide" + ("; p-value and lower bound are valid here" * exact),
        )
