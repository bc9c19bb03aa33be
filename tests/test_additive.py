"""The sum over pairs of columns: exact for tables, zero where columns are independent."""

import numpy as np
import pytest

from deminat import Estimator, GaussianCopula
from deminat.critics.baselines import Additive, choose_baseline
from deminat.data.sample import as_sample
from deminat.tasks import gaussian
from deminat.tasks.mixed import labelled, mixed_tasks

TASKS = mixed_tasks()


def drawn(name, n, seed=0):
    """Return encoded columns of a task and the true log ratio of each row."""
    task = TASKS[name]
    x, y = task.sample(n, seed)
    sample = as_sample(labelled(x, task.labels_x), labelled(y, task.labels_y))
    sample = sample.without_constants()
    return sample.x, sample.y, task.log_ratio(x, y)


def ratio_of(baseline, x, y):
    return (baseline.left(x) * baseline.right(y)).sum(axis=1)


def test_of_a_table_it_is_the_logarithm_of_observed_over_expected():
    x, y, _ = drawn("category-category", 60_000)
    baseline = Additive.fit(x, y)
    i, j = x.argmax(axis=1), y.argmax(axis=1)
    counts = np.zeros((x.shape[1], y.shape[1]))
    np.add.at(counts, (i, j), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    known = np.log(counts / expected)[i, j]
    # It learns from 20,000 rows of them, the rarest cell has 1 in 100: 200 rows, 1/sqrt(200) nats.
    assert np.abs(ratio_of(baseline, x, y) - known).max() < 0.3
    assert np.abs(ratio_of(baseline, x, y) - known).mean() < 0.05


@pytest.mark.parametrize("name", TASKS)
def test_it_is_close_to_the_log_ratio_of_independent_pairs_of_columns(name):
    baseline = Additive.fit(*drawn(name, 8_000)[:2])
    x, y, truth = drawn(name, 4_000, seed=1)
    error = ratio_of(baseline, x, y) - truth
    assert np.corrcoef(ratio_of(baseline, x, y), truth)[0, 1] > 0.9
    assert abs(error.mean()) < 4 * error.std() / len(x) ** 0.5 + 0.03


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_are_not_related_have_no_baseline(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (2_000, 6)).astype(float)
    y = np.maximum(rng.normal(size=(2_000, 3)), 0)
    assert Additive.fit(x, y) is None


def test_a_column_may_be_constant_in_the_rows_that_it_learns_from():
    x, y, _ = drawn("boolean", 2_000)
    baseline = Additive.fit(np.hstack([np.zeros_like(x), x]), y)
    assert baseline.pairs == 1
    other = np.hstack([np.ones_like(x), x])
    assert np.isfinite(baseline.left(other)).all()


def test_weights_are_few_however_many_columns_are_related():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3_000, 1))
    x, y = (np.round(z + 0.5 * rng.normal(size=(3_000, 40)), 1) for _ in range(2))
    assert (Additive.fit(x, y).weights != 0).sum() <= 400


def test_it_is_chosen_where_columns_have_few_values_and_it_is_better():
    x, y, _ = drawn("mixed", 3_000)
    baseline = choose_baseline(x[:2_500], y[:2_500], x[2_500:], y[2_500:])
    assert isinstance(baseline, Additive)
    assert baseline.name == f"sum over {baseline.pairs} pairs of columns"
    x, y = gaussian(2, 1.0).sample(3_000, seed=0)
    baseline = choose_baseline(x[:2_500], y[:2_500], x[2_500:], y[2_500:])
    assert isinstance(baseline, GaussianCopula)
    x = np.round(x, 1)  # still normal: the copula has fewer weights
    baseline = choose_baseline(x[:2_500], y[:2_500], x[2_500:], y[2_500:])
    assert isinstance(baseline, GaussianCopula)


def test_five_pairs_of_mixed_columns_are_measured_to_a_hundredth():
    x, y, truth = drawn("mixed", 6_000, seed=5)
    fitted = Estimator().fit(x[:4_000], y[:4_000])
    assert isinstance(fitted.scales_.baseline, Additive)
    error = fitted.log_ratio(x[4_000:], y[4_000:]) - truth[4_000:]
    # Each weight adds variance: some 150 of 3,300 rows, 150 / (2 * 3,300) = 0.02 nats.
    assert error.mean() == pytest.approx(-0.02, abs=4 * error.std() / len(error) ** 0.5 + 0.02)


def test_a_few_rows_do_not_make_scores_large():
    """Next to a frequent value a knot may stand for hardly any row."""
    for seed in range(3):
        x, y, truth = drawn("zero-inflated", 8_000, seed)
        assert ratio_of(Additive.fit(x, y), x, y).max() < truth.max() + 1
