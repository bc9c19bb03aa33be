"""Learning in stages: zero where nothing is to be learnt, one narrow network at a time."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

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
from deminat.critics.composed import (
    BaselineCritic,
    ClosedForm,
    ColumnCritic,
    StagedCritic,
    SumCritic,
)
from deminat.critics.features import Features, as_features
from deminat.critics.scoring import is_separable, product_scores
from deminat.data.sample import as_sample
from deminat.data.transforms import Views
from deminat.estimators.staged_fit import (
    HeldOut,
    StageColumns,
    TrainingPairs,
    TrainingPlan,
    fit_stages,
)
from deminat.records import Stage
from deminat.tasks import gaussian, get, mixture
from deminat.training.early_stopping import EarlyStopping

SMALL = partial(SeparableCritic, hidden=(32, 32), rank=8)
STEADY = replace(QUICK, batch=128, steps=120, stopping=EarlyStopping(every=30, patience=2))
STILL = replace(QUICK, learning_rate=0.0)  # the held-out loss never falls: no network is added


def columns(*numbers):
    return torch.tensor(numbers)


def views_of(a):
    """Return features without a baseline, as `Views` maps rows."""
    return as_features(torch.from_numpy(Views.fit(a)(a)).float())


def with_baseline(task, n=2_000, seed=0):
    """Return the features of x and y, as an estimator would, and the baseline's own scores."""
    x, y = task.sample(n, seed)
    copula = GaussianCopula.fit(x, y)
    left, right = (torch.from_numpy(a).float() for a in (copula.left(x), copula.right(y)))
    features = replace(views_of(x), baseline=left), replace(views_of(y), baseline=right)
    return *features, (left * right).sum(dim=1)


def training_pairs(x, y, held=500, seed=0):
    """Return pairs to train on, of which the last `held` decide when to stop."""
    n = len(x) - held
    others = torch.randint(1, held, (held, 16), generator=torch.Generator().manual_seed(seed))
    others = (others + torch.arange(held)[:, None]) % held
    return TrainingPairs(x[:n], y[:n], None, HeldOut(x[n:], y[n:], others))


def staged_fit(x, y, stages, training=STEADY, progress=None):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        plan = TrainingPlan(DEMI(), training, seed=0)
        return fit_stages(SMALL, stages, training_pairs(x, y), plan, progress)


def two_stages(d):
    """Return stages of the norms and of all columns of `Views` of d columns."""
    norms, everything = torch.arange(2 * d, 2 * d + 3), torch.arange(2 * d + 3)
    return [
        StageColumns(Stage("norms"), norms, norms),
        StageColumns(Stage("all"), everything, everything),
    ]


def separable_part(critic):
    """Return the stages without a concatenating critic that may have been added."""
    return critic.staged if isinstance(critic, SumCritic) else critic


def separable_words(words):
    """Return a recipe without that critic."""
    return words.removesuffix(", pairs")


# Pairs to train on


def few_pairs(n=6, m=4):
    x, y = torch.arange(n * 3.0).view(n, 3), -torch.arange(n * 3.0).view(n, 3)
    x, y = Features(x, x + 100), Features(y, y + 100)
    held = HeldOut(x[:m], y[:m], torch.zeros(m, 20, dtype=torch.long))
    return TrainingPairs(x, y, torch.arange(n), held)


def assert_same_features(found, expected):
    torch.testing.assert_close(
        (found.seen, found.baseline), (expected.seen, expected.baseline), rtol=0, atol=0
    )


def test_held_out_pairs_are_mapped_as_those_to_train_on():
    pairs, stage = few_pairs(), StageColumns(Stage("all"), columns(2, 0), columns(1))
    mapped = pairs.mapped(stage.of_x, stage.of_y)
    for found, before in ((mapped, pairs), (mapped.held, pairs.held)):
        assert_same_features(found.x, Features(before.x.seen[:, [2, 0]], before.x.baseline))
        assert_same_features(found.y, Features(before.y.seen[:, [1]], before.y.baseline))
    assert mapped.held.partners.equal(pairs.held.partners)
    assert mapped.labels.equal(pairs.labels)


def test_a_concatenating_critic_has_fewer_held_out_partners():
    pairs = few_pairs()
    fewer = pairs.with_fewer_partners()
    assert fewer.held.partners.equal(pairs.held.partners[:, :4])
    assert_same_features(fewer.held.x, pairs.held.x)
    assert_same_features(fewer.x, pairs.x)


def test_pairs_without_held_out_ones_stay_without():
    alone, stage = replace(few_pairs(), held=None), StageColumns(Stage("all"), *[columns(0)] * 2)
    assert alone.mapped(stage.of_x, stage.of_y).held is None
    assert alone.with_fewer_partners().held is None


def test_without_held_out_pairs_every_stage_is_kept():
    x, y, _ = with_baseline(gaussian(3, 1.0), 400)
    plan = TrainingPlan(DEMI(), replace(QUICK, stopping=None), seed=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        critic, history = fit_stages(SMALL, two_stages(3), TrainingPairs(x, y, None, None), plan)
    assert [str(each.stage) for each in history.stages] == ["norms", "all columns", "pairs"]
    assert isinstance(critic, SumCritic)
    assert len(critic.staged.critics) == 2


def test_a_share_of_the_time_is_what_is_left():
    plan = TrainingPlan(DEMI(), QUICK, seed=0)
    assert plan.share(0, 3) is plan
    limited = replace(plan, deadline=1e12)  # far enough that the present hardly matters
    assert limited.share(0, 4).deadline == pytest.approx(0.25e12, rel=1e-3)
    assert limited.share(3, 4).deadline == pytest.approx(1e12, rel=1e-3)


# Critics


def staged():
    torch.manual_seed(0)
    critics = [SMALL((3,), (2,)), SMALL((1,), (4,))]
    for weight in (w for critic in critics for w in critic.parameters()):
        nn.init.normal_(weight, std=0.2)  # untrained ones would add up to zero
    return StagedCritic(
        [
            ColumnCritic(critics[0], columns(0, 2, 4), columns(3, 0)),
            ColumnCritic(critics[1], columns(1), columns(0, 1, 2, 3)),
        ]
    )


def random_sides(n=20, dx=5, dy=4, rank=2):
    return (Features(torch.randn(n, d), torch.randn(n, rank)) for d in (dx, dy))


def test_the_sum_of_stages_is_an_inner_product():
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        critic = staged()
        x, y = random_sides()
        first, second = (stage.critic for stage in critic.critics)
        expected = first(x.seen[:, [0, 2, 4]], y.seen[:, [3, 0]])
        expected = expected + second(x.seen[:, [1]], y.seen)
        expected = expected + (x.baseline * y.baseline).sum(dim=1)
        torch.testing.assert_close(critic(x, y), expected)
        table = critic.left(x) @ critic.right(y).T
        torch.testing.assert_close(table.diagonal(), expected)
        assert is_separable(critic)
        others = torch.arange(20).roll(1)[:, None]
        shifted = y[torch.arange(20).roll(1)]
        torch.testing.assert_close(product_scores(critic, x, y, others)[:, 0], critic(x, shifted))


def test_a_staged_critic_pickles_and_loads():
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        critic = staged()
        x, y = random_sides()
        expected = critic(x, y)
        assert pickle.loads(pickle.dumps(critic))(x, y).equal(expected)
        other = staged()
        for values in (*other.parameters(), *other.buffers()):
            values.zero_()
        assert not other(x, y).equal(expected)
        other.load_state_dict(critic.state_dict())
        assert other(x, y).equal(expected)


def test_without_a_stage_the_baseline_is_left():
    x, y = random_sides(n=5)
    expected = (x.baseline * y.baseline).sum(dim=1)
    torch.testing.assert_close(StagedCritic([])(x, y), expected)
    x, y = random_sides(n=5, rank=0)
    assert StagedCritic([])(x, y).equal(torch.zeros(5))
    others = torch.tensor([[1], [2], [3], [4], [0]])
    assert product_scores(StagedCritic([]), x, y, others).equal(torch.zeros(5, 1))


@pytest.mark.parametrize("components", [1, 4])
def test_a_closed_form_is_the_log_ratio_of_its_baseline(components):
    x, y = mixture(2, 3.0).sample(800, seed=0)
    baseline = mixture_on(views(x, y, None)[0], x, y, components)
    left, right = baseline.left(x), baseline.right(y)
    critic = ClosedForm(baseline.components)
    sides = ((x, left), (y, right))
    features = [Features(torch.from_numpy(a), torch.from_numpy(b)) for a, b in sides]
    expected = log_ratio(left, right, components)
    np.testing.assert_allclose(critic(*features).numpy(), expected, atol=1e-9)
    assert not is_separable(critic)


# Fitting stages


def test_nothing_is_kept_where_nothing_is_to_be_learnt():
    x, y = map(views_of, gaussian(3, 0.0).sample(2_000, seed=0))
    # Held out are 500 pairs: sampling noise gains a few 1e-4, so 2e-3 must be gained.
    strict = replace(STEADY, stopping=EarlyStopping(every=30, patience=2, min_delta=2e-3))
    critic, history = staged_fit(x, y, two_stages(3), strict)
    assert len(critic.critics) == 0
    assert [each.best_step for each in history.stages] == [0, 0, 0]
    assert history.best_step == 0
    assert critic(x, y).equal(torch.zeros(len(x)))


def test_no_stage_is_added_to_a_baseline_that_suffices():
    x, y, expected = with_baseline(gaussian(3, 1.0))
    strict = replace(STEADY, stopping=EarlyStopping(every=30, patience=2, min_delta=5e-3))
    critic, history = staged_fit(x, y, two_stages(3), strict)
    assert len(critic.critics) == 0
    assert history.best_step == 0
    torch.testing.assert_close(critic(x, y), expected)


def test_what_norms_share_is_learnt_from_norms():
    task = get("student-identity-5-5-2")
    x, y = map(views_of, task.sample(2_500, seed=0))
    critic, history = staged_fit(x, y, two_stages(5))
    assert history.stages[0].stage == Stage("norms")
    assert history.stages[0].best_step > 0
    assert separable_part(critic).critics[0].x_columns.equal(torch.arange(10, 13))
    with torch.no_grad():
        held = critic(x[2_000:], y[2_000:])
    # 4 standard errors of 500 held-out pairs, and a fifth that a short training may miss.
    error = 4 * float(held.std()) / 500**0.5
    assert float(held.mean()) == pytest.approx(task.mi, abs=error + 0.2 * task.mi)


def test_each_stage_continues_from_those_before_it():
    """A stage is zero at first, so its first evaluation is that of those before it."""
    x, y, _ = with_baseline(get("spiral-multinormal-sparse-3-3-2-2.0"))
    everything = two_stages(3)[1]
    stopping = EarlyStopping(every=60, patience=1)  # one evaluation, and one before it
    brief = replace(STEADY, steps=60, stopping=stopping)
    one, first = staged_fit(x, y, [everything], brief)
    _, both = staged_fit(x, y, [everything, everything], brief)
    untrained, trained, continued = both.held_out[:3]
    assert (untrained, trained) == first.held_out[:2]
    assert continued == pytest.approx(trained, abs=1e-6)
    held = training_pairs(x, y).held
    for critic, expected in ((StagedCritic([]), untrained), (separable_part(one), trained)):
        with torch.no_grad():
            joint = critic(held.x, held.y)
        loss = DEMI().loss(joint, product_scores(critic, held.x, held.y, held.partners))
        assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_the_stages_score_as_they_did_in_training():
    """One stage on a baseline, as it was trained, gives the scores of the sum of stages."""
    x, y, baseline = with_baseline(get("spiral-multinormal-sparse-3-3-2-2.0"))
    critic, history = staged_fit(x, y, two_stages(3)[1:])
    assert history.best_step > 0
    stages = separable_part(critic)
    with torch.no_grad():
        alone = BaselineCritic(stages.critics[0].critic)
        torch.testing.assert_close(stages(x, y), alone(x, y))
        assert not torch.allclose(stages(x, y), baseline)


def test_histories_are_joined():
    x, y = map(views_of, get("student-identity-5-5-2").sample(1_500, seed=0))
    brief = replace(QUICK, steps=50, stopping=EarlyStopping(every=10))
    shares = []
    _, history = staged_fit(x, y, two_stages(5), brief, shares.append)
    assert history.steps == 20 + 50 + 50  # the first takes fewer; the last one concatenates
    assert [each.steps for each in history.stages] == [20, 50, 50]
    assert [str(each.stage) for each in history.stages] == ["norms", "all columns", "pairs"]
    assert len(history.held_out) == 3 + 6 + 6  # before any step, after 10, after 20...
    assert history.restarts == 0
    assert 0 < history.best_step <= history.steps
    np.testing.assert_allclose(np.multiply(shares, 3), [1, 1.4, 1.8, 2.4, 2.8])


def test_separable_critics_have_less_initial_patience():
    x, y = map(views_of, gaussian(5, 0.0).sample(1_500, seed=0))
    stopping = EarlyStopping(every=10, patience=6, initial_patience=6, min_delta=0.5)
    _, history = staged_fit(x, y, two_stages(5), replace(QUICK, steps=250, stopping=stopping))
    assert history.steps == 30 + 30 + 60
    assert history.best_step == 0


# Estimators


def test_the_same_seed_fits_the_same_stages():
    x, y = get("student-identity-5-5-2").sample(600, seed=0)
    first, second = (Estimator(critic=SMALL, training=QUICK).fit(x, y) for _ in range(2))
    np.testing.assert_array_equal(first.log_ratio(x, y), second.log_ratio(x, y))


def test_an_estimator_reports_its_recipe():
    x, y = gaussian(3, 1.0).sample(1_200, seed=0)
    to_the_end = replace(QUICK, stopping=None)  # without held-out pairs every stage is kept
    fitted = Estimator(critic=SMALL, training=to_the_end).fit(x, y)
    expected = "Gaussian copula, 3 correlations + network on norms, all columns"
    assert separable_words(fitted.history_.recipe) == expected
    assert fitted.estimate(x, y).recipe == fitted.history_.recipe
    assert isinstance(separable_part(fitted.critic_), StagedCritic)
    result = estimate(x, y, method=Estimator(critic=SMALL, training=to_the_end), folds=2)
    assert result.recipe == f"{fitted.history_.recipe} (2 of 2 folds)"


def test_related_columns_are_a_stage_of_their_own():
    x, y = get("multinormal-sparse-5-5-2-2.0").sample(1_200, seed=0)
    fitted = Estimator(critic=SMALL, training=replace(QUICK, stopping=None)).fit(x, y)
    words = separable_words(fitted.history_.recipe)
    assert words.endswith("network on norms, 2 + 2 columns, all columns")
    seen = separable_part(fitted.critic_).critics[1].x_columns
    assert seen.tolist() == [0, 1, 5, 6, 10, 11, 12]  # both views of two columns, three norms


def test_finding_nothing_is_a_recipe_too():
    x, y = gaussian(2, 0.0).sample(400, seed=0)
    fitted = Estimator(critic=SMALL, training=STILL, baseline=None).fit(x, y)
    assert fitted.history_.recipe == "nothing found"
    assert fitted.estimate(x, y).mi == 0


@pytest.mark.parametrize("scaling", [Views, Standardize])
def test_a_critic_that_is_not_separable_has_no_stages(scaling):
    x, y = gaussian(2, 1.0).sample(400, seed=0)
    critic = partial(MLPCritic, hidden=(16,))
    training = replace(QUICK, stopping=None)
    fitted = Estimator(critic=critic, scaling=scaling, training=training).fit(x, y)
    assert fitted.history_.recipe == "Gaussian copula, 2 correlations + network on all columns"


@pytest.mark.parametrize("critic", [SMALL, partial(MLPCritic, hidden=(16,))], ids=["stages", "mlp"])
def test_where_no_network_is_added_the_baseline_is_fitted_to_all_rows(critic):
    x, y = gaussian(3, 1.0).sample(900, seed=0)
    seen = []

    def choose(*rows):
        seen.append(GaussianCopula.choose(*rows))
        return seen[-1]

    fitted = Estimator(critic=critic, training=STILL, baseline=choose).fit(x, y)
    baseline = fitted.scales_.baseline
    (part,) = seen
    assert fitted.history_.best_step == 0
    assert not np.array_equal(baseline.correlations, part.correlations)
    np.testing.assert_array_equal(baseline.correlations, part.refit(x, y).correlations)
    expected = log_ratio(baseline.left(x), baseline.right(y))
    np.testing.assert_allclose(fitted.log_ratio(x, y), expected, atol=1e-4)
    assert fitted.history_.recipe == "Gaussian copula, 3 correlations"


def test_a_mixture_is_fitted_to_all_rows_too():
    x, y = mixture(3, 20.0).sample(900, seed=0)
    fitted = Estimator().fit(x, y)
    baseline = fitted.scales_.baseline
    assert fitted.history_.steps == 0
    assert isinstance(fitted.critic_, ClosedForm)
    assert fitted.history_.recipe == baseline.name
    np.testing.assert_allclose(baseline.means, baseline.refit(x, y).means, atol=0.05)
    expected = log_ratio(baseline.left(x), baseline.right(y), baseline.components)
    # Factors in float32: terms of 1e7 cancel, which leaves some tenths a pair, both ways.
    np.testing.assert_allclose(fitted.log_ratio(x, y), expected, atol=1)
    assert fitted.log_ratio(x, y).mean() == pytest.approx(expected.mean(), abs=0.02)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.log_ratio(x, y), fitted.log_ratio(x, y))


@pytest.mark.parametrize("baseline", [None, GaussianCopula.choose], ids=["none", "copula"])
@pytest.mark.parametrize("scaling", [Views, Standardize], ids=["stages", "one training"])
def test_factors_are_those_of_the_scores(baseline, scaling):
    x, y = gaussian(2, 1.0).sample(400, seed=0)
    brief = replace(QUICK, steps=60)
    fitted = Estimator(critic=SMALL, scaling=scaling, training=brief, baseline=baseline).fit(x, y)
    if isinstance(fitted.critic_, SumCritic):
        with pytest.raises(ValueError, match="separable"):
            fitted.factors(as_sample(x, y))
        fitted.scorer_ = replace(fitted.scorer_, critic=fitted.critic_.staged)
    left, right = fitted.factors(as_sample(x, y))
    np.testing.assert_allclose((left * right).sum(axis=1), fitted.log_ratio(x, y), atol=1e-4)
