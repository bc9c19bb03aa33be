r"""Tests of independence whose level is exact.

Single columns, and labels, are tested by their ranks and the indicators of their values: see
`rank_test`. Of independent rows of numbers the law of the statistic is known. Otherwise rows, or
groups of them, are permuted.

Several columns a side are tested by kernels of their rows and by the ranks of their columns (see
`kernel_test`). The statistic is compared with those of permuted rows. With $B$ permutations,
$p = (1 + \#\{T^* \ge T\}) / (B + 1)$ is at most $\alpha$ with probability at most $\alpha$,
whatever the statistic and whatever x and y are like.

Rows of one group are moved together, to the place of a group of as many rows. Of groups of unequal
sizes, the larger lose some rows first. (So sizes must not depend on x and y together.)

Where rows have an order in time, critics are trained in sequence (see `sequential`), so that the
p-values of the parts are independent. Their normal quantiles are added up, weighted by the roots of
the numbers of rows (Stouffer). The score of a part is the mean over its pairs. To test it, y is
shifted against x around a circle, so that both keep their history. Such shifts resemble each other,
and a few hundred of them may count for ten. So they are not counted: the distance from their mean
in standard deviations is compared with Student's t, whose degrees of freedom are the number of
shifts over their own correlation time. There the level is not exact.

References:
    Phipson and Smyth (2010), Permutation p-values should never be zero.
    Stouffer et al. (1949). Kim and Ramdas (2024), on why folds in a circle are not enough.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.stats import norm
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from ..data.dependence import correlation_time
from ..data.labels import is_one_label
from ..data.sample import LEAST_PAIRS, NanPolicy, RowOptions, Sample, as_sample, as_samples_given
from ..data.units import effective_rows
from ..errors import DataError
from ..results import Caution, IndependenceResult
from ..runtime.process import one_thread
from .conditional import conditional_test
from .kernel_test import Side, moved_statistics, side_of, turned_statistics
from .rank_test import Blocks, label_blocks, number_blocks, permuted_harmonics, rank_test
from .sequential import SequentialPart, sequential_parts

__all__ = ["independence_test", "permutation_test"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_FEWEST = 20  # permutations or shifts to compare with
_TAG = 0x7E57  # no other part of the library shuffles rows by this stream
_SMALL = 0.05  # the largest p-value that is of any use
_BINARY = 2  # values of a label whose order does not matter
_CLOSE = 1e-4  # what rounding in single precision may change of log H
_ENOUGH = 0.9  # of the rows are kept, that groups may be moved in pieces
_MOST_ROWS = 5_000  # whose groups are permuted one by one
_STRATUM = 20  # groups of like size that are permuted among themselves, at least


def independence_test(
    x: Any,
    y: Any = None,
    *,
    given: Any = None,
    groups: Any = None,
    order: Any = None,
    max_rows: int | None = None,
    permutations: int = 999,
    seed: int = 0,
    nan: NanPolicy = "raise",
) -> IndependenceResult:
    """Test whether x and y are independent.

    Args:
        x: Array, tensor, frame, series or list; (n,), (n, d) or images (n, c, h, w); or a dataset
            of pairs.
        y: The same number of rows, in the same order; nothing with a dataset.
        given: z, the same number of rows: test independence given z. That test is not exact: it
            is as good as regressions on z are.
        groups: (n,) rows of one group, such as a subject's, are moved together.
        order: (n,) times; `True` if rows are in the order of time, `False` if their order means
            nothing.
        max_rows: As of `estimate`.
        permutations: How many to compare with, at least 20; with `order` it does nothing.
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
    options = RowOptions(groups, order, nan, max_rows, seed)
    if given is not None:
        _, known, pair = as_samples_given(x, y, given, options, least=LEAST_PAIRS)
        pair, labels = pair.without_constants(), known.y_discrete
        return conditional_test(pair, known.y, z_discrete=labels, seed=seed, draws=permutations)
    sample = as_sample(x, y, options, least=LEAST_PAIRS).without_constants()
    parts = [] if sample.times is None else sequential_parts(sample, seed)
    return permutation_test(sample, parts, permutations, seed)


def permutation_test(
    sample: Sample, parts: Sequence[SequentialPart], permutations: int = 999, seed: int = 0
) -> IndependenceResult:
    """Test the independence of both sides of a checked sample.

    Args:
        sample: The pairs.
        parts: Of rows with an order, with critics that were trained in sequence.
        permutations: How many to compare with.
        seed: One seed gives one answer.
    """
    rng, n = np.random.default_rng([_TAG, seed]), len(sample)
    warnings = *sample.warnings, *_too_few(sample)
    if sample.is_constant():
        return IndependenceResult(1.0, 0.0, n, "one side is constant", warnings)
    if _are_single(sample):
        return _ranked(sample, permutations, rng, warnings)
    if sample.times is None:
        return _kernels_compared(sample, permutations, rng, warnings)
    if not parts:
        raise DataError("the rows in order are too few to be split: collect a longer series")
    tests = [(len(part), *_shifted(part)) for part in parts]
    sizes, p_values, excesses = (np.array(column) for column in zip(*tests, strict=True))
    weights = np.sqrt(sizes / sizes.sum())
    p = float(norm.sf(weights @ norm.isf(p_values)))
    return IndependenceResult(
        p, float(sizes @ excesses / sizes.sum()), n, "shifts in time", warnings
    )


def _are_single(sample: Sample) -> bool:
    """Tell whether rows without an order have one column or label a side."""
    sides = zip((sample.x, sample.y), sample.are_labels(), strict=True)
    single = (a.shape[1:] == (1,) or (labels and is_one_label(a)) for a, labels in sides)
    return sample.times is None and all(single)


def _ranked(
    sample: Sample, permutations: int, rng: np.random.Generator, warnings: tuple[Caution, ...]
) -> IndependenceResult:
    """Test single columns and labels by their ranks and the indicators of their values."""
    n, unordered = len(sample), [_is_unordered(sample, side) for side in (0, 1)]
    if sample.labels is None and not any(unordered):
        p, log_h = rank_test(sample.x[:, 0], sample.y[:, 0], rng)
        return IndependenceResult(p, log_h, n, "ranks", warnings, "log H")
    rows, moved = _moves(_blocks(sample.labels, n, rng), permutations, rng)
    x, y = (
        _blocks_of(a[rows], of_labels, rng)
        for a, of_labels in zip((sample.x, sample.y), unordered, strict=True)
    )
    found = permuted_harmonics(x, y, chain([np.arange(len(rows))], moved))
    p, compared = _p_value(float(found[0]), found[1:]), f"{permutations} permutations"
    return IndependenceResult(p, float(found[0]), n, compared, warnings, "log H")


def _is_unordered(sample: Sample, side: int) -> bool:
    """Tell whether a side is a label of more than two values."""
    a = (sample.x, sample.y)[side]
    return sample.are_labels()[side] and (a.shape[1] > 1 or len(np.unique(a)) > _BINARY)


def _blocks_of(a: Array, is_label: bool, rng: np.random.Generator) -> Blocks:
    """Return the features of rows (n, d) of a single column, or of the indicators of a label."""
    column = a[:, 0] if a.shape[1] == 1 else a.argmax(axis=1).astype(np.float64)
    return (label_blocks if is_label else number_blocks)(column, rng)


def _too_few(sample: Sample) -> Iterator[Caution]:
    """Warn where no p-value can be small."""
    count = effective_rows(sample)
    ways = math.factorial(min(count, 9))
    if sample.times is None and ways <= 1 / _SMALL:
        few = f"{count} groups can be permuted in {ways} ways"
        message = f"{few}, so that no p-value is below {1 / ways:.2g}"
        yield Caution("underpowered", message, "Collect more groups")


def _kernels_compared(
    sample: Sample, permutations: int, rng: np.random.Generator, warnings: tuple[Caution, ...]
) -> IndependenceResult:
    """Test several columns a side by kernels."""
    n = len(sample)
    with one_thread(), threadpool_limits(1):  # the same sums in every process
        found = _kernel_statistics(sample, permutations, rng)
    p = _p_value(float(found[0]), found[1:], close=_CLOSE)
    compared = f"{len(found) - 1} permutations"
    return IndependenceResult(p, float(found[0]), n, compared, warnings, "log H")


def _kernel_statistics(sample: Sample, permutations: int, rng: np.random.Generator) -> Array:
    """Return log H of the rows as they are, and of at least so many permutations."""
    blocks, least = _blocks(sample.labels, len(sample), rng), math.ceil((permutations + 1) / 2)
    large = _blocks(sample.labels, len(sample), rng, least)
    if min(map(len, large)) >= least and _rows_of(large) >= _ENOUGH * _rows_of(blocks):
        pieces = _pieces(large, least, rng)
        return turned_statistics(*_sides(sample, pieces.ravel(), rng), pieces.shape[1])
    rows, moved = _moves(_thinned(blocks, rng), permutations, rng)
    return moved_statistics(*_sides(sample, rows, rng), moved)


def _pieces(blocks: list[Rows], least: int, rng: np.random.Generator) -> Rows:
    """Return rows (pieces, length): each piece has the same number of groups of each block."""
    count = min(len(block) // (len(block) // least) for block in blocks)
    cut = [rng.permutation(b)[: count * (len(b) // least)].reshape(count, -1) for b in blocks]
    return np.hstack(cut)


def _thinned(blocks: list[Rows], rng: np.random.Generator) -> list[Rows]:
    """Return some groups at random of each block, if there are too many rows."""
    share = min(1.0, _MOST_ROWS / _rows_of(blocks))
    if share == 1:
        return blocks
    return [rng.permutation(block)[: math.ceil(share * len(block))] for block in blocks]


def _rows_of(blocks: list[Rows]) -> int:
    return sum(block.size for block in blocks)


def _sides(sample: Sample, rows: Rows, rng: np.random.Generator) -> tuple[Side, Side]:
    """Return what is compared of both sides, in some rows."""
    x, y = (side_of(a.reshape(len(a), -1)[rows], rng) for a in (sample.x, sample.y))
    return x, y


def _p_value(seen: float, null: Array, close: float = 1e-9) -> float:
    """Return the p-value, which counts ties as above: the safe side."""
    near = close * (1 + abs(seen))  # sums in another order differ by rounding
    return (1 + int((null >= seen - near).sum())) / (len(null) + 1)


def _moves(
    blocks: list[Rows], permutations: int, rng: np.random.Generator
) -> tuple[Rows, Iterator[Rows]]:
    """Return the rows that are used, and for each permutation where their y comes from."""
    rows = np.concatenate([block.ravel() for block in blocks])
    return rows, (_permuted(blocks, rng) for _ in range(permutations))


def _shifted(part: SequentialPart) -> tuple[float, float]:
    """Return the p-value of rows in time by shifting y around a circle, and the excess in nats."""
    n, gap = len(part), part.sample.gap
    rows = np.argsort(np.asarray(part.sample.times))
    left, right = (rfft(half[rows], axis=0) for half in (part.left, part.right))
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
        return 0.5, excess  # a critic without variance has no evidence
    p = float(student.sf(excess / spread / math.sqrt(1 + 1 / apart), apart))
    return min(max(p, 1e-12), 1 - 1e-12), excess


def _blocks(
    labels: Rows | None, n: int, rng: np.random.Generator, least: int = _STRATUM
) -> list[Rows]:
    """Return rows of groups (groups, size) in strata of like size, cut to the smallest of each.

    Args:
        labels: (n,) of groups; None where each row is one.
        n: Rows.
        rng: Chooses rows of larger groups.
        least: Groups of a stratum.
    """
    if labels is None:
        return [np.arange(n)[:, None]]
    codes = np.unique(labels, return_inverse=True)[1]
    by_group = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    by_group.sort(key=len, reverse=True)
    strata: list[list[Rows]] = [[]]
    for group in by_group:
        if len(strata[-1]) >= least and len(group) < len(strata[-1][-1]):
            strata.append([])
        strata[-1].append(group)
    if len(strata) > 1 and len(strata[-1]) < least:  # too few for a stratum of their own
        last = strata.pop()
        if _rows_left(strata[-1] + last) > _rows_left(strata[-1]):
            strata[-1] += last
    return [_cut(groups, rng) for groups in strata]


def _rows_left(groups: list[Rows]) -> int:
    return len(groups) * min(map(len, groups))


def _cut(groups: list[Rows], rng: np.random.Generator) -> Rows:
    """Return (groups, size) rows, as many of each as the smallest has."""
    size = min(map(len, groups))
    return np.stack([g if len(g) == size else rng.permutation(g)[:size] for g in groups])


def _permuted(blocks: list[Rows], rng: np.random.Generator) -> Rows:
    """Return where y comes from: for each place among the rows in use, another such place."""
    found, start = [], 0
    for block in blocks:
        places = np.arange(start, start + block.size).reshape(block.shape)
        found.append(rng.permutation(places).ravel())
        start += block.size
    return np.concatenate(found)
