"""Which baseline is chosen: a copula while networks can improve it, a mixture where not."""

import time

import numpy as np
import pytest

from deminat import Estimator, GaussianCopula
from deminat.critics.baselines import Mixture, choose_baseline
from deminat.critics.baselines.base import log_ratio
from deminat.critics.baselines.copula import cross_entropy
from deminat.critics.baselines.ica import independent_frames
from deminat.data.transforms import RankToNormal, Standardize
from deminat.tasks import correlated_student, gaussian, mixture, rotated_cubic


def parts(x, y):
    """Return five sixths of the rows to fit and one sixth to judge by."""
    rows = len(x) * 5 // 6
    return x[:rows], y[:rows], x[rows:], y[rows:]


def chosen(task, n, seed=0, deadline=None):
    return choose_baseline(*parts(*task.sample(n, seed)), deadline)


def ratio_of(baseline, x, y):
    return log_ratio(baseline.left(x), baseline.right(y), baseline.components)


def has_given_frames(baseline):
    return baseline.frames.x is None and baseline.frames.y is None


@pytest.mark.parametrize("seed", range(3))
def test_of_independent_noise_nothing_is_said(seed):
    baseline = chosen(gaussian(3, 0.0), 1_500, seed)
    if baseline is not None:
        x, y = gaussian(3, 0.0).sample(1_500, seed=99)
        # Up to 9 correlations of 1,250 rows, none of which should pass: 9 / (2 * 1,250) nats.
        assert abs(ratio_of(baseline, x, y).mean()) < 0.005


def test_two_nats_of_a_gaussian_are_a_copula_that_a_network_may_go_on_from():
    task = gaussian(3, 2.0)
    baseline = chosen(task, 2_000)
    assert isinstance(baseline, GaussianCopula)
    assert baseline.informative
    assert has_given_frames(baseline)
    x, y = task.sample(4_000, seed=1)
    # 2 nats of 3 columns spread by 1.2 a pair: 4 standard errors are 0.08.
    assert ratio_of(baseline, x, y).mean() == pytest.approx(2, abs=0.1)


def test_a_rotation_of_columns_that_are_not_normal_is_undone():
    task = rotated_cubic(5, 5.0)
    x, y = task.sample(4_000, seed=0)
    baseline = choose_baseline(*parts(x, y))
    assert isinstance(baseline, GaussianCopula)
    assert baseline.informative
    assert baseline.frames.name == " of independent components"
    assert "independent components" in baseline.name
    plain = GaussianCopula.choose(*parts(x, y))
    x_new, y_new = task.sample(2_000, seed=1)
    assert ratio_of(baseline, x_new, y_new).mean() > ratio_of(plain, x_new, y_new).mean() + 0.5


def test_clusters_with_much_information_are_a_mixture_that_stands_alone():
    task = mixture(5, 20.0)
    x, y = task.sample(4_000, seed=0)
    baseline = choose_baseline(*parts(x, y))
    assert isinstance(baseline, Mixture)
    assert baseline.components > 1
    assert not baseline.informative
    x_new, y_new = task.sample(2_000, seed=1)
    # 8 components of 10 columns have some 500 parameters; a few % of the truth are lost.
    assert ratio_of(baseline, x_new, y_new).mean() == pytest.approx(task.mi, rel=0.03)


def test_thirty_nats_of_a_gaussian_are_a_gaussian_that_stands_alone():
    task = gaussian(20, 30.0)
    baseline = chosen(task, 2_400)
    assert isinstance(baseline, GaussianCopula)
    assert not baseline.informative
    assert baseline.components == 1
    assert baseline.name == "Gaussian, 20 correlations"
    assert isinstance(baseline.x_scale, Standardize)
    x, y = task.sample(1_000, seed=1)
    assert ratio_of(baseline, x, y).mean() == pytest.approx(30, rel=0.03)
    repeated = baseline.refit(x, y)
    assert isinstance(repeated.x_scale, Standardize)
    assert not repeated.informative


def test_thirty_nats_of_cubed_columns_are_a_copula_that_stands_alone():
    x, y = gaussian(10, 30.0).sample(2_500, seed=0)
    baseline = choose_baseline(*parts(x**3, y**3))
    assert isinstance(baseline, GaussianCopula)
    assert not baseline.informative
    assert isinstance(baseline.x_scale, RankToNormal)


def test_correlations_near_one_are_read_in_full():
    """Seven nats a column are a correlation of 0.9999992; the Gaussian must not stop short."""
    task = gaussian(3, 20.0)
    x, y = task.sample(4_000, seed=0)
    baseline = choose_baseline(x[:2_500], y[:2_500], x[2_500:3_000], y[2_500:3_000])
    # Of 1,000 pairs that spread by 1.7, and 2,500 rows that cost 0.01: 2% are plenty.
    assert ratio_of(baseline, x[3_000:], y[3_000:]).mean() == pytest.approx(20, rel=0.02)


@pytest.mark.parametrize("side", ["x", "y", "both"])
def test_ties_have_no_density_and_so_no_mixture(side):
    x, y = mixture(3, 20.0).sample(2_000, seed=0)
    x = np.round(x, 1) if side in ("x", "both") else x
    y = np.round(y, 1) if side in ("y", "both") else y
    baseline = choose_baseline(*parts(x, y))
    assert baseline is None or (not isinstance(baseline, Mixture) and has_given_frames(baseline))


def test_one_column_of_ties_is_enough():
    x, y = mixture(3, 20.0).sample(2_000, seed=0)
    x[:, 1] = x[:, 1] > 0
    baseline = choose_baseline(*parts(x, y))
    assert baseline is None or (not isinstance(baseline, Mixture) and has_given_frames(baseline))


@pytest.mark.parametrize(
    "task", [mixture(3, 20.0), rotated_cubic(3, 5.0), gaussian(3, 15.0)], ids=lambda t: t.name
)
def test_few_rows_are_for_a_copula_only(task):
    baseline = chosen(task, 350)  # 291 to fit
    assert baseline is None or (isinstance(baseline, GaussianCopula) and has_given_frames(baseline))
    assert baseline is None or baseline.informative


@pytest.mark.parametrize("task", [mixture(3, 20.0), rotated_cubic(3, 5.0)], ids=lambda t: t.name)
def test_after_the_deadline_there_is_the_plain_copula(task):
    x, y = task.sample(1_500, seed=0)
    late = choose_baseline(*parts(x, y), time.monotonic() - 1)
    plain = GaussianCopula.choose(*parts(x, y))
    assert has_given_frames(late)
    np.testing.assert_array_equal(late.correlations, plain.correlations)
    np.testing.assert_array_equal(late.left(x), plain.left(x))
    assert late.informative


def test_a_deadline_far_ahead_changes_nothing():
    task = mixture(3, 20.0)
    never, later = chosen(task, 1_500), chosen(task, 1_500, deadline=time.monotonic() + 1e4)
    assert never.name == later.name
    np.testing.assert_array_equal(never.means, later.means)


def test_copies_that_are_neighbours_do_not_spoil_the_choice():
    """A copy of a row is no unpaired sample for it, so partners must not be the next rows."""
    task = gaussian(3, 2.0)
    x, y = task.sample(2_000, seed=0)
    baseline = GaussianCopula.choose(*parts(x, y))
    x_held, y_held = task.sample(1_000, seed=1)
    once = cross_entropy(baseline.left(x_held), baseline.right(y_held))
    twice = cross_entropy(
        baseline.left(np.repeat(x_held, 2, axis=0)), baseline.right(np.repeat(y_held, 2, axis=0))
    )
    # 4 standard errors of 1,000 pairs, whose losses spread by about 0.5.
    assert twice == pytest.approx(once, abs=0.07)
    repeated = choose_baseline(*(np.repeat(a, 2, axis=0) for a in parts(x, y)))
    assert isinstance(repeated, GaussianCopula)
    assert ratio_of(repeated, x_held, y_held).mean() == pytest.approx(2, abs=0.2)


def test_the_cross_entropy_of_zero_scores_is_that_of_a_coin():
    nothing = np.zeros((10, 2))
    assert cross_entropy(nothing, nothing) == pytest.approx(np.log(2))


def test_frames_are_for_columns_that_are_not_collinear():
    x, y = gaussian(2, 1.0).sample(500, seed=0)
    assert independent_frames(x[:, :1], y[:, :1]) is None
    assert independent_frames(np.hstack([x, x]), y) is None
    assert independent_frames(np.hstack([x, np.ones((500, 1))]), y) is None
    frames = independent_frames(x, y[:, :1])
    assert frames.x.shape == (2, 2)
    assert frames.y is None


def test_the_outcome_is_the_same_each_time():
    task = mixture(3, 20.0)
    once, repeated = chosen(task, 1_500), chosen(task, 1_500)
    np.testing.assert_array_equal(once.means, repeated.means)


def test_the_state_of_numpy_is_left_alone():
    np.random.seed(7)  # noqa: NPY002 - it is the global state that is watched
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    chosen(mixture(3, 20.0), 1_000)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_collinear_columns_are_no_exception():
    x, y = gaussian(2, 12.0).sample(1_200, seed=0)
    baseline = choose_baseline(*parts(np.hstack([x, x[:, :1] + x[:, 1:]]), y))
    assert baseline is not None
    more = np.hstack([x, x[:, :1] + x[:, 1:]])
    assert np.isfinite(ratio_of(baseline, more, y)).all()


@pytest.mark.parametrize("seed", range(2))
def test_heavy_tails_do_not_explode(seed):
    task = correlated_student(5, 10.0, dof=3)
    x, y = task.sample(4_000, seed)
    fitted = Estimator().fit(x[:3_000], y[:3_000])
    assert fitted.estimate(x[3_000:], y[3_000:]).mi == pytest.approx(10, rel=0.15)
