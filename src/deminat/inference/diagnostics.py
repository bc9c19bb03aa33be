r"""What a run tells of itself, and when it should not be believed.

- The normaliser $Z = E_{product}[e^f]$ is 1 if f is a log ratio. Its estimate is dominated by the
  rarest strangers: beyond some $\tfrac12 \log n$ nats they are not in the sample, and Z cannot be
  checked.
- A classifier is calibrated if of the pairs that it gives odds p, the share p belongs together.
- Critics that read much more in their own training pairs than in others learnt those by heart.
- A loss that was still falling when training ended promises a higher estimate.
- By themselves, n pairs can show about $\log n$ nats. What is above rests on the shape that was
  fitted; if y is a function of x, the truth is infinite. The same holds where every pair is told
  from every stranger.
- An estimate below what is certain has missed something, and none can be above the entropy of a
  side, which is known where few values are repeated.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import entropy

from ..data.sample import Sample
from ..estimators.crossfit import CrossFit
from ..estimators.scores import Scores
from ..results import Caution, MIResult

__all__ = ["contradictions", "diagnose"]

_BINS = 10
_SIGMAS = 4.0
_OFF = 0.1  # of a normaliser that is worth a word
_UNCALIBRATED = 0.03
_BY_HEART = 0.25  # of the estimate
_FEW = 10  # rows for each value of a side, so that its entropy is known
_LOOK = 1_000  # rows that tell whether values are repeated at all
_STRANGERS = 1 << 16  # unpaired scores that are looked at


def diagnose(
    result: MIResult, fit: CrossFit, count: int
) -> tuple[tuple[Caution, ...], dict[str, Any]]:
    """Return what to tell of a result that was read off cross-fitted critics, and its figures.

    Args:
        result: The result.
        fit: Its scores.
        count: How many of its pairs stand for themselves.
    """
    curve = calibration(fit.scores)
    off = sum(weight * abs(said - seen) for said, seen, weight in curve)
    checkable = result.mi <= math.log(count) / 2
    figures = {
        "calibration": [{"said": s, "seen": o, "share": w} for s, o, w in curve],
        "calibration_error": off,
        "normaliser_checkable": checkable,
    }
    found = [
        *_normaliser(result, checkable, count),
        *_calibration(off, count),
        *_by_heart(result, fit),
        *_still_falling(fit),
        *_separated(result, fit.scores, count),
    ]
    return tuple(found), figures


def contradictions(result: MIResult, sample: Sample) -> Iterator[Caution]:
    """Say where an estimate cannot be, from the lower bound and the entropy of either side."""
    bound = result.lower_bound
    if bound is not None and bound > max(result.mi, 0.0):
        yield Caution(
            "low",
            f"there are at least {bound:.2f} nats with 95% certainty, more than the estimate",
            "Take the lower bound; more pairs, fewer columns or another critic may find more",
        )
    for side, rows in (("x", sample.x), ("y", sample.y)):
        most = _entropy(rows)
        if result.mi > most + 2 * result.standard_error:
            yield Caution(
                "entropy",
                f"{side} takes few values, and nothing tells more about it than its entropy of "
                f"{most:.2f} nats",
                "Take the entropy for the most there can be; preset='auto', or more pairs, may "
                "do better",
            )


def _entropy(rows: NDArray[np.float64]) -> float:
    """Return the entropy of rows (n, ...) in nats, infinite unless each value is repeated often."""
    rows = rows.reshape(len(rows), -1)
    if 2 * len(np.unique(rows[:_LOOK], axis=0)) > len(rows[:_LOOK]):
        return math.inf
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    if _FEW * len(counts) > len(rows):
        return math.inf
    chance = (len(counts) - 1) / (2 * len(rows))  # that counts of a sample are too uneven by
    return float(entropy(counts)) + chance


def calibration(scores: Scores) -> list[tuple[float, float, float]]:
    """Return for bins of held-out pairs what the classifier said, what is so, and their share."""
    joint, product = scores.joint, _some(scores.product)
    said = expit(np.concatenate([joint, product]))
    truth = np.repeat([1.0, 0.0], [len(joint), len(product)])
    weight = np.where(truth == 1, 0.5 / len(joint), 0.5 / len(product))
    mixed = np.random.default_rng(0).permutation(len(said))  # so that ties favour neither kind
    order = mixed[np.argsort(said[mixed], kind="stable")]
    bins = np.minimum((np.cumsum(weight[order]) * _BINS).astype(int), _BINS - 1)
    shares = np.bincount(bins, weight[order], _BINS)
    sums = [np.bincount(bins, (weight * a)[order], _BINS) for a in (said, truth)]
    filled = shares > 0
    columns = [(a[filled] / shares[filled]).tolist() for a in sums]
    return list(zip(*columns, shares[filled].tolist(), strict=True))


def _normaliser(result: MIResult, checkable: bool, count: int) -> Iterator[Caution]:
    z, error = (result.diagnostics.get(key, math.nan) for key in ("normaliser", "normaliser_error"))
    error *= math.sqrt(result.n / count)
    if checkable and abs(z - 1) > max(_OFF, _SIGMAS * error):
        yield Caution(
            "normaliser",
            f"the mean of exp f over unpaired pairs is {z:.2f} (s.e. {error:.2f}), and that of a "
            "log ratio is 1",
            "Trust the lower bound; more pairs, or another critic, may do better",
        )


def _calibration(off: float, count: int) -> Iterator[Caution]:
    if off > _UNCALIBRATED + 0.5 * math.sqrt(_BINS / count):  # what chance does to a right one
        yield Caution(
            "uncalibrated",
            f"what the classifier says is off by {off:.0%} on average on pairs new to it",
            "Trust the lower bound; more pairs, or preset='auto', may do better",
        )


def _by_heart(result: MIResult, fit: CrossFit) -> Iterator[Caution]:
    gap = 2 * fit.optimism
    if gap > max(_BY_HEART * abs(result.mi), _SIGMAS * result.standard_error):
        yield Caution(
            "overfit",
            f"critics read {gap:.2f} nats more in the pairs that they were trained on",
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
        f"{count} pairs by themselves can show about {shown:.1f} nats; what is above rests on "
        "the shape that was fitted, and may be infinite",
        f"Say that it is at least {bound:.2f} nats; look for a column that stands on both sides",
    )


def _some(product: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a few columns of scores (n, k), flat."""
    columns = max(1, min(product.shape[1], _STRANGERS // max(1, len(product))))
    return product[:, :columns].ravel()
