"""A budget of seconds: an answer in any case, fewer steps, and a fair share for each training."""

import itertools
import re
import time
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from common import QUICK
from deminat import (
    DEMI,
    GM,
    JSD,
    KSG,
    MINE,
    Estimator,
    GaussianCopula,
    MLPCritic,
    SeparableCritic,
    compare,
    estimate,
)
from deminat.cli import app
from deminat.tasks import gaussian, get
from deminat.training.config import Training
from deminat.training.early_stopping import EarlyStopping
from deminat.training.loop import train

SMALL = partial(SeparableCritic, hidden=(16,), rank=4)


def small(x_shape, y_shape):
    """Return the same critic; unlike a partial, a function is its own copy."""
    return SMALL(x_shape, y_shape)


LONG = replace(QUICK, steps=100, stopping=None)  # a known number of steps
NO_TIME = 1e-3


@pytest.fixture(scope="module")
def pairs():
    return gaussian(2, 1.0).sample(400, seed=0)


def steps_of(result):
    return sum(result.diagnostics["steps"])


@pytest.mark.parametrize(
    "baseline", [None, GaussianCopula.choose, "default"], ids=["none", "copula", "default"]
)
@pytest.mark.parametrize("critic", [SMALL, partial(MLPCritic, hidden=(16,))], ids=["stages", "mlp"])
def test_a_budget_gives_an_answer_in_fewer_steps(pairs, critic, baseline):
    method = Estimator(critic=critic, training=LONG)
    if baseline != "default":
        method = replace(method, baseline=baseline)
    free, limited = (
        estimate(*pairs, method=method, folds=2, budget=budget) for budget in (None, NO_TIME)
    )
    # Two folds; of stages, the first has fewer steps.
    assert steps_of(free) == 2 * (100 if critic is not SMALL else 40 + 100 + 100)
    # Half a millisecond a fold is over before the first step, of which each stage takes one.
    assert 0 < steps_of(limited) < steps_of(free) / 4
    assert np.isfinite(limited.mi)
    assert limited.n == 400
    assert len(limited.pointwise) == 400


@pytest.mark.parametrize("method", ["demi", "mine", "nwj", "infonce"])
def test_every_trained_method_has_a_budget(pairs, method):
    result = estimate(*pairs, method=method, folds=2, budget=NO_TIME)
    assert np.isfinite(result.mi)
    assert steps_of(result) < 100


def test_the_paper_has_a_budget_too(pairs):
    result = estimate(*pairs, preset="paper", folds=2, budget=NO_TIME)
    assert np.isfinite(result.mi)
    assert steps_of(result) < 20  # ten epochs of 200 pairs are 60 a fold


def test_without_time_the_copula_answers(pairs):
    result = estimate(*pairs, folds=2, budget=NO_TIME)
    # 400 pairs of 1 nat spread by 0.9: 4 standard errors, and what 200 rows miss.
    assert result.mi == pytest.approx(1, abs=4 * result.standard_error + 0.05)
    assert "Gaussian copula, 2 correlations" in result.recipe
    assert "network" not in result.recipe


def test_much_time_changes_nothing(pairs):
    method = Estimator(critic=SMALL, training=QUICK)
    free, limited = (estimate(*pairs, method=method, folds=2, budget=b) for b in (None, 1e4))
    np.testing.assert_array_equal(free.pointwise, limited.pointwise)


def test_methods_without_a_training_need_none(pairs):
    for method in ("ksg", "gaussian", "copula", KSG(k=5)):
        free, limited = (estimate(*pairs, method=method, budget=b) for b in (None, NO_TIME))
        assert free.mi == limited.mi


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("-inf")])
@pytest.mark.parametrize("method", ["demi", "ksg"])
def test_a_budget_must_be_positive(pairs, method, budget):
    with pytest.raises(ValueError, match="budget must be seconds, above 0"):
        estimate(*pairs, method=method, budget=budget)


@pytest.mark.parametrize("methods", [["gm"], ["demi", "gm"], [GM()]], ids=["gm", "among", "object"])
def test_flows_have_no_budget(pairs, methods):
    with pytest.raises(ValueError, match="gm has no budget"):
        compare(*pairs, methods=methods, budget=10)


@pytest.mark.parametrize(
    ("objectives", "folds", "expected"),
    [
        ([DEMI()], 2, 100 / 2),
        ([DEMI()], 4, 100 / 4),
        ([DEMI(), MINE()], 2, 100 / 2 / 2),
        ([DEMI(), JSD()], 2, 100 / 2),  # they share a training
    ],
    ids=["one", "four folds", "two trainings", "a shared one"],
)
def test_the_budget_is_shared_between_trainings(pairs, objectives, folds, expected):
    left = []

    def spy(x, y, x_held, y_held, deadline):
        """Note the seconds that a baseline may take: half of what a training has."""
        left.append(2 * (deadline - time.monotonic()))

    methods = [Estimator(o, small, training=QUICK, baseline=spy) for o in objectives]
    compare(*pairs, methods=[*methods, "ksg"], folds=folds, budget=100)
    trainings = len({o.trains_as for o in objectives})
    assert len(left) == folds * trainings
    # What went before takes milliseconds, or a second where the machine is busy.
    np.testing.assert_allclose(left, expected, atol=2)


def test_a_training_is_shared_whatever_the_critic_is_made_by(pairs):
    """A constructor with arguments is one object, and stays one in copies with a budget."""
    fits = {}
    for budget in (None, 100):
        calls = fits.setdefault(budget, [])
        baseline = partial(_noting, calls.append)
        methods = [Estimator(o, SMALL, training=QUICK, baseline=baseline) for o in (DEMI(), JSD())]
        compare(*pairs, methods=methods, folds=2, budget=budget)
    assert len(fits[None]) == len(fits[100]) == 2


def _noting(note, *rows):
    note(len(rows[0]))


def test_the_estimator_passed_is_left_as_it_was(pairs):
    method = Estimator(critic=SMALL, training=QUICK)
    before = method.get_params()
    estimate(*pairs, method=method, folds=2, budget=NO_TIME)
    assert method.get_params() == before
    assert method.budget is None
    assert not hasattr(method, "critic_")


def test_a_fit_has_a_budget_of_its_own(pairs):
    fitted = Estimator(critic=SMALL, training=LONG, budget=NO_TIME).fit(*pairs)
    assert fitted.history_.steps < 50
    assert np.isfinite(fitted.log_ratio(*pairs)).all()


def test_stages_share_what_is_left():
    """Where the first stage has no time, each stage still takes a step."""
    x, y = get("student-identity-5-5-2").sample(400, seed=0)
    fitted = Estimator(critic=SMALL, training=LONG, budget=NO_TIME, baseline=None).fit(x, y)
    stages = fitted.history_.recipe.removeprefix("network on ").split(", ")
    assert stages[0] == "norms"
    assert fitted.history_.steps == len(stages)


# The loop


class Point(nn.Module):
    """A single number to move."""

    def __init__(self):
        super().__init__()
        self.at = nn.Parameter(torch.tensor(0.0))


def walk(towards, deadline, *, judged_by=None, **settings):
    """Walk from 0 and return where it ends, with the history."""
    point = Point()
    held_loss = None if judged_by is None else lambda m: float((m.at.detach() - judged_by) ** 2)
    history = train(
        point,
        lambda _: (point.at - towards) ** 2,
        itertools.repeat(None),
        10,
        Training(steps=50, learning_rate=0.05, halve_at=(), **settings),
        held_loss=held_loss,
        deadline=deadline,
    )
    return float(point.at.detach()), history


def test_a_deadline_in_the_past_leaves_one_step():
    at, history = walk(3, time.monotonic() - 1)
    assert history.steps == history.best_step == 1
    assert at == pytest.approx(0.05, rel=0.01)  # Adam's first step is the rate


@pytest.mark.parametrize(("judged_by", "best"), [(3, 1), (-3, 0)], ids=["better", "worse"])
def test_at_the_deadline_the_best_weights_are_kept(judged_by, best):
    at, history = walk(
        3, time.monotonic() - 1, judged_by=judged_by, stopping=EarlyStopping(every=50)
    )
    assert history.steps == 1
    assert history.best_step == best
    assert at == pytest.approx(0.05 * best, rel=0.01)
    assert len(history.held_out) == 2  # before the step, and at the deadline


def test_a_deadline_far_ahead_changes_the_walk_in_nothing():
    assert walk(3, None) == walk(3, time.monotonic() + 1e4)


def test_a_walk_that_improves_nothing_ends_at_its_beginning():
    stopping = EarlyStopping(every=1, patience=6)
    at, history = walk(3, None, judged_by=-3, stopping=stopping)
    assert at == history.best_step == 0
    assert history.steps <= 6


# The command line


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    x, y = gaussian(1, 0.5).sample(200, seed=0)
    path = tmp_path_factory.mktemp("data") / "cells.csv"
    pl.DataFrame({"raf": x[:, 0], "mek": y[:, 0]}).write_csv(path)
    return path


def invoke(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def test_the_command_line_has_a_budget_and_reports_the_recipe(table):
    done = invoke("estimate", table, "--x", "raf", "--y", "mek", "--folds", 2, "--budget", 1)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 1
    assert "demi" in done.stdout.lower()
    assert re.search("recipe: .*% Gaussian copula, 1 correlation", done.stderr)
    assert "recipe" not in done.stdout


def test_no_recipe_is_reported_for_a_method_without_one(table):
    done = invoke("estimate", table, "--x", "raf", "--y", "mek", "--method", "ksg", "--budget", 1)
    assert done.exit_code == 0
    assert "recipe:" not in done.stderr
