"""What nearest neighbours tell beyond a critic: nothing beyond the truth, and what it misses.

A random check allows Z = 4.5 times the standard deviation that was seen over 16 seeds, which is
up to twice the standard error that neighbours claim.
"""

import numpy as np
import pytest

import deminat
from deminat import tasks
from deminat.data.sample import RowOptions, as_sample
from deminat.estimators.neighbours import Neighbours, neighbours_of
from deminat.tasks.noisy import variance

Z = 4.5
N = 6_000


def told(task, f, n=N, seed=0):
    x, y = task.sample(n, seed)
    sample = as_sample(x, y)
    rows = np.arange(n)
    joint = f(x, y)
    return neighbours_of(lambda s, i, j: f(s.x[i], s.y[j]), sample, rows, joint, 0), joint, (x, y)


@pytest.mark.parametrize(
    "task",
    [tasks.gaussian(1, 0.5), tasks.gaussian(1, 2.0), variance(0.7), tasks.additive_uniform(0.75)],
    ids=lambda task: task.name,
)
def test_neighbours_tell_nothing_beyond_the_truth(task):
    found, _, _ = told(task, task.log_ratio)
    assert abs(found.excess.mean()) < Z * 2 * found.error
    assert 0 < found.error < 0.01


def test_neighbours_tell_what_a_critic_misses():
    task = variance(0.7)  # y has no correlation with x
    found, joint, (x, y) = told(task, lambda x, y: np.zeros(len(x)))
    oracle = task.log_ratio(x, y).mean()
    assert oracle > 0.2
    assert found.excess.mean() == pytest.approx(oracle, abs=0.03)
    half = tasks.gaussian(1, 1.0)
    found, joint, (x, y) = told(half, lambda x, y: half.log_ratio(x, y) - 0.1)
    assert joint.mean() + found.excess.mean() == pytest.approx(
        half.log_ratio(x, y).mean(), abs=0.03
    )


def test_what_is_within_noise_is_left_out():
    found = Neighbours(np.random.default_rng(0).normal(0.01, 1.0, 10_000), np.zeros(10_000))
    nats, weight = found.correction(found.mean + found.error / 10)
    assert weight == 0
    assert nats == pytest.approx(found.mean, abs=found.error)
    far, weight = found.correction(found.mean - 10 * found.error)
    assert weight > 0.99
    assert far == pytest.approx(found.mean, abs=found.error / 5)


def test_neighbours_are_asked_about_single_continuous_columns_of_independent_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3_000, 1))
    zero = lambda s, i, j: np.zeros(len(i))  # noqa: E731
    rows, joint = np.arange(3_000), np.zeros(3_000)
    assert neighbours_of(zero, as_sample(x, y), rows, joint, 0) is not None
    for sample in (
        as_sample(np.hstack([x, y]), y),
        as_sample(np.round(x, 1), y),
        as_sample(rng.integers(3, size=3_000), y),
        as_sample(x, y, RowOptions(groups=np.arange(3_000) // 2)),
        as_sample(x, x + 1e-6 * y),  # more information than squares can show
    ):
        assert neighbours_of(zero, sample, rows, joint, 0) is None


def test_an_estimate_has_what_neighbours_tell_among_its_diagnostics():
    task = tasks.gaussian(1, 0.5)
    x, y = task.sample(3_000, seed=0)
    result = deminat.estimate(x, y, folds=2)
    assert result.mi == pytest.approx(task.log_ratio(x, y).mean(), abs=0.03)
    assert abs(result.diagnostics.neighbours) < 0.05
    assert 0 < result.diagnostics.neighbours_error < 0.01
    assert result.pointwise.mean() == pytest.approx(result.mi)
    two = deminat.estimate(np.hstack([x, y]), y + x, folds=2, preset="quick")
    assert "neighbours" not in two.diagnostics
