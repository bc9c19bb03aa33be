"""Smooth ranks and Gaussian mixtures: exact factors, correct densities, no exceptions."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from deminat.critics.baselines import Frames, Mixture
from deminat.critics.baselines.base import log_ratio
from deminat.critics.baselines.mixture import View, mixture_on, views
from deminat.data.transforms import Linear, Robust, SmoothRanks
from deminat.tasks import correlated_student, gaussian, maps, mixture


def columns_of(n=3_000, seed=0):
    """Return a lognormal, a normal far from 0 and a uniform column."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [np.exp(rng.normal(size=n)), 50 + 3 * rng.normal(size=n), rng.uniform(-1, 1, n)]
    )


def as_given(dx, dy):
    """Return the view that leaves rows alone."""
    return View(Frames(), Linear(np.zeros(dx), np.ones(dx)), Linear(np.zeros(dy), np.ones(dy)))


def hand_made(dx, dy, components=3, seed=0):
    rng = np.random.default_rng(seed)
    d = dx + dy
    roots = rng.normal(size=(components, d, d)) / np.sqrt(d)
    return Mixture(
        as_given(dx, dy),
        rng.dirichlet(np.ones(components)),
        2 * rng.normal(size=(components, d)),
        roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d),
        dx,
    )


def log_density(model, rows, columns):
    """Return the log density (m,) of some columns, by scipy."""
    each = [
        np.log(w) + multivariate_normal(m[columns], c[columns, columns]).logpdf(rows)
        for w, m, c in zip(model.weights, model.means, model.covariances, strict=True)
    ]
    return np.logaddexp.reduce(each, axis=0)


def mean_ratio(model, x, y):
    return float(log_ratio(model.left(x), model.right(y), model.components).mean())


def test_smooth_ranks_increase():
    a = columns_of()
    low, high = a.min(axis=0) - 5, a.max(axis=0) + 5
    grid = np.linspace(low, high, 2_001)
    assert (np.diff(SmoothRanks.fit(a)(grid), axis=0) > 0).all()


def test_smooth_ranks_make_columns_standard_normal():
    fitted, new = columns_of(seed=0), columns_of(seed=1)
    scale = SmoothRanks.fit(fitted)
    for a in (fitted, new):
        z = scale(a)
        # Of 3,000 rows and as many in the fit: mean +- 0.026, deviation +- 0.018; four of those.
        np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.11)
        np.testing.assert_allclose(z.std(axis=0), 1, atol=0.08)
    # Of the rows themselves the quantiles are those of a normal, up to half a knot's width.
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    expected = [-1.2816, -0.6745, 0, 0.6745, 1.2816]
    quantiles = np.quantile(scale(fitted), levels, axis=0)
    np.testing.assert_allclose(quantiles, np.tile(expected, (3, 1)).T, atol=0.02)


def test_smooth_ranks_undo_a_monotone_map():
    z = np.random.default_rng(0).normal(size=(3_000, 1))
    back = SmoothRanks.fit(np.exp(z))(np.exp(z))
    assert np.corrcoef(back[:, 0], z[:, 0])[0, 1] > 0.999


def test_the_log_slope_is_that_of_the_curve():
    a = columns_of()
    scale, new = SmoothRanks.fit(a), columns_of(200, seed=2)
    step = 1e-6 * a.std(axis=0)
    slopes = (scale(new + step) - scale(new - step)) / (2 * step)
    # A difference quotient that straddles a knot is off by the jump of the second derivative.
    np.testing.assert_allclose(scale.log_slope(new), np.log(slopes).sum(axis=1), atol=1e-3)


def test_smooth_ranks_end_in_straight_lines():
    a = columns_of()
    scale = SmoothRanks.fit(a)
    for end, way in ((a.min(axis=0), -1.0), (a.max(axis=0), 1.0)):
        beyond = end + way * np.array([[1.0], [10.0], [100.0]])
        rises = np.diff(scale(beyond), axis=0) / np.diff(beyond, axis=0)
        np.testing.assert_allclose(rises[0], rises[1], rtol=1e-6)
        slope = np.log(rises[0]).sum()
        np.testing.assert_allclose(scale.log_slope(beyond), slope, rtol=1e-6)


@pytest.mark.parametrize(
    "column",
    [
        np.full(400, 7.0),
        np.repeat([0.0, 1.0], 200),
        np.repeat([0.0, 1.0], [399, 1]),
        np.arange(400.0) // 50,
        np.r_[np.zeros(200), np.linspace(1, 2, 200)],
        np.r_[np.linspace(1, 2, 200), np.full(200, 3.0)],
    ],
    ids=["constant", "binary", "rare", "counts", "atom below", "atom above"],
)
def test_ties_and_constants_stay_finite(column):
    scale = SmoothRanks.fit(column[:, None])
    new = np.concatenate([column, [-1e6, 1e6]])[:, None]
    assert np.isfinite(scale(new)).all()
    assert np.isfinite(scale.log_slope(new)).all()
    assert (np.diff(scale(np.sort(new, axis=0)), axis=0) >= 0).all()


def test_a_jacobian_knows_scales_and_frames():
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    scales = Linear(np.zeros(2), np.array([2.0, 5.0])), Linear(np.ones(1), np.array([0.25]))
    x, y = np.random.default_rng(0).normal(size=(7, 2)), np.ones((7, 1))
    plain = View(Frames(), *scales).log_jacobian(x, y)
    assert plain == pytest.approx(-np.log(2 * 5 * 0.25))
    turned = View(Frames(turn, None), *scales).log_jacobian(x, y)
    assert turned == pytest.approx(plain)
    stretched = View(Frames(turn @ np.diag([3.0, 4.0]), np.array([[-2.0]])), *scales)
    assert stretched.log_jacobian(x, y) == pytest.approx(plain + np.log(3 * 4 * 2))


def test_a_jacobian_is_that_of_the_whole_map():
    rng = np.random.default_rng(0)
    rows = columns_of()
    frames = Frames(rng.normal(size=(3, 3)), None)
    seen = SmoothRanks.fit(frames.of_x(rows)), SmoothRanks.fit(rows[:, :1])
    view = View(frames, *seen)
    x, y, step = rows[:1], rows[:1, :1], 1e-6
    steps = step * np.eye(3)
    jacobian = (view.of_x(x + steps) - view.of_x(x - steps)) / (2 * step)
    slope = (view.of_y(y + step) - view.of_y(y - step)).item() / (2 * step)
    expected = np.linalg.slogdet(jacobian)[1] + np.log(slope)
    assert view.log_jacobian(x, y) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("dx", "dy", "components"), [(2, 2, 3), (1, 4, 2), (3, 1, 5), (1, 1, 1)])
def test_factors_make_the_log_ratio_of_the_mixture(dx, dy, components):
    model = hand_made(dx, dy, components)
    rng = np.random.default_rng(1)
    x, y = 2 * rng.normal(size=(50, dx)), 2 * rng.normal(size=(50, dy))
    expected = log_density(model, np.hstack([x, y]), slice(None))
    expected -= log_density(model, x, slice(None, dx)) + log_density(model, y, slice(dx, None))
    found = log_ratio(model.left(x), model.right(y), model.components)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


def test_the_conditional_likelihood_is_that_of_the_densities():
    model = hand_made(2, 1)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    joint = log_density(model, np.hstack([x, y]), slice(None))
    alone = log_density(model, x, slice(None, 2)) + log_density(model, y, slice(2, None))
    assert model.conditional_likelihood(x, y) == pytest.approx((2 * joint - alone).mean())


@pytest.mark.parametrize(
    "task",
    [mixture(3, 2.0), gaussian(2, 1.0), correlated_student(3, 10.0, 3)],
    ids=lambda t: t.name,
)
def test_a_fitted_mixture_reads_the_truth(task):
    x, y = task.sample(4_000, seed=0)
    x_new, y_new = task.sample(4_000, seed=1)
    found = mixture_on(views(x, y, None)[0], x, y, 8)
    truth = task.log_ratio(x_new, y_new)
    scores = log_ratio(found.left(x_new), found.right(y_new), found.components)
    error = (scores - truth).std() / len(truth) ** 0.5
    # The density is estimated too: its 8 components cost a few % of the truth.
    assert scores.mean() == pytest.approx(truth.mean(), abs=4 * error + 0.05 * task.mi)


def test_a_linear_view_does_not_matter():
    """The frame and the scale are those of the rows, so they cancel out of ratio and likelihood."""
    x, y = mixture(3, 2.0).sample(2_000, seed=0)
    rng = np.random.default_rng(2)
    turned = Frames(rng.normal(size=(3, 3)), rng.normal(size=(3, 3)))
    plain = View(Frames(), Robust.fit(x).linear(), Robust.fit(y).linear())
    scales = Robust.fit(turned.of_x(x)).linear(), Robust.fit(turned.of_y(y)).linear()
    found = [mixture_on(view, x, y, 1) for view in (plain, View(turned, *scales))]
    likelihoods = [f.conditional_likelihood(x, y) for f in found]
    # Only the floor of the variances, 1e-6, knows which view it is.
    assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-3)
    assert mean_ratio(found[0], x, y) == pytest.approx(mean_ratio(found[1], x, y), abs=1e-3)


@pytest.mark.parametrize(
    ("exponent", "better", "least"), [(1, 0, 0.0), (3, 1, 1.0)], ids=["as they are", "cubed"]
)
def test_likelihoods_of_views_can_be_compared(exponent, better, least):
    """Normal columns are likelier as they are, if little; cubed ones by their ranks, by far."""
    x, y = (a**exponent for a in gaussian(2, 2.0).sample(6_000, seed=0))
    (x, x_held), (y, y_held) = np.split(x, [4_000]), np.split(y, [4_000])
    found = [mixture_on(view, x, y, 1) for view in views(x, y, None)]
    likelihoods = [f.conditional_likelihood(x_held, y_held) for f in found]
    assert likelihoods[better] > likelihoods[1 - better] + least


def test_a_frame_undoes_a_rotation_before_the_ranks():
    x, y = gaussian(3, 3.0).sample(4_000, seed=0)
    turn = maps.rotation(3, seed=0)
    x_seen = turn.forward(x**3)
    matrix = np.linalg.lstsq(x_seen, x**3, rcond=None)[0].T
    frames = Frames(matrix, None, " turned back")
    view = View(frames, SmoothRanks.fit(frames.of_x(x_seen)), SmoothRanks.fit(y))
    found = mixture_on(view, x_seen, y, 1)
    assert mean_ratio(found, x_seen, y) == pytest.approx(3.0, abs=0.15)
    assert found.frames is frames
    assert found.name == "mixture of 1 Gaussians on ranks turned back"


def test_refit_keeps_the_view_and_the_number_of_components():
    x, y = mixture(2, 2.0).sample(3_000, seed=0)
    part = mixture_on(views(x, y, None)[0], x[:1_000], y[:1_000], 4)
    whole = part.refit(x, y)
    assert whole.view is part.view
    assert whole.components == part.components == 4
    assert not np.allclose(whole.means, part.means)
    rows = x[1_000:], y[1_000:]
    assert whole.conditional_likelihood(*rows) > part.conditional_likelihood(*rows)


def test_a_refit_that_fails_leaves_what_there_was():
    x, y = mixture(2, 2.0).sample(1_000, seed=0)
    fitted = mixture_on(views(x, y, None)[0], x, y, 4)
    assert fitted.refit(x[:3], y[:3]) is fitted


def test_few_takes_the_first_rows_only():
    x, y = mixture(2, 2.0).sample(6_000, seed=0)
    view = views(x, y, None)[0]
    few, first = mixture_on(view, x, y, 2, few=True), mixture_on(view, x[:4_000], y[:4_000], 2)
    np.testing.assert_array_equal(few.means, first.means)
    assert not np.allclose(few.means, mixture_on(view, x, y, 2).means)


def test_more_components_than_rows_is_none_and_no_exception():
    x, y = gaussian(5, 1.0).sample(7, seed=0)
    assert all(mixture_on(view, x, y, 8) is None for view in views(x, y, None))


def test_a_component_that_collapses_is_none():
    """Rows too large for the floor of the variances to matter, all on one line."""
    x, y = gaussian(2, 1.0).sample(500, seed=0)
    x, y = 1e9 * np.hstack([x, x]), 1e9 * y
    assert mixture_on(as_given(4, 2), x, y, 1) is None


@pytest.mark.parametrize("n", [5, 8, 20])
def test_fewer_rows_than_columns_is_no_exception(n):
    x, y = gaussian(10, 1.0).sample(n, seed=0)
    for view in views(x, y, None):
        found = mixture_on(view, x, y, 3)
        assert found is None or np.isfinite(found.conditional_likelihood(x, y))
