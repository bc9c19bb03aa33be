"""What comes with an estimate: the test is exact, the bound a bound."""

from bisect import bisect_left
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, norm

import deminat
from deminat import MIResult
from deminat.data.sample import RowOptions, as_sample
from deminat.data.units import row_pairs
from deminat.errors import DataError
from deminat.estimators.crossfit import CrossFit
from deminat.estimators.neighbours import Neighbours
from deminat.estimators.scores import Scores, standard_error
from deminat.inference.independence import _blocks, independence_test
from deminat.inference.interval import interval, range_warnings
from deminat.inference.lower_bound import _CLIPS, _SHARES, _log_mean, lower_bound
from deminat.inference.sequential import _is_zero, sequential_parts
from deminat.tasks import gaussian, get
from deminat.training.config import Training
from test_serial import slow_series

QUICK = Training(batch=64, steps=50)


def normals(n, d=1, seed=0):
    return np.random.default_rng(seed).normal(size=(2, n, d))


# The test of independence


def test_noise_shared_by_folds_is_why_critics_are_trained_in_sequence():
    # Two folds, each tested by the 30 sample correlations of the other: both give the same inner
    # product, so that their sum is twice it, while permuted ones differ and have half the variance.
    r = np.random.default_rng(0).normal(size=(2, 20_000, 30))  # in standard errors
    total = 2 * (r[0] * r[1]).sum(axis=1)
    permuted = np.sqrt((r**2).sum(axis=(0, 2)))  # standard deviation, given both critics
    assert (total > norm.isf(0.05) * permuted).mean() == pytest.approx(0.12, abs=0.01)


def test_groups_are_permuted_with_others_of_like_size():
    labels = np.repeat(np.arange(60), [2] * 30 + [3] * 25 + [9] * 5)
    blocks = _blocks(labels, len(labels), np.random.default_rng(0))
    assert [block.shape for block in blocks] == [(30, 3), (30, 2)]  # the largest are cut
    for block in blocks:
        assert all(len(set(labels[row])) == 1 for row in block)
    rows = np.concatenate([block.ravel() for block in blocks])
    assert len(set(rows)) == len(rows)


def test_one_small_group_does_not_cost_the_others_their_rows():
    labels = np.r_[np.repeat(np.arange(100), 50), 100]
    (block,) = _blocks(labels, len(labels), np.random.default_rng(0))
    assert block.shape == (100, 50)


@pytest.mark.parametrize("relation", [lambda x: 0.3 * x, np.square, lambda x: np.cos(3 * x)])
def test_dependence_is_found(relation):
    x, noise = normals(1_000)
    assert independence_test(x, relation(x) + noise).p_value < 0.001


def test_series_are_shifted_not_shuffled():
    rejected = [
        independence_test(slow_series(600, s), slow_series(600, s + 1000), order=True).p_value
        <= 0.05
        for s in range(40)
    ]
    assert sum(rejected) <= 7  # one in a hundred would have more at a level of 8%
    x = slow_series(600, 0)
    late = np.random.default_rng(0).permutation(600)
    y = x + 0.5 * slow_series(600, 1)
    assert independence_test(x[late], y[late], order=late).p_value < 0.01


def test_a_short_slow_series_is_refused():
    x, y = slow_series(30, 0, 0.999), slow_series(30, 1, 0.999)
    with pytest.raises(DataError, match="collect a longer series"):
        independence_test(x, y, order=True)


def test_one_seed_gives_one_answer_and_nothing_varies_nothing():
    x, y = normals(200)
    assert independence_test(x, y, seed=3) == independence_test(x, y, seed=3)
    assert independence_test(x, np.ones(200)).p_value == 1
    with pytest.raises(ValueError, match="permutations must be at least"):
        independence_test(x, y, permutations=5)


def test_few_groups_are_all_permuted():
    x, noise = normals(240)
    for count, least in ((3, 1 / 6), (6, 1 / 720), (12, 0)):
        result = independence_test(x, x + 0.5 * noise, groups=np.arange(240) % count)
        assert result.p_value == pytest.approx(max(least, 0.001), abs=0.02)
        assert [w.code for w in result.warnings] == ["underpowered"] * (count == 3)


def test_small_samples_are_exact_too():
    p = [
        independence_test(
            *np.random.default_rng(s).standard_cauchy((2, 40)), permutations=99
        ).p_value
        for s in range(200)
    ]
    assert kstest(np.array(p) - 0.5 / 100, "uniform").pvalue > 1e-3


def test_zeros_that_coincide_are_no_copies():
    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = (rng.exponential(size=2_000) * (rng.random(2_000) > 0.09) for _ in "xy")
        assert as_sample(x, y).labels is None
        rejected += independence_test(x, y).p_value <= 0.05
    assert rejected <= 10


def test_rows_shuffled_by_the_same_seed_are_still_split_at_random():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 400))
    x, y = x[np.argsort(x + y)], y[np.argsort(x + y)]
    order = np.random.default_rng(0).permutation(400)
    parts = sequential_parts(as_sample(x[order], y[order]), seed=0)
    means = [float((part.sample.x + part.sample.y).mean()) for part in parts]
    assert max(map(abs, means)) < 0.5


def test_a_large_group_leaves_nothing_to_be_cut():
    x, y = normals(2_000)
    groups = np.r_[np.zeros(1_600), np.arange(400) // 2 + 1]
    assert 0 < independence_test(x, y, groups=groups).p_value <= 1


def test_few_rows_and_images_are_tested_too():
    x, y = normals(20)
    assert 0 < independence_test(x, y).p_value <= 1
    images = np.random.default_rng(0).normal(size=(80, 1, 4, 4))
    assert independence_test(images, images + 0.1).p_value < 0.01


def test_results_are_lines_and_dictionaries():
    x, _ = normals(60)
    result = independence_test(x, x)
    assert str(result) == "p < 0.001  n=60  ranks"
    assert result.to_dict()["unit"] == "log H"
    pairs = independence_test(np.c_[x, x], x)
    assert str(pairs) == "p = 0.001  n=60  999 permutations"
    assert pairs.to_dict()["unit"] == "log H"
    assert result.to_dict()["p_value"] == result.p_value


# Critics in sequence


def test_parts_are_not_known_to_the_critics_that_score_them():
    x, y = normals(200)
    parts = sequential_parts(as_sample(x, y), seed=0)
    assert [len(part) for part in parts] == [60, 60]
    rows = [{float(v) for v in part.sample.x[:, 0]} for part in parts]
    assert not rows[0] & rows[1]


def test_terms_of_one_side_count_as_zero():
    x, y = np.random.default_rng(0).normal(size=(2, 9))
    assert _is_zero(np.add.outer(x, y))
    assert not _is_zero(np.multiply.outer(x, y))


def test_a_zero_critic_is_replaced_by_correlations():
    for seed in range(3):
        for part in sequential_parts(as_sample(*normals(300, seed=seed)), seed):
            assert np.ptp(part.left @ part.right.T) > 0.01


# The lower bound


def tables_of(task, n, seed, bend=lambda f: f):
    x, y = task.sample(n, seed=seed)
    rows = row_pairs(as_sample(x, y), 0)[0]
    left, right = rows.repeat(2, axis=1).ravel(), np.tile(rows, (1, 2)).ravel()
    return bend(task.log_ratio(x[left], y[right])).reshape(1, -1, 2, 2)


def test_a_perfect_critic_proves_most_of_it_given_many_pairs():
    task = gaussian(2, 1.0)
    few, many = (lower_bound([], [tables_of(task, n, 0)]) for n in (800, 40_000))
    assert 0.3 < few < many
    assert 0.9 < many < 1


def test_nothing_is_proved_by_a_zero_critic_or_by_no_rows():
    assert lower_bound([np.zeros((1, 200, 2, 2))]) == 0
    assert lower_bound([np.zeros((1, 0, 2, 2))]) == 0
    assert lower_bound([]) == 0


BENDS = {
    "true": lambda f: f,
    "overscaled": lambda f: 3 * f,
    "shifted": lambda f: f + 2,
    "noisy": lambda f: f + np.random.default_rng(0).normal(size=f.shape),
}


@pytest.mark.parametrize("name", ["1v1-normal-0.75", "student-identity-1-1-1", "1v1-additive-0.1"])
@pytest.mark.parametrize("bend", BENDS)
def test_the_bound_is_rarely_above_the_truth_whatever_the_critic(name, bend):
    task = get(name)
    bounds = [
        lower_bound(tables_of(task, 320, s, BENDS[bend]).reshape(2, 1, -1, 2, 2)) for s in range(40)
    ]
    assert sum(b > task.mi for b in bounds) <= 5


def jensen_shannon_bound(tables):
    """Return what the same e-values prove of the Jensen-Shannon divergence, as information."""

    def gains(clip):
        f = np.clip(tables, -clip, clip)
        signs = np.array([[-1, 1], [1, -1]])
        value = np.log(2) - np.logaddexp(0, signs * f).mean(axis=(0, 2, 3))
        floor = np.log(2) - np.logaddexp(0, clip)
        return floor, value - floor

    each = [gains(clip) for clip in _CLIPS]

    def is_refuted(m):
        ratios = [gain / (m - floor) for floor, gain in each]
        logs = [np.log1p(np.multiply.outer(_SHARES, r - 1)).sum(axis=1) for r in ratios]
        return _log_mean(logs) >= np.log(20)

    steps = np.linspace(0, np.log(2), 400)[:-1]
    proved = bisect_left(steps, True, key=lambda m: not is_refuted(m))
    return least_information(steps[proved - 1]) if proved else 0.0


def least_information(divergence):
    """Return the least KL divergence of two coins with at least this Jensen-Shannon divergence."""
    coin = norm.cdf(np.linspace(-6, 6, 500))
    p, q = (np.stack([a, 1 - a]) for a in np.meshgrid(coin, coin))
    middle = (p + q) / 2
    shannon = (p * np.log(p / middle) + q * np.log(q / middle)).sum(axis=0) / 2
    return (p * np.log(p / q)).sum(axis=0)[shannon >= divergence].min()


@pytest.mark.parametrize("name", ["1v1-normal-0.75", "gaussian-5d-3nats", "student-identity-5-5-2"])
@pytest.mark.parametrize("bend", ["true", "overscaled", "noisy"])
@pytest.mark.parametrize("n", [1_000, 10_000])
def test_the_jensen_shannon_divergence_would_prove_less(name, bend, n):
    tables = tables_of(get(name), n, 0, BENDS[bend])
    assert jensen_shannon_bound(tables) <= lower_bound([tables])


def test_independent_pairs_prove_nothing_whatever_the_scores():
    rng = np.random.default_rng(0)
    bounds = [lower_bound([rng.normal(size=(1, 240, 2, 2))]) for _ in range(60)]
    assert sum(b > 0 for b in bounds) <= 7


def test_pairs_of_rows_hold_independent_rows():
    x, y = normals(240)
    groups = np.arange(240) // 5
    rows = row_pairs(as_sample(x, y, RowOptions(groups=groups)), 0)
    assert rows.shape == (5, 24, 2)
    for draw in rows:
        assert len(set(groups[draw].ravel())) == 48
    assert (groups[rows] == groups[rows[0]]).all()  # units stay in their pairs
    assert len(set(rows[:, 0, 0])) == 5
    assert row_pairs(as_sample(x, y), 0).shape == (1, 120, 2)


# Both in a result


@pytest.fixture(scope="module")
def result():
    x, y = gaussian(1, 0.5).sample(600, seed=0)
    return deminat.estimate(x, y, folds=2, budget=3)


def test_estimates_come_with_an_interval_a_p_value_and_a_bound(result):
    low, high = result.interval
    assert result.lower_bound < low < result.mi < high
    assert low < 0.5 < high
    assert f"95% interval [{low:.3f}, {high:.3f}]" in str(result)
    assert result.p_value < 0.001
    assert 0 < result.lower_bound < 0.5
    assert f"p < 0.001  at least {result.lower_bound:.3f}  n=600" in str(result)
    written = result.to_dict("bits")
    assert written["lower_bound"] == pytest.approx(result.lower_bound / np.log(2))
    assert "(95% confidence)" in result._repr_html_()


def test_methods_that_train_nothing_have_neither():
    x, y = normals(100)
    result = deminat.estimate(x, y, method="gaussian")
    assert result.interval is None is result.p_value is result.lower_bound
    assert "s.e." in str(result)


def test_series_have_no_bound_and_closed_forms_do_not_know_groups():
    x, y = normals(200)
    series = deminat.estimate(x, y, method=deminat.Estimator(training=QUICK), folds=2, order=True)
    assert series.lower_bound is None
    assert series.p_value is not None
    warnings = deminat.estimate(x, y, method="ksg", groups=np.arange(200) // 4).warnings
    assert [w.code for w in warnings if w.code == "ungrouped"] == ["ungrouped"]


def test_a_short_series_has_an_estimate_without_a_p_value():
    x, y = slow_series(40, 0), slow_series(40, 1)
    quick = deminat.Estimator(training=QUICK)
    result = deminat.estimate(x, y, method=quick, folds=2, order=True)
    assert result.p_value is None
    assert np.isfinite(result.mi)


def test_standard_errors_count_groups_not_rows():
    rng = np.random.default_rng(0)
    joint = np.repeat(rng.normal(size=40), 25)
    scores = Scores(joint, np.zeros((1_000, 1)))
    rows, groups = (
        standard_error(deminat.DEMI(), scores, u) for u in (None, np.arange(1_000) // 25)
    )
    assert groups == pytest.approx(5 * rows, rel=0.2)


def test_only_mean_log_ratios_have_an_interval():
    x, y = gaussian(1, 0.5).sample(300, seed=0)
    quick = [deminat.Estimator(o, training=QUICK) for o in (deminat.DEMI(), deminat.CCMI())]
    demi, ccmi = deminat.compare(x, y, methods=quick, folds=2)
    assert demi.interval is not None
    assert ccmi.interval is None
    assert ccmi.lower_bound == demi.lower_bound


def a_fit(optimism=0.0, baseline=0.5, scatter=0.0):
    means = (0.5 - scatter, 0.5 + scatter)
    training = tuple(m + 2 * optimism for m in means)
    return CrossFit(None, (), means, training, (baseline,) * 2, ())


def test_intervals_allow_for_sampling_noise_training_and_missed_information():
    result = MIResult(0.5, 0.01, 5_000, "demi", np.zeros(2))
    low, high = interval(result, a_fit(), 5_000)
    assert (low, high) == pytest.approx((0.4804, 0.5196), abs=1e-4)
    assert interval(result, a_fit(scatter=0.015), 5_000)[1] == high  # within sampling noise
    wide = interval(result, a_fit(scatter=0.1), 5_000)[1]
    assert wide == pytest.approx(0.5 + 12.706 * 0.1, abs=1e-3)
    assert interval(result, a_fit(optimism=0.02), 5_000) == pytest.approx((low - 0.01, high + 0.02))
    assert interval(result, a_fit(baseline=0.1), 5_000) == pytest.approx((low, high + 0.06))
    both = a_fit(optimism=0.02, baseline=0.0)  # networks found everything
    assert interval(result, both, 5_000) == pytest.approx((low - 0.01, high + 0.06 + 0.075))
    told = Neighbours(np.random.default_rng(0).normal(0, 0.5, 10_000), np.zeros(10_000))
    seen = replace(a_fit(optimism=0.02, baseline=0.0), neighbours=told)
    error = 1.5 * 1.96 * told.error
    assert interval(result, seen, 5_000) == pytest.approx((low - error / 2, high + error), abs=1e-5)
    assert interval(replace(result, mi=-0.1), a_fit(baseline=0), 5_000)[0] == 0


def test_no_interval_says_that_pairs_hide_nothing():
    zero = MIResult(0.0, 0.0, 5_000, "demi", np.zeros(2))
    fit = CrossFit(None, (), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), ())
    assert interval(zero, fit, 5_000) == (0.0, 6.5 / 5_000)
    assert interval(replace(zero, lower_bound=0.1), fit, 5_000) == (0.0, 0.1)


def test_intervals_outside_the_validated_range_have_a_warning():
    x, y = normals(5_000)
    good = MIResult(0.5, 0.01, 5_000, "demi", np.zeros(2))
    assert list(range_warnings(good, as_sample(x, y), True)) == []
    for other, sample in [
        (replace(good, mi=3.5), as_sample(x, y)),
        (good, as_sample(x[:400], y[:400])),
        (good, as_sample(*normals(50, d=21))),
    ]:
        (caution,) = range_warnings(other, sample, True)
        assert caution.code == "unvalidated"
    (caution,) = range_warnings(good, as_sample(x, y), False)
    assert "another recipe than the default" in caution.message
