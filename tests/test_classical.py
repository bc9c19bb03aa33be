"""KSG and Gaussian against known information, each other's invariances, and other people's code."""

import math

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_regression

from deminat import KSG, DataError, Gaussian, estimate
from deminat.data.sample import as_sample
from deminat.estimators import ksg as classical
from deminat.tasks import gaussian

COPULA = Gaussian(ranks=True)
ALL = [KSG(), Gaussian(), COPULA]
every = pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.name)


def measure(estimator, x, y):
    return estimator.measure(as_sample(x, y))


def mi(estimator, x, y):
    return measure(estimator, x, y).mi


def plug_in(x, y):
    """The information of a table of counts, in nats."""
    table = np.zeros((x.max() + 1, y.max() + 1))
    np.add.at(table, (x, y), 1 / len(x))
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    filled = table > 0
    return float((table[filled] * np.log(table[filled] / independent[filled])).sum())


X, Y = gaussian(1, 0.8).sample(1000, seed=0)
X3, Y3 = gaussian(3, 1.0).sample(1000, seed=0)
LATTICE = np.random.default_rng(0).integers(0, 50, (2, 2000))


# Both


@every
@pytest.mark.parametrize(("d", "truth"), [(1, 0.0), (1, 0.3), (1, 2.0), (2, 1.0), (3, 0.5)])
def test_gaussians_are_measured_within_4_standard_errors(estimator, d, truth):
    result = measure(estimator, *gaussian(d, truth).sample(2000, seed=1))
    # Covariances of so many columns overestimate by d * d / 2n.
    assert abs(result.mi - truth) < 4 * result.standard_error + d * d / 4000


@every
def test_the_mean_of_the_pointwise_values_is_the_estimate(estimator):
    result = measure(estimator, X3, Y3)
    assert result.pointwise.shape == (1000,)
    assert result.pointwise.mean() == pytest.approx(result.mi)
    assert result.standard_error == pytest.approx(result.pointwise.std(ddof=1) / 1000**0.5)


@every
def test_sides_may_be_swapped(estimator):
    assert mi(estimator, X3, Y3[:, :2]) == pytest.approx(mi(estimator, Y3[:, :2], X3))


@every
@pytest.mark.parametrize(
    ("scale", "offset"), [(1e30, 0), (1e200, 0), (1e-200, 0), (-3, 7), (1, 1e8)]
)
def test_scale_and_offset_do_not_matter(estimator, scale, offset):
    expected = mi(estimator, X3, Y3)
    assert mi(estimator, scale * X3 + offset, Y3) == pytest.approx(expected, abs=2e-4)
    assert mi(estimator, X3, scale * Y3 + offset) == pytest.approx(expected, abs=2e-4)


@every
def test_a_constant_side_shares_no_information(estimator):
    assert mi(estimator, np.full(1000, 3.3), Y) == pytest.approx(0, abs=1e-12)
    assert mi(estimator, X, np.zeros((1000, 2))) == pytest.approx(0, abs=1e-12)
    assert mi(estimator, np.ones(1000), np.ones(1000)) == pytest.approx(0, abs=1e-12)


@every
def test_a_constant_column_more_changes_nothing(estimator):
    wider = np.hstack([X3, np.full((1000, 1), 3.3)])
    assert mi(estimator, wider, Y3) == pytest.approx(mi(estimator, X3, Y3))


@every
def test_the_order_of_rows_and_columns_does_not_matter(estimator):
    order = np.random.default_rng(0).permutation(1000)
    shuffled = mi(estimator, X3[order][:, ::-1], Y3[order])
    assert shuffled == pytest.approx(mi(estimator, X3, Y3))


@every
def test_images_are_taken_flat(estimator):
    assert mi(estimator, X3.reshape(1000, 1, 3, 1), Y3) == pytest.approx(mi(estimator, X3, Y3))


@every
@pytest.mark.parametrize("d", [1, 2])
def test_log_ratios_of_new_pairs_are_near_the_truth(estimator, d):
    task = gaussian(d, 0.8)
    fitted = estimator.fit(*task.sample(2000, seed=1))
    x, y = task.sample(1000, seed=2)
    found, truth = fitted.log_ratio(x, y), task.log_ratio(x, y)
    assert np.corrcoef(found, truth)[0, 1] > 0.7
    error = (found - truth).std() / 1000**0.5
    assert abs(found.mean() - truth.mean()) < 4 * error + 0.02
    np.testing.assert_allclose(fitted.log_ratio(x[:3], y[:3]), found[:3])


@every
def test_independent_noise_scores_no_better_than_chance(estimator):
    task = gaussian(1, 0.0)
    fitted = estimator.fit(*task.sample(2000, seed=0))
    assert fitted.score(*task.sample(2000, seed=1)) < -math.log(2) + 0.001


@every
def test_dependence_scores_better_than_chance(estimator):
    fitted = estimator.fit(X, Y)
    assert fitted.score(*gaussian(1, 0.8).sample(1000, seed=1)) > -math.log(2) + 0.1


# KSG


@pytest.mark.parametrize("truth", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("k", [3, 7])
def test_ksg_agrees_with_scikit_learn(truth, k):
    x, y = gaussian(1, truth).sample(1000, seed=3)
    other = mutual_info_regression(x, y[:, 0], n_neighbors=k, random_state=0)[0]
    assert max(0, mi(KSG(k), x, y)) == pytest.approx(other, abs=1e-3)


@pytest.mark.parametrize("levels", [2, 3, 6])
def test_ksg_of_discrete_data_is_the_plug_in_estimate(levels):
    rng = np.random.default_rng(levels)
    x = rng.integers(0, levels, 5000)
    y = np.where(rng.random(5000) < 0.5, x, rng.integers(0, levels, 5000))
    # Each cell is biased by about 1 / 2n, in opposite directions.
    assert mi(KSG(), x, y) == pytest.approx(plug_in(x, y), abs=levels**2 / 5000)


def test_ksg_of_equal_discrete_values_is_their_entropy():
    x = np.random.default_rng(0).integers(0, 4, 2000)
    assert mi(KSG(), x, 10 - x) == pytest.approx(plug_in(x, x), abs=0.002)


def test_ksg_takes_a_discrete_with_a_continuous_side():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 3000)
    y = x + rng.normal(size=3000)
    result = measure(KSG(), x, y)
    assert abs(result.mi - 0.2538) < 4 * result.standard_error  # by quadrature


def test_a_pair_is_not_its_own_neighbour():
    measured, reread = mi(KSG(), X, Y), KSG().fit(X, Y).estimate(X, Y).mi
    assert abs(measured - 0.8) < 0.1
    assert reread > measured + 0.1  # of pairs it knows, `estimate` sees each in itself


def test_ksg_finds_what_correlation_cannot():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    y = x**2 + 0.1 * rng.normal(size=1000)
    assert mi(KSG(), x, y) > 1
    assert abs(mi(Gaussian(), x, y)) < 0.02


@pytest.mark.parametrize(("n", "k"), [(3, 3), (4, 3), (10, 10), (2, 1)])
def test_ksg_needs_more_pairs_than_neighbours(n, k):
    with pytest.raises(DataError, match=f"n_samples = {n}"):
        KSG(k).fit(X[:n], Y[:n])


def test_ksg_needs_a_neighbour():
    with pytest.raises(ValueError, match="k must be at least 1"):
        KSG(0).fit(X, Y)


@pytest.mark.parametrize(("n", "decimals"), [(1000, 1), (3000, 2)])
def test_rounding_does_not_make_information(n, decimals):
    x, y = gaussian(1, 0.3).sample(n, seed=0)
    exact, rounded = measure(KSG(), x, y), mi(KSG(), x.round(decimals), y.round(decimals))
    assert rounded < exact.mi + 2 * exact.standard_error


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 7])
def test_the_scale_of_integers_does_not_matter(scale):
    x, y = LATTICE[0], LATTICE.sum(axis=0)
    assert mi(KSG(), x, scale * y) == pytest.approx(mi(KSG(), x, y))


@pytest.mark.parametrize("copies", [2, 4])
def test_copies_of_rows_do_not_make_information(copies):
    repeated = mi(KSG(), np.repeat(X, copies, axis=0), np.repeat(Y, copies, axis=0))
    assert repeated == pytest.approx(mi(KSG(), X, Y), abs=0.1)


# Gaussian


def test_gaussian_is_the_formula_of_the_correlation():
    rho = np.corrcoef(X[:, 0], Y[:, 0])[0, 1]
    fitted = Gaussian().fit(X, Y)
    assert fitted.correlations_ == pytest.approx([abs(rho)])
    assert mi(Gaussian(), X, Y) == pytest.approx(-0.5 * np.log(1 - rho**2), rel=1e-12)


def test_gaussian_is_the_formula_of_the_determinants():
    both, dets = np.hstack([X3, Y3[:, :2]]), np.linalg.slogdet
    blocks = dets(np.cov(X3.T))[1] + dets(np.cov(Y3[:, :2].T))[1]
    expected = 0.5 * (blocks - dets(np.cov(both.T))[1])
    result = measure(Gaussian(), X3, Y3[:, :2])
    assert result.mi == pytest.approx(expected, rel=1e-10)
    rho = np.array(result.diagnostics["canonical_correlations"])
    assert rho.shape == (2,)
    assert -0.5 * np.log1p(-(rho**2)).sum() == pytest.approx(expected, rel=1e-10)


def test_gaussian_does_not_see_a_linear_map():
    mixing = np.random.default_rng(0).normal(size=(3, 3))
    assert mi(Gaussian(), X3 @ mixing, Y3) == pytest.approx(mi(Gaussian(), X3, Y3))


def test_ranks_do_not_see_monotone_maps():
    expected = mi(COPULA, X3, Y3)
    assert mi(COPULA, np.exp(X3), Y3**3) == expected
    assert mi(COPULA, -X3, np.arctan(Y3)) == pytest.approx(expected)
    assert abs(mi(Gaussian(), np.exp(3 * X3), Y3) - expected) > 0.2


def test_collinear_columns_add_nothing():
    wider = np.hstack([X3, X3 @ [[1.0], [2.0], [3.0]], X3[:, :1]])
    assert mi(Gaussian(), wider, Y3) == pytest.approx(mi(Gaussian(), X3, Y3))
    assert measure(Gaussian(), wider, Y3).warnings == ()
    assert Gaussian().fit(wider, wider + X3[:, :1]).correlations_.shape == (3,)


@pytest.mark.parametrize("estimator", [Gaussian(), COPULA], ids=lambda e: e.name)
@pytest.mark.parametrize("y", [2 * X, -X, 2 * X + 1e6, np.hstack([Y, X])], ids=range(4))
def test_y_that_is_x_exactly_is_told_and_finite(estimator, y):
    result = measure(estimator, X, y)
    assert "infinite" in [w.code for w in result.warnings]
    assert np.isfinite([result.mi, result.standard_error]).all()
    assert np.isfinite(result.pointwise).all()
    assert result.mi > 10


def test_much_information_is_not_told_as_infinite():
    task = gaussian(1, 10.0)
    result = measure(Gaussian(), *task.sample(1000, seed=0))
    assert not result.warnings
    assert abs(result.mi - 10) < 4 * result.standard_error


def test_columns_too_many_for_the_rows_are_told():
    rng = np.random.default_rng(0)
    result = measure(Gaussian(), rng.normal(size=(600, 10)), rng.normal(size=(600, 10)))
    assert [w.code for w in result.warnings] == ["overfit"]
    assert "0.08 nats" in result.warnings[0].message
    assert abs(result.mi - 0.083) < 0.03


def test_more_columns_than_rows_are_told_and_finite():
    rng = np.random.default_rng(0)
    result = measure(Gaussian(), rng.normal(size=(30, 50)), rng.normal(size=(30, 2)))
    assert {"overfit", "infinite"} <= {w.code for w in result.warnings}
    assert np.isfinite(result.mi)


def test_skewed_columns_are_told_where_normality_is_assumed():
    x, y = gaussian(1, 0.5).sample(2_000, seed=0)
    codes = [
        [w.code for w in estimate(a, y, method=m).warnings]
        for a, m in ((np.exp(2 * x), "gaussian"), (np.exp(2 * x), "copula"), (x, "gaussian"))
    ]
    assert codes == [["skewed"], [], []]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_trees_and_tables_find_the_same_neighbours(decimals, own):
    rng = np.random.default_rng(decimals)
    x, y = rng.normal(size=(2, 600, 2)).round(decimals)
    reference = x[:500], y[:500]
    rows = reference if own else (x[500:], y[500:])
    by_tree, by_table = (
        find(rows, reference, 4) for find in (classical._by_trees, classical._by_tables)
    )
    for a, b in zip(by_tree[:3], by_table[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    equal = by_tree[0] == 0
    np.testing.assert_array_equal(by_tree[3][equal], by_table[3][equal])
