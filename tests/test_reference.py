"""The Gaussian copula: right where the copula is Gaussian, zero where sides are independent."""

import numpy as np
import pytest

from deminat import Estimator, GaussianCopula, Training
from deminat.tasks import gaussian, get

STILL = Training(steps=1, learning_rate=0.0, halve_at=())  # the network stays zero


def baseline_of(task, n=5_000, seed=0):
    x, y = task.sample(n, seed)
    x_new, y_new = task.sample(4_000, seed + 1)
    baseline = GaussianCopula.fit(x, y)
    return baseline, x_new, y_new, (baseline.left(x_new) * baseline.right(y_new)).sum(axis=1)


@pytest.mark.parametrize(
    "task",
    [
        gaussian(1, 0.5),
        gaussian(5, 2.0),
        get("multinormal-dense-3-3-0.5"),
        get("half_cube-1v1-normal-0.75"),
    ],
    ids=lambda t: t.name,
)
def test_it_is_the_log_ratio_of_a_gaussian_copula(task):
    _, x, y, scores = baseline_of(task)
    truth = task.log_ratio(x, y)
    assert np.corrcoef(scores, truth)[0, 1] > 0.98
    error = (scores - truth).std() / len(x) ** 0.5
    assert abs((scores - truth).mean()) < 4 * error + 0.02


def test_many_columns_of_noise_are_dropped():
    baseline, *_, scores = baseline_of(gaussian(30, 0.0), n=1_000)
    assert len(baseline.correlations) == 0
    assert np.allclose(scores, 0)


def test_it_finds_most_of_the_information_in_many_columns():
    task = get("multinormal-sparse-25-25-2-2.0")
    *_, scores = baseline_of(task)
    assert scores.mean() == pytest.approx(task.mi, abs=0.1)


def test_constant_and_collinear_columns_do_no_harm():
    x, y = gaussian(1, 1.0).sample(2_000, seed=0)
    x = np.hstack([x, np.ones_like(x), 2 * x])
    baseline = GaussianCopula.fit(x, y)
    assert np.isfinite(baseline.left(x)).all()
    assert (baseline.left(x) * baseline.right(y)).sum(axis=1).mean() == pytest.approx(1.0, abs=0.15)


def test_a_zero_critic_leaves_the_baseline():
    x, y = gaussian(3, 1.0).sample(3_000, seed=0)
    fitted = Estimator(training=STILL, baseline=GaussianCopula.choose).fit(x, y)
    baseline = fitted.scales_.baseline
    expected = (baseline.left(x) * baseline.right(y)).sum(axis=1)
    np.testing.assert_allclose(fitted.log_ratio(x, y), expected, atol=1e-4)


def test_high_information_is_not_spoilt_by_shrinkage():
    task = gaussian(20, 30.0)
    x, y = task.sample(3_000, seed=0)
    fitted = Estimator(training=STILL).fit(x[:2_000], y[:2_000])
    assert fitted.estimate(x[2_000:], y[2_000:]).mi == pytest.approx(30, abs=1.5)


def test_a_baseline_that_misleads_is_dropped():
    class Wrong(GaussianCopula):
        def left(self, x):
            return -super().left(x)

    x, y = gaussian(3, 1.0).sample(1_000, seed=0)
    fitted = Estimator(baseline=Wrong.choose, training=STILL).fit(x, y)
    assert fitted.scales_.baseline is None
    assert np.allclose(fitted.log_ratio(x, y), 0)
