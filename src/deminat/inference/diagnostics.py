r"""What a run reveals about itself, and when it should not be believed.

- The normaliser $Z = E_{product}[e^f]$ is 1 if f is a log ratio, and so is $Z(x)$ of every x (see
  `estimators/normaliser.py`). Estimates of both are dominated by the rarest unpaired scores. Beyond
  some $\tfrac12 \log n$ nats these are not in the sample, and then only an alarm means something.
- A classifier is calibrated if of the pairs that it gives probability p, the share p is joint.
- Critics with much higher scores on their training pairs than on others have memorised those.
- A loss that was still falling when training ended promises a higher estimate.
- By themselves, n pairs can show about $\log n$ nats. What is above rests on the shape that was
  fitted; if y is a function of x, the truth is infinite. The same holds where every joint pair is
  told from every unpaired one.
- A mean score below the lower bound has missed something: the bound is reported in its place. None
  can be above the entropy of a side, which is known where few values are repeated.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import entropy

from ..data.sample import UNNAMED, Sample
from ..estimators.crossfit import CrossFit
from ..estimators.scores import Scores
from ..records import CalibrationBin, Diagnostics
from ..results import Caution, MIResult

__all__ = ["contradictions", "diagnose", "functions", "limited", "near_copies"]

_BINS = 10
_SIGMAS = 4.0
_OFF = 0.1  # of a normaliser that is worth a warning
_EXCESS = 0.05  # nats of log Z, and share of the estimate, that are worth one
_UNCALIBRATED = 0.03
_MEMORISED = 0.25  # of the estimate
_FEW = 10  # rows for each value of a side, so that its entropy is known
_FIRST = 1_000  # rows that show whether values are repeated at all
_COPIED = 200  # rows that show whether columns are copies
_NEARLY = 0.5  # share of equal values
_NEIGHBOURS = 2  # ranks between neighbours, where noise hides nothing
_UNPAIRED = 1 << 16  # unpaired scores that are used


def diagnose(
    result: MIResult, fit: CrossFit, count: int
) -> tuple[tuple[Caution, ...], Diagnostics]:
    """Return the warnings of a result that was read off cross-fitted critics, and its diagnostics.

    Args:
        result: The result.
        fit: Its scores.
        count: Effective number of rows.
    """
    bins = calibration(fit.scores)
    off = sum(b.share * abs(b.predicted - b.observed) for b in bins)
    checkable = result.mi <= math.log(count) / 2
    found = [
        *_normaliser(result, checkable, count),
        *_calibration(off, count),
        *_memorised(result, fit),
        *_still_falling(fit),
        *_separated(result, fit.scores, count),
    ]
    return tuple(found), replace(
        result.diagnostics,
        calibration=tuple(bins),
        calibration_error=off,
        normaliser_checkable=checkable,
    )


def contradictions(result: MIResult, sample: Sample) -> Iterator[Caution]:
    """Warn of a mean score below the lower bound, or above the entropy of a side."""
    bound = result.lower_bound
    if bound is not None and bound > max(result.mi, 0.0):
        yield Caution(
            "below_bound",
            f"the scores have a mean of {result.mi:.2f} nats, but there are at least {bound:.2f} "
            "with 95% confidence; the estimate is that bound",
            "Read it as a lower limit; more pairs, fewer columns or another critic may find more",
        )
    for side, rows in (("x", sample.x), ("y", sample.y)):
        most = _entropy(rows)
        if result.mi > most + 2 * result.standard_error:
            yield Caution(
                "entropy",
                f"{side} takes few values: the mutual information cannot exceed its entropy of "
                f"{most:.2f} nats",
                "Read the entropy as the upper limit; preset='auto', or more pairs, may do better",
            )


def near_copies(sample: Sample) -> Iterator[Caution]:
    """Warn of columns of measurements that are on both sides: then the information is infinite."""
    if sample.x.ndim > 2 or sample.y.ndim > 2:
        return
    places = [_measured(a, labels) for a, labels in _sides(sample)]
    few = [a[:_COPIED][:, of] for (a, _), of in zip(_sides(sample), places, strict=True)]
    for k, column in enumerate(few[1].T):
        equal = (few[0] == column[:, None]).mean(axis=0)
        if equal.size and equal.max() > _NEARLY:
            i, j = places[0][int(equal.argmax())], places[1][k]
            share = float((sample.x[:, i] == sample.y[:, j]).mean())
            yield Caution(
                "near_copies",
                f"{_named(sample.x_names, i, 'x')} and {_named(sample.y_names, j, 'y')} are equal "
                f"in {share:.0%} of the rows; the information may be infinite",
                "Leave one of them out, or add the noise that the measurement has",
            )
            return


def functions(result: MIResult, sample: Sample) -> Iterator[Caution]:
    """Warn where one column seems to be a function of the other: then the information is infinite.

    Rows whose x are neighbours then have neighbouring y. That cannot be told from more than some
    log n nats.
    """
    single = sample.x.shape[1:] == sample.y.shape[1:] == (1,)
    known = any(caution.code == "infinite" for caution in result.warnings)
    if known or not single or not all(len(_measured(a, labels)) for a, labels in _sides(sample)):
        return
    for first, second, names in ((sample.x, sample.y, "xy"), (sample.y, sample.x, "yx")):
        ranks = second[np.argsort(first[:, 0], kind="stable"), 0].argsort().argsort()
        if np.median(np.abs(np.diff(ranks))) <= _NEIGHBOURS:
            yield Caution(
                "infinite",
                f"{names[1]} seems to be a function of {names[0]}: neighbouring values of "
                f"{names[0]} have neighbouring values of {names[1]}, and the true value may be "
                "infinite",
                f"Report at least {result.lower_bound or 0.0:.2f} nats",
            )
            return


def _sides(sample: Sample) -> tuple[tuple[NDArray[np.float64], tuple[bool, ...]], ...]:
    return (sample.x, sample.x_discrete), (sample.y, sample.y_discrete)


def _measured(a: NDArray[np.float64], labels: tuple[bool, ...]) -> NDArray[np.int64]:
    """Return the columns (n, d) that are no labels and hardly repeat a value."""
    first = a[:_COPIED]
    repeats = np.array([2 * len(np.unique(column)) < len(first) for column in first.T])
    return np.flatnonzero(~repeats & ~np.array(labels or (False,) * a.shape[1]))


def _named(names: tuple[str, ...], column: int, side: str) -> str:
    """Return a column in words: the side alone, if it has but one without a name."""
    return side if names in ((), (UNNAMED,)) else f"{names[column]} of {side}"


def limited(result: MIResult, sample: Sample) -> MIResult:
    """Return a result between its lower bound and the entropy of a side, where that is known."""
    most = min(_entropy(sample.x), _entropy(sample.y))
    least = -math.inf if result.lower_bound is None else min(result.lower_bound, most)
    if least <= 0:  # it proves nothing, and estimates of 0 are as often below it as above
        least = -math.inf
    if result.interval is None or least <= result.mi <= max(result.mi, *result.interval) <= most:
        return result
    low, high = (min(end, most) for end in result.interval)
    mi = max(min(result.mi, most), least)
    pointwise = result.pointwise + (mi - result.mi)
    return replace(result, mi=mi, interval=(low, high), pointwise=pointwise)


def _entropy(rows: NDArray[np.float64]) -> float:
    """Return the entropy of rows (n, ...) in nats, infinite unless each value is repeated often."""
    rows = rows.reshape(len(rows), -1)
    if 2 * len(np.unique(rows[:_FIRST], axis=0)) > len(rows[:_FIRST]):
        return math.inf
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    if _FEW * len(counts) > len(rows):
        return math.inf
    bias = (len(counts) - 1) / (2 * len(rows))  # counts of a sample are too uneven
    return float(entropy(counts)) + bias


def calibration(scores: Scores) -> list[CalibrationBin]:
    """Return what the classifier predicts for held-out pairs, in bins, and what is observed."""
    joint, n = scores.joint, max(1, len(scores.product))
    product = scores.product[:, : max(1, _UNPAIRED // n)].ravel()
    predicted = expit(np.concatenate([joint, product]))
    truth = np.repeat([1.0, 0.0], [len(joint), len(product)])
    weight = np.where(truth == 1, 0.5 / len(joint), 0.5 / len(product))
    mixed = np.random.default_rng(0).permutation(len(predicted))  # so that ties favour neither
    order = mixed[np.argsort(predicted[mixed], kind="stable")]
    bins = np.minimum((np.cumsum(weight[order]) * _BINS).astype(int), _BINS - 1)
    shares = np.bincount(bins, weight[order], _BINS)
    sums = [np.bincount(bins, (weight * a)[order], _BINS) for a in (predicted, truth)]
    filled = shares > 0
    means = [(a[filled] / shares[filled]).tolist() for a in sums]
    return [CalibrationBin(*b) for b in zip(*means, shares[filled].tolist(), strict=True)]


def _normaliser(result: MIResult, checkable: bool, count: int) -> Iterator[Caution]:
    """Warn of scores that are no log ratios: for some x or y, or on average over all pairs.

    The first alarm is heard at any information: too few partners make log Z smaller, not larger.
    """
    d, scale = result.diagnostics, math.sqrt(result.n / count)
    excess = max(d.log_normaliser_x or 0.0, d.log_normaliser_y or 0.0)
    error = (d.log_normaliser_error or 0.0) * scale
    if excess > max(_EXCESS, _EXCESS * result.mi, _SIGMAS * error):
        side = "x" if excess == d.log_normaliser_x else "y"
        found = f"the mean of log Z({side}) over held-out rows is {excess:.2f} nats; it is 0"
    elif d.normaliser is None or d.normaliser_error is None or not checkable:
        return
    elif abs(d.normaliser - 1) > max(_OFF, _SIGMAS * d.normaliser_error * scale):
        spread = f"{d.normaliser:.2f} (s.e. {d.normaliser_error * scale:.2f})"
        found = f"the mean of exp f over unpaired pairs is {spread}; it is 1"
    else:
        return
    advice = "Trust the lower bound; more pairs, or another critic, may do better"
    yield Caution("normaliser", f"{found} for a true log ratio", advice)


def _calibration(off: float, count: int) -> Iterator[Caution]:
    if off > _UNCALIBRATED + 0.5 * math.sqrt(_BINS / count):  # sampling noise of a calibrated one
        yield Caution(
            "uncalibrated",
            f"probabilities of the classifier are off by {off:.0%} on average on held-out pairs",
            "Trust the lower bound; more pairs, or preset='auto', may do better",
        )


def _memorised(result: MIResult, fit: CrossFit) -> Iterator[Caution]:
    gap = 2 * fit.optimism
    if gap > max(_MEMORISED * abs(result.mi), _SIGMAS * result.standard_error):
        yield Caution(
            "overfit",
            f"scores of training pairs are {gap:.2f} nats above those of held-out pairs",
            "Read the estimate as a lower limit; more pairs would raise it",
        )


def _still_falling(fit: CrossFit) -> Iterator[Caution]:
    falling = sum(history.falling for history in fit.histories)
    if 2 * falling > len(fit.histories):
        yield Caution(
            "unfinished",
            f"the loss of {falling} of {len(fit.histories)} critics was still falling at the end",
            "Train longer: Training(steps=...), or a larger budget",
        )


def _separated(result: MIResult, scores: Scores, count: int) -> Iterator[Caution]:
    shown = math.log(count)
    if result.mi < shown and scores.joint.min() <= scores.product.max():
        return
    bound = result.lower_bound or 0.0
    yield Caution(
        "infinite",
        f"{count} pairs by themselves can show about {shown:.1f} nats; the rest depends on the "
        "shape that was fitted, and the true value may be infinite",
        f"Report at least {bound:.2f} nats; look for a column that is on both sides",
    )
