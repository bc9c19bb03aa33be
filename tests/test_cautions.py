"""Warnings appear on runs that deserve them, and not on others."""

import dataclasses

import numpy as np
import pytest

import deminat
from deminat import DEMI, tasks
from deminat.data.sample import as_sample
from deminat.estimators.crossfit import CrossFit
from deminat.estimators.scores import Scores, result_from_scores
from deminat.inference.diagnostics import calibration, contradictions, diagnose, limited
from deminat.inference.interval import interval
from deminat.training.callbacks import History
from deminat.training.config import Training

FINISHED = History(100, 100, 0.5, (), 0)


def a_fit(task, n=3_000, seed=0, bend=lambda f: f, gap=0.0, histories=(FINISHED,) * 5):
    """A run whose critic is the task's own log ratio, distorted."""
    x, y = task.sample(n, seed=seed)
    joint = bend(task.log_ratio(x, y))
    shifts = [bend(task.log_ratio(x, np.roll(y, k, axis=0))) for k in range(1, 9)]
    means = (float(joint.mean()),) * 5
    training = tuple(m + gap for m in means)
    scores = Scores(joint, np.stack(shifts, axis=1))
    return CrossFit(scores, histories, means, training, (0.0,) * 5, ())


def codes(fit):
    result = result_from_scores(DEMI(), fit.scores)
    return [caution.code for caution in diagnose(result, fit, result.n)[0]]


NAMES = [*tasks.names()[:14], *tasks.names()[19:25]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [300, 3_000])
def test_a_right_critic_is_not_suspected(name, n):
    for seed in range(3):
        assert codes(a_fit(tasks.get(name), n, seed)) == []


@pytest.mark.parametrize(
    ("bend", "expected"),
    [
        (lambda f: f + 0.5, {"normaliser", "uncalibrated"}),
        (lambda f: 2.5 * f, {"normaliser", "uncalibrated"}),
        (lambda f: 0.2 * f, {"normaliser", "uncalibrated"}),
        (
            lambda f: f + np.random.default_rng(0).normal(size=f.shape),
            {"normaliser", "uncalibrated"},
        ),
    ],
)
def test_a_wrong_critic_is(bend, expected):
    assert set(codes(a_fit(tasks.gaussian(2, 1.0), bend=bend))) == expected


def test_the_normaliser_is_not_checked_where_it_cannot_be():
    fit = a_fit(tasks.gaussian(5, 6.0), n=3_000)
    result = result_from_scores(DEMI(), fit.scores)
    cautions, figures = diagnose(result, fit, result.n)
    assert not figures["normaliser_checkable"]
    assert [c.code for c in cautions if c.code == "normaliser"] == []
    low = a_fit(tasks.gaussian(1, 1.0))
    assert diagnose(result_from_scores(DEMI(), low.scores), low, 3_000)[1]["normaliser_checkable"]


def test_memorised_pairs_have_a_warning():
    task = tasks.gaussian(2, 1.0)
    assert codes(a_fit(task, gap=0.1)) == []
    assert codes(a_fit(task, gap=0.4)) == ["overfit"]


def test_training_that_was_cut_short_has_a_warning():
    task, falling = tasks.gaussian(2, 1.0), History(100, 100, 0.5, (), 0, falling=True)
    assert codes(a_fit(task, histories=(falling,) * 2 + (FINISHED,) * 3)) == []
    assert codes(a_fit(task, histories=(falling,) * 3 + (FINISHED,) * 2)) == ["unfinished"]


def test_pairs_that_are_all_separated_may_hold_any_information():
    fit = a_fit(tasks.gaussian(5, 30.0), n=300)
    assert codes(fit) == ["infinite"]
    (caution,) = diagnose(result_from_scores(DEMI(), fit.scores), fit, 300)[0]
    assert "300 pairs by themselves can show about 5.7 nats" in caution.message


def test_a_calibration_curve_is_straight_for_a_right_critic():
    curve = calibration(a_fit(tasks.gaussian(1, 0.5), n=20_000).scores)
    assert len(curve) == 10
    assert sum(b.share for b in curve) == pytest.approx(1)
    observed, predicted = [b.observed for b in curve], [b.predicted for b in curve]
    assert observed == pytest.approx(predicted, abs=0.03)


# On real runs, short ones


def estimated(x, y, **more):
    return deminat.estimate(x, y, folds=2, budget=4, **more)


@pytest.mark.parametrize("bend", [lambda x: x**3, np.sin, lambda x: np.abs(x)], ids=range(3))
def test_an_exact_function_is_noticed_whatever_is_estimated(bend):
    x = np.random.default_rng(0).normal(size=400)
    result = deminat.estimate(x, bend(x), folds=2, preset="quick")
    assert [c.code for c in result.warnings].count("infinite") == 1
    noisy = deminat.estimate(x, bend(x) + 0.1 * x[::-1], folds=2, preset="quick")
    assert "infinite" not in [c.code for c in noisy.warnings]


def test_a_function_may_have_infinite_information():
    x = np.random.default_rng(0).normal(size=400)
    result = estimated(x, np.exp(x))
    assert "infinite" in [w.code for w in result.warnings]
    assert result.lower_bound > 1


def test_a_training_of_a_few_steps_is_unfinished():
    x, y = tasks.gaussian(20, 2.0).sample(3_000, seed=0)
    hasty = deminat.Estimator(
        critic=deminat.MLPCritic, baseline=None, training=Training(steps=200, halve_at=())
    )
    codes = [w.code for w in deminat.estimate(x, y, method=hasty, folds=2).warnings]
    assert "unfinished" in codes


def test_a_critic_that_memorised_its_rows_is_overfitted():
    x, y = tasks.gaussian(5, 0.5).sample(300, seed=0)
    keen = deminat.Estimator(
        critic=deminat.MLPCritic, baseline=None, training=Training(epochs=100, halve_at=())
    )
    codes = [w.code for w in deminat.estimate(x, y, method=keen, folds=2).warnings]
    assert "overfit" in codes


def an_answer(mi, **about):
    return deminat.MIResult(mi, 0.01, 1_000, "demi", np.full(1_000, mi), **about)


def found(result, x, y):
    return [caution.code for caution in contradictions(result, as_sample(x, y))]


def test_an_estimate_below_the_lower_bound_has_a_warning():
    x, y = np.random.default_rng(0).normal(size=(2, 1_000))
    assert found(an_answer(0.5, lower_bound=0.6), x, y) == ["below_bound"]
    assert found(an_answer(0.5, lower_bound=0.4), x, y) == []
    assert found(an_answer(-0.001, lower_bound=0.0), x, y) == []


def test_no_estimate_is_below_the_lower_bound():
    x, y = np.random.default_rng(0).normal(size=(2, 1_000))
    sample = as_sample(x, y)
    raised = limited(an_answer(0.5, lower_bound=0.6, interval=(0.3, 0.7)), sample)
    assert raised.mi == 0.6
    assert raised.pointwise.mean() == pytest.approx(0.6)
    assert raised.interval == (0.3, 0.7)
    for unchanged in (
        an_answer(0.5, lower_bound=0.4, interval=(0.3, 0.7)),
        an_answer(-0.01, lower_bound=0.0, interval=(0.0, 0.1)),
        an_answer(0.5, interval=(0.3, 0.7)),
    ):
        assert limited(unchanged, sample) is unchanged


@pytest.mark.parametrize(("mi", "expected"), [(0.72, ["entropy"]), (0.70, []), (0.3, [])])
def test_an_estimate_above_the_entropy_of_a_side_has_a_warning(mi, expected):
    rng = np.random.default_rng(0)
    coin, number = rng.integers(0, 2, 1_000).astype(float), rng.normal(size=1_000)
    assert found(an_answer(mi), coin, number) == expected
    assert found(an_answer(mi), number, coin) == expected


def test_values_that_are_seldom_repeated_have_no_entropy():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 200, size=(2, 1_000)).astype(float)
    assert found(an_answer(9.0), x, y) == []


def test_no_interval_ends_below_the_lower_bound():
    fit = a_fit(tasks.gaussian(2, 1.0))
    result = dataclasses.replace(result_from_scores(DEMI(), fit.scores), lower_bound=3.0)
    assert interval(result, fit, 5_000)[1] == 3.0
