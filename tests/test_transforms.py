"""Transforms that preserve mutual information, fitted on training rows in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtri

from deminat import RankToNormal, Robust, Standardize, Views

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(300, 2))
IMAGES = RNG.normal(size=(40, 3, 5, 4))
ALL = [Standardize, Robust, RankToNormal, Views]

FINITE = st.floats(-1e100, 1e100).map(lambda v: v if abs(v) > 1e-100 else 0.0)

every = pytest.mark.parametrize("transform", ALL, ids=lambda t: t.__name__)


@every
def test_new_rows_do_not_change_the_map(transform):
    fitted = transform.fit(NORMAL)
    before = fitted(NORMAL[:50])
    alone = fitted(NORMAL[:1])
    fitted(1e6 * NORMAL)
    assert np.array_equal(fitted(NORMAL[:50]), before)
    assert np.array_equal(alone, before[:1])


@every
def test_the_rows_are_left_as_they_were(transform):
    rows = NORMAL.copy()
    rows.flags.writeable = False
    transform.fit(rows)(rows)
    assert np.array_equal(rows, NORMAL)


@every
def test_an_offset_of_1e8_keeps_three_levels_in_float32(transform):
    levels = 1e8 + np.arange(300.0)[:, None] % 3
    mapped = transform.fit(levels)(levels).astype(np.float32)
    assert len(np.unique(mapped, axis=0)) == 3


@every
@pytest.mark.parametrize("scale", [1e30, 1e200, 1e-30, 1e-200])
def test_scale_does_not_matter(transform, scale):
    mapped = transform.fit(scale * NORMAL)(scale * NORMAL)
    np.testing.assert_allclose(mapped, transform.fit(NORMAL)(NORMAL), atol=1e-9)


@every
@pytest.mark.parametrize("value", [0.0, 0.1, -7e30])
def test_a_constant_column_gives_zeros(transform, value):
    constant = np.full((50, 1), value)
    assert not transform.fit(constant)(constant).any()


@every
def test_another_value_where_training_was_constant_stays_finite(transform):
    fitted = transform.fit(np.full((50, 1), 0.1))
    assert np.isfinite(fitted(np.array([[0.2], [-1e30]]))).all()


@every
def test_the_outcome_is_of_order_one(transform):
    for rows in (NORMAL, RNG.uniform(size=(300, 2)), RNG.integers(0, 2, (300, 2)).astype(float)):
        mapped = transform.fit(rows)(rows)
        assert np.abs(mapped).max() < 6
        assert mapped.std() > 0.1


@every
@settings(derandomize=True, deadline=None, max_examples=50)
@given(rows=arrays(np.float64, (20, 2), elements=FINITE))
def test_any_finite_rows_stay_finite_and_keep_their_order(transform, rows):
    mapped = transform.fit(rows)(rows)
    assert np.isfinite(mapped).all()
    order = np.argsort(rows[:, 0], kind="stable")
    assert (np.diff(mapped[order, 0]) >= 0).all()


def test_standardize_gives_mean_0_and_deviation_1():
    mapped = Standardize.fit(5 + 3 * NORMAL)(5 + 3 * NORMAL)
    np.testing.assert_allclose(mapped.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(mapped.std(axis=0), 1)


def test_images_have_one_scale_for_all_pixels():
    images = IMAGES * np.arange(1, 5)  # columns of pixels of different spread
    mapped = Standardize.fit(images)(images)
    assert mapped.shape == images.shape
    assert mapped.mean() == pytest.approx(0, abs=1e-12)
    assert mapped.std() == pytest.approx(1)
    np.testing.assert_allclose(mapped * images.std(), images - images.mean())


def test_robust_bounds_heavy_tails():
    cauchy = np.random.default_rng(1).standard_cauchy((5000, 1)) ** 3
    assert np.abs(cauchy).max() > 1e9
    mapped = Robust.fit(cauchy)(cauchy)
    assert np.abs(mapped).max() < 60
    assert np.quantile(np.abs(mapped), 0.6827) == pytest.approx(np.arcsinh(1), rel=1e-6)


def test_robust_is_not_moved_by_an_outlier():
    spoiled = np.vstack([NORMAL, [[1e12, -1e12]]])
    fitted, clean = Robust.fit(spoiled), Robust.fit(NORMAL)
    np.testing.assert_allclose(fitted(NORMAL), clean(NORMAL), atol=0.05)


def test_robust_survives_a_column_that_is_mostly_zero():
    column = np.where(np.arange(100)[:, None] % 10 == 0, NORMAL[:100, :1], 0.0)
    mapped = Robust.fit(column)(column)
    assert np.isfinite(mapped).all()
    assert len(np.unique(mapped)) == 11


def test_ranks_become_normal_quantiles():
    shuffled = np.random.default_rng(2).permutation(100.0 + np.arange(99))[:, None]
    mapped = RankToNormal.fit(shuffled)(shuffled)
    np.testing.assert_allclose(np.sort(mapped[:, 0]), ndtri((np.arange(99) + 0.5) / 99))


def test_ties_share_their_middle_rank():
    column = np.array([[1.0], [2.0], [2.0], [3.0]])
    mapped = RankToNormal.fit(column)(column)[:, 0]
    np.testing.assert_allclose(mapped, ndtri([1 / 8, 1 / 2, 1 / 2, 7 / 8]), atol=1e-15)


@pytest.mark.parametrize(
    "g", [np.exp, np.cbrt, np.arctan, lambda a: a**3], ids=["exp", "cbrt", "arctan", "cube"]
)
def test_ranks_do_not_see_a_monotone_map(g):
    assert np.array_equal(RankToNormal.fit(g(NORMAL))(g(NORMAL)), RankToNormal.fit(NORMAL)(NORMAL))


def test_ranks_do_not_see_beyond_the_training_rows():
    fitted = RankToNormal.fit(NORMAL)
    ends = fitted(np.array([NORMAL.min(axis=0), NORMAL.max(axis=0)]))
    assert np.array_equal(fitted(np.array([[-1e300] * 2, [1e300] * 2])), ends)


def test_views_are_robust_and_ranks_and_three_norms():
    fitted = Views.fit(NORMAL)
    mapped = fitted(NORMAL)
    robust, ranks = (t.fit(NORMAL)(NORMAL) for t in (Robust, RankToNormal))
    assert mapped.shape == (300, 2 * 2 + 3)
    np.testing.assert_array_equal(mapped[:, :4], np.hstack([robust, ranks]))
    np.testing.assert_allclose(mapped[:, 4:].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(mapped[:, 4:].std(axis=0), 1, atol=1e-9)


def test_norms_have_correlations_removed_or_are_measured_from_zero():
    mixed = NORMAL @ [[1.0, 0.9], [0.0, 0.4]]
    robust, ranks, from_zero = Views.fit(mixed)(mixed)[:, 4:].T
    true = np.log1p((NORMAL**2).sum(axis=1))
    assert np.corrcoef(robust, true)[0, 1] > 0.95
    assert np.corrcoef(ranks, true)[0, 1] > 0.95
    shifted = Views.fit(mixed + 7)(mixed + 7)
    np.testing.assert_allclose(shifted[:, 4], robust, atol=1e-9)
    assert np.corrcoef(shifted[:, 6], mixed.sum(axis=1))[0, 1] > 0.9
    assert np.corrcoef(from_zero, shifted[:, 6])[0, 1] < 0.5


def test_views_know_the_columns_of_each_input_column():
    selected = Views.fit(NORMAL).columns(np.array([False, True]))
    assert selected.tolist() == [1, 3, 4, 5, 6]


def test_views_only_standardise_images():
    mapped = Views.fit(IMAGES)(IMAGES[:3])
    assert np.array_equal(mapped, Standardize.fit(IMAGES)(IMAGES[:3]))


def test_ranks_of_images_keep_their_shape_and_are_finite():
    mapped = RankToNormal.fit(IMAGES)(IMAGES)
    assert mapped.shape == IMAGES.shape
    assert np.isfinite(mapped).all()


def test_robust_stays_finite_where_the_bulk_is_1e_minus_20_and_the_tail_1e300():
    column = np.concatenate([1e-20 * NORMAL, 1e300 * NORMAL[:50]])
    assert np.isfinite(Robust.fit(column)(column)).all()
