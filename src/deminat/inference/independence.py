r"""Is there anything at all? A permutation test whose level is exact.

If x and y are independent, any y may stand beside any x: under a critic that was trained on other
rows, the mean score of the pairs as they are is one among those of pairs that were permuted. With
$B$ permutations, $p = (1 + \#\{T^* \ge T\}) / (B + 1)$ is at most $\alpha$ with probability at
most $\alpha$, whatever the critic and whatever x and y are like. Critics come in a chain (see
`chain`), so that the p-values of its parts are independent; their normal quantiles are added up,
weighted by the roots of the numbers of rows (Stouffer), and the sum is exact again.

Rows of one group are moved together, to the place of a group of as many rows; of groups of unlike
sizes, the larger lose some rows first. Where rows have an order in time, y is shifted against x
around a circle, so that both keep their history. Such shifts resemble each other, and a few
hundred of them may stand for ten: so they are not counted, but the distance from their mean in
standard deviations is compared with Student's t, whose degrees of freedom are the number of shifts
over their own correlation time. There the level is not exact.

References:
    Phipson and Smyth (2010), Permutation p-values should never be zero.
    Stouffer et al. (1949). Kim and Ramdas (2024), on why folds in a circle are not enough.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.stats import norm
from scipy.stats import t as student

from ..errors import DataError
from ..inputs import LEAST_PAIRS, NanPolicy, Sample, as_sample
from ..results import IndependenceResult
from ..serial import correlation_time
from .chain import Link, chain

__all__ = ["independence_test", "judged"]

Rows = NDArray[np.int64]

_FEWEST = 20  # permutations or shifts to compare with
_STRATUM = 20  # groups of like size that are permuted among themselves, at least


def independence_test(
    x: Any,
    y: Any,
    *,
    groups: Any = None,
    order: Any = None,
    permutations: int = 999,
    seed: int = 0,
    nan: NanPolicy = "raise",
) -> IndependenceResult:
    """Test whether x tells anything about y.

    Args:
        x: Array, tensor, frame, series or list; (n,), (n, d) or images (n, c, h, w).
        y: The same number of rows, in the same order.
        groups: (n,) rows of one group, such as a subject's, are moved together.
        order: (n,) times, or `True` if rows are in the order of time.
        permutations: How many to compare with; the smallest p-value of a part is one over it.
        seed: One seed gives one answer.
        nan: `"raise"` an error on NaN and inf, or `"omit"` the pairs that hold one.

    Returns:
        An `IndependenceResult`: `.p_value`, `.statistic`, `.n`, `.warnings`; printed, one line.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=500)
        >>> bool(independence_test(x, x**2).p_value < 0.01)
        True
    """
    if permutations < _FEWEST:
        raise ValueError(f"permutations must be at least {_FEWEST}, got {permutations!r}")
    sample = as_sample(x, y, groups=groups, order=order, nan=nan, least=LEAST_PAIRS)
    sample = sample.without_constants()
    return judged(sample, chain(sample, seed), permutations, seed)


def judged(
    sample: Sample, links: Sequence[Link], permutations: int = 999, seed: int = 0
) -> IndependenceResult:
    """Test the independence of both sides of a checked sample, whose chain was trained."""
    if not links:
        return IndependenceResult(1.0, 0.0, len(sample), 0, sample.warnings)
    rng = np.random.default_rng(seed)
    parts = [(len(link), *_tried(link, permutations, rng)) for link in links]
    sizes, p_values, excesses = (np.array(column) for column in zip(*parts, strict=True))
    weights = np.sqrt(sizes / sizes.sum())
    p = float(norm.sf(weights @ norm.isf(p_values)))
    statistic = float(sizes @ excesses / sizes.sum())
    return IndependenceResult(p, statistic, len(sample), permutations, sample.warnings)


def _tried(link: Link, permutations: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-value of a part, and its mean score above that of permuted pairs, in nats."""
    if link.sample.times is not None:
        return _shifted(link, link.sample.times, link.sample.gap)
    rows, moved = _moves(link.sample, permutations, rng)
    left, right = link.left[rows], link.right[rows]
    seen = float((left * right).sum(axis=1).mean())
    null = np.array([float((left * right[to]).sum(axis=1).mean()) for to in moved])
    close = 1e-9 * (1 + abs(seen))  # sums in another order are the same sums
    return (1 + int((null >= seen - close).sum())) / (len(null) + 1), seen - float(null.mean())


def _moves(
    sample: Sample, permutations: int, rng: np.random.Generator
) -> tuple[Rows, Iterator[Rows]]:
    """Return the rows that are used, and for each permutation where their y comes from."""
    n = len(sample)
    if sample.labels is None:
        return np.arange(n), (rng.permutation(n) for _ in range(permutations))
    blocks = _blocks(sample.labels, rng)
    rows = np.concatenate([block.ravel() for block in blocks])
    return rows, (_permuted(blocks, rng) for _ in range(permutations))


def _shifted(link: Link, times: Rows, gap: int) -> tuple[float, float]:
    """Return the p-value of rows in time by shifting y around a circle, and the excess in nats."""
    n, rows = len(link), np.argsort(times)
    left, right = (rfft(half[rows], axis=0) for half in (link.left, link.right))
    means = irfft((left.conj() * right).sum(axis=1), n) / n  # of the scores, for each shift
    null = means[gap : n - gap + 1]
    if len(null) < _FEWEST:
        raise DataError(
            f"{n} rows in order, each like some {gap} around it, are too few to be shifted: "
            "collect a longer series"
        )
    apart = max(len(null) / correlation_time(null - null.mean()) - 1, 1.0)
    excess, spread = float(means[0] - null.mean()), float(null.std(ddof=1))
    if spread == 0:
        return 1.0, excess
    return float(student.sf(excess / spread / math.sqrt(1 + 1 / apart), apart)), excess


def _blocks(labels: Rows, rng: np.random.Generator) -> list[Rows]:
    """Return rows of groups (groups, size) in strata of like size, cut to the smallest of each."""
    codes = np.unique(labels, return_inverse=True)[1]
    by_group = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    by_group.sort(key=len, reverse=True)
    strata: list[list[Rows]] = [[]]
    for group in by_group:
        if len(strata[-1]) >= _STRATUM and len(group) < len(strata[-1][-1]):
            strata.append([])
        strata[-1].append(group)
    if len(strata) > 1 and len(strata[-1]) < _STRATUM:
        last = strata.pop()
        strata[-1] += last
    return [_cut(groups, rng) for groups in strata]


def _cut(groups: list[Rows], rng: np.random.Generator) -> Rows:
    """Return (groups, size) rows, as many of each as the smallest has."""
    size = min(map(len, groups))
    return np.stack([g if len(g) == size else rng.permutation(g)[:size] for g in groups])


def _permuted(blocks: list[Rows], rng: np.random.Generator) -> Rows:
    """Return where y comes from: for each place among the rows in use, another such place."""
    found, start = [], 0
    for block in blocks:
        places = start + np.arange(block.size).reshape(block.shape)
        found.append(places[rng.permutation(len(block))].ravel())
        start += block.size
    return np.concatenate(found)
