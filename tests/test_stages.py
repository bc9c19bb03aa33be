"""Learning in stages: silent where nothing is to be learnt, one narrow network at a time."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from common import QUICK
from deminat import (
    DEMI,
    Estimator,
    GaussianCopula,
    MLPCritic,
    SeparableCritic,
    Standardize,
    estimate,
)
from deminat.critics.baselines.base import log_ratio
from deminat.critics.baselines.mixture import mixture_on, views
from deminat.critics.composed import BaselineCritic, ClosedForm, StagedCritic
from deminat.critics.scoring import is_separable, product_scores
from deminat.data.transforms import Views
from deminat.estimators.staged_fit import Stage, TrainingPairs, TrainingPlan, fit_stages
from deminat.tasks import gaussian, get, mixture
from deminat.training.config import EarlyStopping

SMALL = partial(SeparableCritic, hidden=(32, 32), rank=8)
STEADY = replace(QUICK, batch=128, steps=120, stopping=EarlyStopping(every=30, patience=2))
STILL = replace(QUICK, learning_rate=0.0)  # the held-out loss never falls: the start is left alone


def columns(*numbers):
    return torch.tensor(numbers)


def seen_by_views(a):
    return torch.from_numpy(Views.fit(a)(a)).float()


def lesson_of(x, y, held=500, seed=0):
    """Return a lesson of pairs (tensors), of which the last `held` are judges."""
    n = len(x) - held
    others = torch.randint(1, held, (held, 16), generator=torch.Generator().manual_seed(seed))
    others = (others + torch.arange(held)[:, None]) % held
    return TrainingPairs(x[:n], y[:n], None, (x[n:], y[n:], others))


def grown(x, y, stages, halves=0, training=STEADY):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return fit_stages(
            SMALL, stages, lesson_of(x, y), halves, TrainingPlan(DEMI(), training, seed=0)
        )


def two_stages(d):
    """Return stages of the lengths and of all columns of `Views` of d columns."""
    lengths, everything = torch.arange(2 * d, 2 * d + 3), torch.arange(2 * d + 3)
    return [Stage("lengths", lengths, lengths), Stage("all columns", everything, everything)]


def separable_part(critic):
    """Return the stages without a concatenating critic that may have been added."""
    return getattr(critic, "staged", critic)


def separable_words(words):
    """Return a recipe without that critic."""
    return words.removesuffix(", pairs")


def started(task, n=2_000, seed=0):
    """Return views and start side by side, as an estimator would, and the start's own scores."""
    x, y = task.sample(n, seed)
    start = GaussianCopula.fit(x, y)
    left, right = torch.from_numpy(start.left(x)).float(), torch.from_numpy(start.right(y)).float()
    both = torch.cat([seen_by_views(x), left], 1), torch.cat([seen_by_views(y), right], 1)
    return *both, left.shape[1], (left * right).sum(dim=1)


# Lessons


def lesson(width, n=6, m=4):
    x, y = torch.arange(n * width).view(n, width), -torch.arange(n * width).view(n, width)
    held = 10 * x[:m], 10 * y[:m], torch.zeros(m, 2, dtype=torch.long)
    return TrainingPairs(x, y, torch.arange(n), held)


def test_a_lesson_is_mapped_with_its_judges():
    mapped = lesson(3).mapped(lambda x: x[:, 1:], lambda y: y + 1)
    torch.testing.assert_close(mapped.x, lesson(3).x[:, 1:])
    torch.testing.assert_close(mapped.y, lesson(3).y + 1)
    torch.testing.assert_close(mapped.held[0], lesson(3).held[0][:, 1:])
    torch.testing.assert_close(mapped.held[1], lesson(3).held[1] + 1)
    assert mapped.held[2].equal(lesson(3).held[2])
    assert mapped.labels.equal(lesson(3).labels)


def test_a_lesson_stands_beside_another():
    beside = lesson(3).beside(lesson(2))
    torch.testing.assert_close(beside.x[:, :3], lesson(3).x)
    torch.testing.assert_close(beside.x[:, 3:], lesson(2).x)
    torch.testing.assert_close(beside.y[:, 3:], lesson(2).y)
    torch.testing.assert_close(beside.held[0][:, 3:], lesson(2).held[0])
    torch.testing.assert_close(beside.held[1][:, :3], lesson(3).held[1])
    assert beside.held[2].equal(lesson(3).held[2])


def test_a_lesson_without_judges_stays_without():
    alone = replace(lesson(3), held=None)
    assert alone.mapped(torch.abs, torch.abs).held is None
    assert alone.beside(replace(lesson(2), held=None)).held is None


def test_a_share_of_the_time_is_what_is_left():
    course = TrainingPlan(DEMI(), QUICK, seed=0)
    assert course.share(0, 3) is course
    limited = replace(course, deadline=1e12)  # far enough that the present hardly matters
    assert limited.share(0, 4).deadline == pytest.approx(0.25e12, rel=1e-3)
    assert limited.share(3, 4).deadline == pytest.approx(1e12, rel=1e-3)


# Critics


def staged():
    torch.manual_seed(0)
    critics = [SMALL((3,), (2,)), SMALL((1,), (4,))]
    for weight in (w for critic in critics for w in critic.parameters()):
        torch.nn.init.normal_(weight, std=0.2)  # silent ones would add up to nothing
    seen = [columns(0, 2, 4), columns(1)], [columns(3, 0), columns(0, 1, 2, 3)]
    return StagedCritic(critics, *seen, columns=2)


def test_the_sum_of_stages_is_an_inner_product():
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        critic = staged()
        x, y = torch.randn(20, 7), torch.randn(20, 6)
        first, second = critic.critics
        expected = first(x[:, [0, 2, 4]], y[:, [3, 0]]) + second(x[:, [1]], y[:, :4])
        expected = expected + (x[:, -2:] * y[:, -2:]).sum(dim=1)
        torch.testing.assert_close(critic(x, y), expected)
        table = critic.left(x) @ critic.right(y).T
        torch.testing.assert_close(table.diagonal(), expected)
        assert is_separable(critic)
        others = torch.arange(20).roll(1)[:, None]
        torch.testing.assert_close(
            product_scores(critic, x, y, others)[:, 0], critic(x, y.roll(1, 0))
        )


def test_a_staged_critic_pickles_and_loads():
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        critic = staged()
        x, y = torch.randn(20, 7), torch.randn(20, 6)
        expected = critic(x, y)
        assert pickle.loads(pickle.dumps(critic))(x, y).equal(expected)
        other = staged()
        for weight in other.parameters():
            weight.zero_()
        assert not other(x, y).equal(expected)
        other.load_state_dict(critic.state_dict())
        assert other(x, y).equal(expected)


def test_no_stage_leaves_the_start():
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    empty = StagedCritic([], [], [], columns=2)
    torch.testing.assert_close(empty(x, y), (x[:, -2:] * y[:, -2:]).sum(dim=1))
    silent = StagedCritic([], [], [], columns=0)
    assert silent(x, y).equal(torch.zeros(5))
    assert product_scores(silent, x, y, torch.tensor([[1], [2], [3], [4], [0]])).shape == (5, 1)


@pytest.mark.parametrize("components", [1, 4])
def test_a_closed_form_is_the_log_ratio_of_its_start(components):
    x, y = mixture(2, 3.0).sample(800, seed=0)
    start = mixture_on(views(x, y, None)[0], x, y, components)
    left, right = start.left(x), start.right(y)
    critic = ClosedForm(start.components, left.shape[1])
    seen = [torch.from_numpy(np.hstack([x, half])) for half in (left, right)]
    expected = log_ratio(left, right, components)
    np.testing.assert_allclose(critic(*seen).numpy(), expected, atol=1e-9)
    if components > 1:
        assert not is_separable(critic)


# Growing


def test_nothing_is_kept_where_nothing_is_to_be_learnt():
    x, y = map(seen_by_views, gaussian(3, 0.0).sample(2_000, seed=0))
    # Held out are 500 pairs: chance gains a few 1e-4, so a gain of 2e-3 is asked for.
    asking = replace(STEADY, stopping=EarlyStopping(every=30, patience=2, gain=2e-3))
    critic, history = grown(x, y, two_stages(3), training=asking)
    assert len(critic.critics) == 0
    assert history.best_step == 0
    assert history.chose == ""
    assert critic(x, y).equal(torch.zeros(len(x)))


def test_a_start_that_is_enough_is_left_alone():
    x, y, halves, expected = started(gaussian(3, 1.0))
    asking = replace(STEADY, stopping=EarlyStopping(every=30, patience=2, gain=5e-3))
    critic, history = grown(x, y, two_stages(3), halves, asking)
    assert len(critic.critics) == 0
    assert history.best_step == 0
    torch.testing.assert_close(critic(x, y), expected)


def test_what_lengths_share_is_learnt_from_lengths():
    task = get("student-identity-5-5-2")
    x, y = map(seen_by_views, task.sample(2_500, seed=0))
    critic, history = grown(x, y, two_stages(5))
    assert history.chose.split(", ")[0] == "lengths"
    assert separable_part(critic).x_columns[0].equal(torch.arange(10, 13))
    with torch.no_grad():
        held = critic(x[2_000:], y[2_000:])
    # 4 standard errors of 500 held-out pairs, and a fifth that a short training may miss.
    error = 4 * float(held.std()) / 500**0.5
    assert float(held.mean()) == pytest.approx(task.mi, abs=error + 0.2 * task.mi)


def test_each_stage_goes_on_from_those_before_it():
    """A stage is silent at first, so its first look sees what those before it have left."""
    x, y, halves, _ = started(get("spiral-multinormal-sparse-3-3-2-2.0"))
    everything = two_stages(3)[1]
    stopping = EarlyStopping(every=60, patience=1)  # one look, before which it is silent
    brief = replace(STEADY, steps=60, stopping=stopping)
    one, first = grown(x, y, [everything], halves, brief)
    _, both = grown(x, y, [everything, everything], halves, brief)
    silent, taught, again = both.held_out[:3]
    assert (silent, taught) == first.held_out[:2]
    assert again == pytest.approx(taught, abs=1e-6)
    x_held, y_held, others = lesson_of(x, y).held
    kept = separable_part(one)
    for critic, expected in ((StagedCritic([], [], [], halves), silent), (kept, taught)):
        with torch.no_grad():
            joint = critic(x_held, y_held)
        loss = DEMI().loss(joint, product_scores(critic, x_held, y_held, others))
        assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_the_stages_score_as_they_did_in_training():
    """One stage on a start, as it was trained, is what the sum of stages says."""
    x, y, halves, start = started(get("spiral-multinormal-sparse-3-3-2-2.0"))
    everything = Stage("all columns", *[torch.arange(x.shape[1] - halves)] * 2)
    critic, history = grown(x, y, [everything], halves)
    assert history.best_step > 0
    staged = separable_part(critic)
    with torch.no_grad():
        alone = BaselineCritic(staged.critics[0], halves)
        torch.testing.assert_close(staged(x, y), alone(x, y))
        assert not torch.allclose(staged(x, y), start)


def test_histories_are_joined():
    x, y = map(seen_by_views, get("student-identity-5-5-2").sample(1_500, seed=0))
    brief = replace(QUICK, steps=50, stopping=EarlyStopping(every=10))
    shares = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        course = TrainingPlan(DEMI(), brief, seed=0)
        _, history = fit_stages(SMALL, two_stages(5), lesson_of(x, y), 0, course, shares.append)
    assert history.steps == 20 + 50 + 50  # the first takes fewer; the last one concatenates
    assert len(history.held_out) == 3 + 6 + 6  # before any step, after 10, after 20...
    assert history.restarts == 0
    assert 0 < history.best_step <= history.steps
    np.testing.assert_allclose(np.multiply(shares, 3), [1, 1.4, 1.8, 2.4, 2.8])


def test_of_separable_critics_without_hope_little_is_asked():
    x, y = map(seen_by_views, gaussian(5, 0.0).sample(1_500, seed=0))
    stopping = EarlyStopping(every=10, patience=6, initial_patience=6, gain=0.5)
    course = TrainingPlan(DEMI(), replace(QUICK, steps=250, stopping=stopping), seed=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        _, history = fit_stages(SMALL, two_stages(5), lesson_of(x, y), 0, course)
    assert history.steps == 30 + 30 + 60
    assert history.best_step == 0


# Estimators


def test_the_same_seed_grows_the_same():
    x, y = get("student-identity-5-5-2").sample(600, seed=0)
    once, again = (Estimator(critic=SMALL, training=QUICK).fit(x, y) for _ in range(2))
    np.testing.assert_array_equal(once.log_ratio(x, y), again.log_ratio(x, y))


def test_an_estimator_tells_its_recipe():
    x, y = gaussian(3, 1.0).sample(1_200, seed=0)
    wild = replace(QUICK, stopping=None)  # without judges every stage is kept
    fitted = Estimator(critic=SMALL, training=wild).fit(x, y)
    expected = "Gaussian copula, 3 correlations + network on lengths, all columns"
    assert separable_words(fitted.history_.chose) == expected
    assert fitted.estimate(x, y).recipe == fitted.history_.chose
    assert isinstance(separable_part(fitted.critic_), StagedCritic)
    result = estimate(x, y, method=Estimator(critic=SMALL, training=wild), folds=2)
    assert result.recipe == f"{fitted.history_.chose} (2 of 2 folds)"


def test_columns_that_matter_are_a_stage_of_their_own():
    x, y = get("multinormal-sparse-5-5-2-2.0").sample(1_200, seed=0)
    fitted = Estimator(critic=SMALL, training=replace(QUICK, stopping=None)).fit(x, y)
    words = separable_words(fitted.history_.chose)
    assert words.endswith("network on lengths, 2 + 2 columns, all columns")
    seen = separable_part(fitted.critic_).x_columns[1]
    assert seen.tolist() == [0, 1, 5, 6, 10, 11, 12]  # both views of two columns, three lengths


def test_silence_is_a_recipe_too():
    x, y = gaussian(2, 0.0).sample(400, seed=0)
    fitted = Estimator(critic=SMALL, training=STILL, start=None).fit(x, y)
    assert fitted.history_.chose == "nothing found"
    assert fitted.estimate(x, y).mi == 0


@pytest.mark.parametrize("scaling", [Views, Standardize])
def test_a_critic_that_is_not_separable_has_no_stages(scaling):
    x, y = gaussian(2, 1.0).sample(400, seed=0)
    critic = partial(MLPCritic, hidden=(16,))
    training = replace(QUICK, stopping=None)
    fitted = Estimator(critic=critic, scaling=scaling, training=training).fit(x, y)
    assert fitted.history_.chose == "Gaussian copula, 2 correlations + network on all columns"


@pytest.mark.parametrize("critic", [SMALL, partial(MLPCritic, hidden=(16,))], ids=["grown", "mlp"])
def test_where_the_network_is_silent_the_start_is_fitted_to_all_rows(critic):
    x, y = gaussian(3, 1.0).sample(900, seed=0)
    seen = []

    def choose(*rows):
        seen.append(GaussianCopula.choose(*rows))
        return seen[-1]

    fitted = Estimator(critic=critic, training=STILL, start=choose).fit(x, y)
    start = fitted.scales_.start
    (part,) = seen
    assert fitted.history_.best_step == 0
    assert not np.array_equal(start.correlations, part.correlations)
    np.testing.assert_array_equal(start.correlations, part.refit(x, y).correlations)
    expected = log_ratio(start.left(x), start.right(y))
    np.testing.assert_allclose(fitted.log_ratio(x, y), expected, atol=1e-4)
    assert fitted.history_.chose == "Gaussian copula, 3 correlations"


def test_a_mixture_is_fitted_to_all_rows_too():
    x, y = mixture(3, 20.0).sample(900, seed=0)
    fitted = Estimator().fit(x, y)
    start = fitted.scales_.start
    assert fitted.history_.steps == 0
    assert isinstance(fitted.critic_, ClosedForm)
    assert fitted.history_.chose == start.name
    np.testing.assert_array_equal(start.means, start.refit(x, y).means)
    expected = log_ratio(start.left(x), start.right(y), start.components)
    # Halves in float32: terms of 1e7 cancel, which leaves some tenths a pair, both ways.
    np.testing.assert_allclose(fitted.log_ratio(x, y), expected, atol=1)
    assert fitted.log_ratio(x, y).mean() == pytest.approx(expected.mean(), abs=0.02)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.log_ratio(x, y), fitted.log_ratio(x, y))
