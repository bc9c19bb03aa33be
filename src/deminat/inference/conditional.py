r"""Mutual information given z, and a test of independence given z.

By the chain rule $I(x; y \mid z) = I(x; y, z) - I(x; z)$. Both are estimated in the same folds, so
that much of their sampling noise cancels: the standard error is that of the differences row by row.
Their biases do not cancel, and the interval allows for those of both.

The test. If x and y are independent given z, then what z leaves unexplained of any function of x
and z is uncorrelated with what it leaves of any function of y and z. The functions are made in two
steps, so that they see noise around z rather than z itself:

1. A column is regressed on z, on the scale on which z predicts it best: its normal scores, or
   `Robust`. The residual is divided by its spread, which is regressed on z too.
2. Functions of that are its normal scores and cosines of its ranks, slow and fast ones. They are
   regressed on z again.

Labels have the codes and the indicators of their values instead, and step 1 alone. All residuals
are held out: see `regressions`. Their products $R_{ijk} = a_{ij} b_{ik}$ over rows i have mean 0 if
x and y are independent given z. So do products with functions of z, which see dependence whose
sign changes with z. Under independence the sums $T_{jk} = \sum_i R_{ijk}$ are nearly normal with
covariance $\sum_i R_{ijk} R_{ilm}$, whatever the spread of the noise is. Sums of $T^2$ over blocks
of functions, coarse and fine, have p-values of gamma distributions with the same mean and variance.
Their weighted harmonic mean is the statistic, as in `rank_test`. It is compared with that of random
normal T of the same covariance.

No test of conditional independence holds for all distributions and has power against any (Shah
and Peters). This one is valid as far as the regressions are good: their errors enter as a product,
so that both sides may be off a little. `deminat bench given` measures its level and its power.

References:
    Shah and Peters (2020), The hardness of conditional independence testing and the generalised
    covariance measure.
    Scheidegger, Hoerrmann and Buehlmann (2022), The weighted generalised covariance measure.
    Wilson (2019), The harmonic mean p-value for combining dependent tests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr
from scipy.stats import norm

from ..data.labels import discrete_columns
from ..data.sample import Sample
from ..data.transforms import Indicators, RankToNormal, Robust
from ..data.units import effective_rows, unit_codes
from ..errors import DataError
from ..estimators.scores import Scores, estimate_warnings, standard_error
from ..objectives import DEMI
from ..records import Diagnostics
from ..results import IndependenceResult, MIResult
from .regressions import Ridge, Units, kernel_ridge, residuals, smooth_ridge
from .sequential import spread_columns

__all__ = ["conditional_result", "conditional_test"]

Array = NDArray[np.float64]

_FEWEST = 50  # rows or groups
_TAG = 0x61FE
_WIDTHS = 0.4, 1.2  # of kernels, in standard deviations of a column times the root of d
_SMOOTHNESS = 0.3  # of the first regression: its bias matters more than its noise
_INDICATOR = 0.7  # scale of the indicators of labels in kernels
_LEAST_SPREAD = 0.3  # of a residual, as a share of the median
_DETERMINED = 1e-6  # share of the variance below which z determines a column
_CUTS = 1, 2, 3, 4, 6  # orders of functions, at which blocks end
_FUNCTIONS = 12  # of all columns of a side
_COLUMNS = 24  # of a side; of more, principal directions
_LEVELS = 12  # of labels that have indicators, of a side: the most frequent
_FREQUENT = 0.05  # least share of the rows of such a level: the bias of rarer ones adds up
_VARYING = 60  # products with functions of z
_SMALLEST = 1e-300
_FIRST = 4.0  # weight of the block of first order, as often as that of any other
_OF_VARYING = 1.0


def conditional_result(
    both: MIResult, known: MIResult, sample: Sample, p_value: float | None
) -> MIResult:
    """Return the information of x and y given z.

    Args:
        both: Of x with y and z.
        known: Of x with z alone, by the same method in the same folds.
        sample: The rows.
        p_value: Of independence given z.
    """
    pointwise, mi = both.pointwise - known.pointwise, both.mi - known.mi
    error = standard_error(DEMI(), Scores(pointwise, pointwise[:, None]), unit_codes(sample))
    own = "negative", "underpowered"
    warnings = (w for w in both.warnings + known.warnings if w.code not in own)
    return MIResult(
        mi,
        error,
        len(sample),
        both.method,
        pointwise,
        (*dict.fromkeys(warnings), *estimate_warnings(mi, len(sample))),
        Diagnostics(
            recipe=both.diagnostics.recipe,
            steps=both.diagnostics.steps,
            learning=both.diagnostics.learning,
            of_both=both.to_dict(),
            of_given=known.to_dict(),
        ),
        interval=_interval(mi, error, both, known),
        p_value=p_value,
    )


def _interval(
    mi: float, error: float, both: MIResult, known: MIResult
) -> tuple[float, float] | None:
    """Return sampling noise of the difference, plus what both intervals allow for bias."""
    if both.interval is None or known.interval is None:
        return None
    (lost, gained), (known_lost, known_gained) = (_bias_allowed(r) for r in (both, known))
    noise = float(norm.ppf(0.975)) * error
    low, high = mi - noise - gained - known_lost, mi + noise + lost + known_gained
    return max(0.0, low), max(0.0, high)


def _bias_allowed(result: MIResult) -> tuple[float, float]:
    """Return how far above, and below, an estimate its interval reaches for bias alone."""
    low, high = result.interval or (result.mi, result.mi)
    noise = float(norm.ppf(0.975)) * result.standard_error
    return max(0.0, high - result.mi - noise), max(0.0, result.mi - low - noise)


def conditional_test(
    sample: Sample,
    z: Array,
    *,
    z_discrete: Sequence[bool] | None = None,
    seed: int = 0,
    draws: int = 999,
) -> IndependenceResult:
    """Test whether x and y are independent given z.

    Args:
        sample: Pairs, with their groups.
        z: (n, ...) what is given.
        z_discrete: Which columns of z are labels; by default their values decide.
        seed: Of the rows that kernels are centred at, and of draws.
        draws: From the law of the statistic under independence.
    """
    if sample.times is not None:
        raise DataError(
            "no test given z for rows in the order of time: leave order out, or test without given"
        )
    count = effective_rows(sample)
    if count < _FEWEST:
        raise DataError(
            f"{count} rows or groups are too few for regressions on z: {_FEWEST} are needed"
        )
    rng, codes = np.random.default_rng([_TAG, seed]), unit_codes(sample)
    known = _Known.of(z, z_discrete, Units.of(codes), rng)
    sides = zip((sample.x, sample.y), (sample.x_discrete, sample.y_discrete), strict=True)
    left, right = (_side(a, labels, known) for a, labels in sides)
    products, blocks = _products(left, right, known.functions)
    summed = np.zeros((count, products.shape[1]))
    np.add.at(summed, codes, products)
    p, log_h = _harmonic_test(summed, blocks, draws, rng)
    compared = f"residuals given z, against {draws} normal draws"
    return IndependenceResult(p, log_h, len(sample), compared, sample.warnings, "log H")


@dataclass(frozen=True)
class _Known:
    """Regressions on z, and functions (n, k) of it."""

    ridges: tuple[Ridge, ...]
    units: Units
    functions: Array

    @classmethod
    def of(
        cls, z: Array, labels: Sequence[bool] | None, units: Units, rng: np.random.Generator
    ) -> "_Known":
        """Return the regressions on rows z (n, ...)."""
        flat, labels = _flat(z, labels)
        numbers, indicators = _scores(flat), _standardised(Indicators.fit(flat, labels)(flat))
        ridges = [smooth_ridge(numbers, indicators)]
        columns = np.hstack([numbers, _INDICATOR * indicators])
        if columns.any():
            n = len(flat)
            few = min(n // 3, round(60 + 2 * math.sqrt(n)))
            centres = rng.choice(n, few, replace=False)
            ridges += [kernel_ridge(columns, width, centres) for width in _WIDTHS]
        return cls(tuple(ridges), units, np.hstack([numbers, indicators]))

    def residuals(self, of: Array, smoothness: float = 1.0) -> Array:
        """Return what z leaves of columns (n, k), held out."""
        return residuals(of, self.ridges, self.units, smoothness)


@dataclass(frozen=True)
class _Side:
    """Residuals of functions of a side, and blocks of them.

    Args:
        features: (n, r), of mean square 1.
        blocks: Places of the functions of each block, with the order of the finest.
    """

    features: Array
    blocks: tuple[tuple[slice, int], ...]

    @classmethod
    def of(cls, *parts: tuple[Array, Sequence[int]]) -> "_Side":
        """Return functions (n, r), equally many of each order, and the orders where blocks end."""
        blocks, start = [], 0
        for features, orders in parts:
            each = features.shape[1] // orders[-1]
            blocks += [(slice(start, start + order * each), order) for order in orders if each]
            start += features.shape[1]
        return cls(np.hstack([features for features, _ in parts]), tuple(blocks))


def _flat(a: Array, labels: Sequence[bool] | None) -> tuple[Array, tuple[bool, ...]]:
    """Return rows (n, d) of some columns, and which of these are labels; pixels are not."""
    flat = a.reshape(len(a), -1)
    chosen = spread_columns(flat)
    flat = flat[:, chosen]
    if labels is None:
        return flat, discrete_columns(flat, (None,) * flat.shape[1])
    return flat, tuple(bool(labels) and labels[j] for j in chosen)


def _standardised(a: Array) -> Array:
    """Return columns (n, d) of mean 0 and mean square 1; constants are 0."""
    centred = a - a.mean(axis=0)
    spread = np.sqrt(np.square(centred).mean(axis=0))
    return np.asarray(centred / np.where(spread > 0, spread, np.inf))


def _scores(a: Array) -> Array:
    """Return standardised normal scores of columns (n, d)."""
    return _standardised(np.asarray(RankToNormal.fit(a)(a)))


def _side(a: Array, labels: Sequence[bool], known: _Known) -> _Side:
    """Return residuals of functions of rows (n, ...), in blocks."""
    flat, labels = _flat(a, labels)
    left = _best_view(flat, known)
    named = np.array([f or _is_binary(column) for f, column in zip(labels, flat.T, strict=True)])
    indicators = Indicators.fit(flat, labels)(flat)[:, :_LEVELS]
    indicators = _standardised(indicators[:, indicators.mean(axis=0) >= _FREQUENT])
    numbers = _principal(left[:, ~named & left.any(axis=0)])
    most = max(1, _FUNCTIONS // max(1, numbers.shape[1]))
    orders = [cut for cut in _CUTS if cut <= most]
    return _Side.of(
        (_principal(_unit(left[:, named])), [1]),
        (_unit(_undetermined(known.residuals(indicators, _SMOOTHNESS))), [1]),
        (_functions(numbers, orders[-1], known), orders),
    )


def _best_view(a: Array, known: _Known) -> Array:
    """Return residuals of columns (n, d), of each on the scale on which z predicts it best."""
    scales = _scores(a), _standardised(Robust.fit(a)(a))
    lefts = np.stack([known.residuals(scale, _SMOOTHNESS) for scale in scales])
    errors = np.square(lefts).mean(axis=1)
    best = lefts[errors.argmin(axis=0), :, np.arange(a.shape[1])].T
    return _undetermined(best)


def _undetermined(left: Array) -> Array:
    """Return residuals (n, k) of columns of mean square 1, with 0 for those that z determines."""
    return np.asarray(left * (np.square(left).mean(axis=0) > _DETERMINED))


def _is_binary(column: Array) -> bool:
    return bool(((column == column.min()) | (column == column.max())).all())


def _unit(a: Array) -> Array:
    """Return the columns (n, k) that are not zero, with mean square 1."""
    a = a[:, a.any(axis=0)]
    return np.asarray(a / np.sqrt(np.square(a).mean(axis=0)))


def _principal(a: Array) -> Array:
    """Return columns (n, d), or their principal directions if they are many."""
    if a.shape[1] <= _COLUMNS:
        return a
    _, directions = np.linalg.eigh(a.T @ a)
    return np.asarray(a @ directions[:, -_COLUMNS:])


def _homoscedastic(left: Array, known: _Known) -> Array:
    """Return residuals (n, k) divided by their spread given z."""
    squares = np.square(left)
    logs = np.log(squares + 0.01 * squares.mean(axis=0))
    spread = np.exp((logs - known.residuals(logs)) / 2)
    return np.asarray(left / np.maximum(spread, _LEAST_SPREAD * np.median(spread, axis=0)))


def _functions(left: Array, orders: int, known: _Known) -> Array:
    """Return residuals of functions of columns (n, k): of first order for each, then of second."""
    if not left.shape[1]:
        return left
    scores = _scores(_homoscedastic(left, known))
    ranks = ndtr(scores)
    found = [scores, *(np.cos(np.pi * j * ranks) for j in range(2, orders + 1))]
    return _unit(known.residuals(_standardised(np.hstack(found))))


def _products(
    left: _Side, right: _Side, functions: Array
) -> tuple[Array, list[tuple[NDArray[np.int64], float]]]:
    """Return products (n, p) of functions of both sides, and places and weights of blocks."""
    n, sizes = len(left.features), (left.features.shape[1], right.features.shape[1])
    places = np.arange(sizes[0] * sizes[1]).reshape(sizes)
    plain = (left.features[:, :, None] * right.features[:, None, :]).reshape(n, -1)
    parts, blocks = [plain], []
    for rows, i in left.blocks:
        for columns, j in right.blocks:
            own = places[rows, columns].ravel()
            weight = 1 / (min(i, j) * math.sqrt(max(i, j)))
            blocks.append((own, _FIRST if i == j == 1 else weight))
            if i == j == 1 and 0 < len(own) <= _VARYING:
                some = functions[:, : _VARYING // len(own)]
                start = sum(part.shape[1] for part in parts)
                parts.append((plain[:, own, None] * some[:, None, :]).reshape(n, -1))
                blocks.append((np.arange(start, start + parts[-1].shape[1]), _OF_VARYING))
    return np.hstack(parts), blocks


def _harmonic_test(
    summed: Array,
    blocks: Sequence[tuple[NDArray[np.int64], float]],
    draws: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the p-value of the sum of rows (count, p) of mean 0, and log H."""
    summed = summed / np.sqrt(np.square(summed).sum(axis=0) + _SMALLEST)
    covariance = summed.T @ summed
    variances, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(variances, 0))
    drawn = rng.normal(size=(draws, len(root))) @ root.T
    squares = np.square(np.vstack([summed.sum(axis=0), drawn]))
    harmonic, weights = np.zeros(draws + 1), 0.0
    for places, weight in blocks:
        own = covariance[np.ix_(places, places)]
        mean, variance = float(np.trace(own)), 2 * float(np.square(own).sum())
        if mean > 0:
            sums = squares[:, places].sum(axis=1)
            p_values = gammaincc(mean**2 / variance, sums * mean / variance)
            harmonic += weight / np.maximum(p_values, _SMALLEST)
            weights += weight
    if weights == 0:  # one side is constant, or z determines it
        return 1.0, 0.0
    above = int((harmonic[1:] >= harmonic[0]).sum())
    return (1 + above) / (draws + 1), float(np.log(harmonic[0] / weights))
