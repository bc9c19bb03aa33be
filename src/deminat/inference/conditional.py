r"""Mutual information given z, and a test of independence given z.

By the chain rule $I(x; y \mid z) = I(x; y, z) - I(x; z)$. Both are estimated in the same folds, so
that much of their sampling noise cancels: the standard error is that of the differences row by row.
Their biases do not cancel, and the interval allows for those of both.

If x and y are independent given z, then the residuals of any function of x given z are uncorrelated
with those of any function of y. The functions are the normal scores of each column and their
squares. Their residuals are from regressions on z that were fitted on other rows, by polynomials of
z or by Gaussian kernels of several widths, whichever predicts the column best. Products of two
residuals have mean 0. The largest of their standardised means is compared with that of the same
products under random signs: $T^* = \max_{jk} |\sum_i e_i R_{ijk}| / \sqrt{\sum_i R_{ijk}^2}$ with
normal $e_i$.

No test of conditional independence holds for all distributions and has power against any (Shah
and Peters). This one is valid as far as the regressions are good: their errors enter as a product,
so that both sides may be off a little. `deminat bench trust --only promise=given` measures the
level.

References:
    Shah and Peters (2020), The hardness of conditional independence testing and the generalised
    covariance measure.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from ..data.sample import Sample
from ..data.splits import folds, others
from ..data.transforms import RankToNormal
from ..data.units import effective_rows, unit_codes
from ..errors import DataError
from ..estimators.scores import Scores, estimate_warnings, standard_error
from ..objectives import DEMI
from ..records import Diagnostics
from ..results import IndependenceResult, MIResult
from .sequential import spread_columns, with_squares

__all__ = ["conditional_result", "conditional_test"]

Array = NDArray[np.float64]

_FOLDS = 5
_FEWEST = 50  # rows or groups
_ALPHAS = np.logspace(-3, 4, 8)
_WIDTHS = (0.3, 1.0, 3.0)  # of kernels, in standard deviations of a column times the root of d
_KERNELS = 200
_CROSSED = 10  # columns of z up to which products of two of them are taken
_TAG = 0x61FE


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
    sample: Sample, z: Array, *, seed: int = 0, draws: int = 999
) -> IndependenceResult:
    """Test whether x and y are independent given z.

    Args:
        sample: Pairs, with their groups.
        z: (n, ...) what is given.
        seed: Of folds, kernels and signs.
        draws: Random signs to compare with.
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
    rng = np.random.default_rng([_TAG, seed])
    parts = folds(len(sample), _FOLDS, rng, sample.labels)
    known, x, y = map(_scores, (z, sample.x, sample.y))
    left, right = (_residuals(with_squares(a), known, parts, seed) for a in (x, y))
    products = np.einsum("ij,ik->ijk", left, right).reshape(len(left), -1)
    summed = np.zeros((count, products.shape[1]))
    np.add.at(summed, unit_codes(sample), products)
    summed /= np.sqrt((summed**2).sum(axis=0)) + np.finfo(float).tiny
    seen = np.abs(summed.sum(axis=0)).max()
    null = np.abs(rng.normal(size=(draws, count)) @ summed).max(axis=1)
    p = (1 + int((null >= seen).sum())) / (draws + 1)
    compared = f"residuals given z, against {draws} random signs"
    return IndependenceResult(p, float(seen), len(sample), compared, sample.warnings)


def _scores(a: Array) -> Array:
    """Return normal scores of some columns, (n, d)."""
    flat = a.reshape(len(a), -1)
    flat = flat[:, spread_columns(flat)]
    return np.asarray(RankToNormal.fit(flat)(flat))


def _residuals(of: Array, z: Array, parts: list[NDArray[np.int64]], seed: int) -> Array:
    """Return the residuals of columns (n, k) under the best regression on z, standardised."""
    best, least = np.zeros_like(of), np.full(of.shape[1], np.inf)
    fewest = len(of) - max(len(part) for part in parts)
    for regression in _regressions(z.shape[1], min(_KERNELS, fewest // 2), seed):
        left = of.copy()
        for part in parts:
            rest = others(len(of), part)
            left[part] -= regression.fit(z[rest], of[rest]).predict(z[part])
        errors = (left**2).mean(axis=0)
        better = errors < least
        best[:, better], least[better] = left[:, better], errors[better]
    return best / np.sqrt(least + np.finfo(float).tiny)


def _regressions(d: int, kernels: int, seed: int) -> list[BaseEstimator]:
    ridge = RidgeCV(_ALPHAS, alpha_per_target=True)
    powers = PolynomialFeatures(2 if d <= _CROSSED else 1, include_bias=False)
    kernel_maps = (
        Nystroem(gamma=1 / (2 * d * width**2), n_components=kernels, random_state=seed)
        for width in _WIDTHS
    )
    return [make_pipeline(map_, ridge) for map_ in (powers, *kernel_maps)]
