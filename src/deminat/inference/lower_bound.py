r"""A lower bound of the mutual information that is valid for any critic and any distribution.

For any function T of a pair, $I \ge 1 + E_{joint}[T] - E_{product}[e^T]$ (Nguyen, Wainwright and
Jordan), with equality at the log ratio. Rows that no critic was trained on are put into pairs. The
two joint and the two unpaired scores of such a pair of rows give one number W, whose mean is such a
bound, and pairs of rows are independent. T is the critic's score clipped to $\pm\tau$, so that W
cannot fall below $1 - \tau - e^\tau$. Then for any $\lambda$ small enough,

$$ e(m) = \prod_i (1 + \lambda (W_i - m)) $$

is an e-value for $E[W] \le m$: its mean is at most 1 at the true information, so that
$e(I) \ge 20$ happens in at most one of twenty runs, and every m with $e(m) \ge 20$ is refuted. The
smallest m that is not is the bound. The average of e-values is an e-value: over all $\lambda$ and
clips, and over cross-fitted critics, however they depend on each other. Those of critics in
sequence (see `sequential`) multiply. So nothing has to be chosen, and no union of events to be paid
for. It does what the empirical Bernstein bound does for bounded variables, without its constants.

References:
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting.
    Vovk and Wang (2021), E-values: calibration, combination and applications.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["lower_bound"]

Array = NDArray[np.float64]

_CLIPS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_SHARES = np.array([0.95, 0.8, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02, 0.01, 0.004])  # of lambda
_HALVINGS = 20
_FAR = 60.0  # nats that no number of pairs can show


def lower_bound(
    fitted: Sequence[Array], sequential: Sequence[Array] = (), level: float = 0.95
) -> float:
    """Return the lower bound, in nats.

    Args:
        fitted: (draws, pairs, 2, 2) log ratios of each x of a pair of rows with each y, by each
            cross-fitted critic on rows that it has not seen; the diagonal is joint. Pairs of rows
            are independent, draws of a pair need not be.
        sequential: The same of critics in sequence.
        level: Confidence.
    """
    folds, parts = ([_bounds(a) for a in tables if a.size] for tables in (fitted, sequential))
    enough = -math.log(1 - level)

    def refuted(m: float) -> bool:
        logs = [_log_mean([_log_e_value(w, m) for w in folds])] if folds else []
        logs += [sum(_log_e_value(w, m) for w in parts)] if parts else []
        return bool(logs) and _log_mean(logs) >= enough

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, _FAR
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _bounds(tables: Array) -> list[tuple[float, Array]]:
    """Return for each clip the least that W can be, and W (pairs,) above that.

    W is the mean over the draws of tables (draws, pairs, 2, 2).
    """
    found = []
    for clip in _CLIPS:
        clipped, floor = np.clip(tables, -clip, clip), 1 - clip - math.exp(clip)
        joint = clipped[..., 0, 0] + clipped[..., 1, 1]
        unpaired = np.exp(clipped[..., 0, 1]) + np.exp(clipped[..., 1, 0])
        found.append((floor, (1 + (joint - unpaired) / 2).mean(axis=0) - floor))
    return found


def _log_e_value(bounds: list[tuple[float, Array]], m: float) -> float:
    """Return the log of the e-value against an information of m, averaged over clips and shares."""
    ratios = (above / (m - floor) - 1 for floor, above in bounds)
    return _log_mean([np.log1p(np.multiply.outer(_SHARES, r)).sum(axis=1) for r in ratios])


def _log_mean(logs: Sequence[float] | Sequence[Array]) -> float:
    return float(logsumexp(logs)) - math.log(np.size(logs))
