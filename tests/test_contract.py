"""One contract for all estimators, scikit-learn's own battery included."""

import random

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from common import QUICK_ESTIMATORS
from deminat import GM, DataError, Estimator, Training
from deminat.data.sample import as_sample
from deminat.tasks import gaussian

TASK = gaussian(2, 0.5)
X, Y = TASK.sample(240, seed=0)
X_NEW, Y_NEW = TASK.sample(100, seed=1)


@pytest.fixture(params=QUICK_ESTIMATORS)
def estimator(request):
    return clone(QUICK_ESTIMATORS[request.param])


def expected_failures(estimator):
    """Where scikit-learn's battery asks for something else than we promise, and why."""
    known = {
        "check_fit1d": "a 1-d x is welcome: it is one column",
        "check_dtype_object": "every input error is a DataError, hence no TypeError",
    }
    if isinstance(estimator, Estimator | GM):
        known |= {
            "check_parameters_default_constructible": "a recipe is a frozen dataclass",
            "check_fit2d_1feature": "10 pairs are refused: a critic needs 20",
            "check_n_features_in_after_fitting": "15 pairs are refused: a critic needs 20",
            "check_estimators_nan_inf": "5 pairs are refused: a critic needs 20",
        }
    return known


@parametrize_with_checks(
    [QUICK_ESTIMATORS[name] for name in ("demi", "gm", "ksg", "gaussian")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def test_fit_returns_self_and_is_needed(estimator):
    with pytest.raises(NotFittedError):
        estimator.estimate(X, Y)
    with pytest.raises(NotFittedError):
        estimator.log_ratio(X, Y)
    with pytest.raises(NotFittedError):
        estimator.score(X, Y)
    assert estimator.fit(X, Y) is estimator


def test_answers_have_the_promised_shapes(estimator):
    result = estimator.fit(X, Y).estimate(X_NEW, Y_NEW)
    assert result.n == len(X_NEW)
    assert result.method == estimator.name
    assert np.isfinite([result.mi, result.standard_error]).all()
    assert result.pointwise.shape == (len(X_NEW),)
    assert result.pointwise.mean() == pytest.approx(result.mi)
    assert estimator.log_ratio(X_NEW, Y_NEW).shape == (len(X_NEW),)
    assert estimator.log_ratio(X_NEW[:1], Y_NEW[:1]).shape == (1,)
    assert isinstance(estimator.score(X_NEW, Y_NEW), float)


def test_one_seed_gives_one_answer(estimator):
    twin = clone(estimator)
    first, second = (e.fit(X, Y).estimate(X_NEW, Y_NEW) for e in (estimator, twin))
    assert first == second
    assert np.array_equal(first.pointwise, second.pointwise)


def test_global_random_state_is_untouched(estimator):
    random.seed(0), np.random.seed(0), torch.manual_seed(0)  # noqa: NPY002
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    threads = torch.get_num_threads()
    estimator.fit(X, Y).estimate(X_NEW, Y_NEW)
    estimator.measure(as_sample(X, Y), folds=2)
    assert random.getstate() == before[0]
    assert str(np.random.get_state()) == str(before[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])
    assert torch.get_num_threads() == threads


def test_the_kind_of_container_does_not_matter(estimator):
    expected = estimator.fit(X, Y).estimate(X_NEW, Y_NEW)
    for wrap in (torch.from_numpy, pd.DataFrame, pl.DataFrame, np.ndarray.tolist):
        other = clone(estimator).fit(wrap(X), wrap(Y)).estimate(wrap(X_NEW), wrap(Y_NEW))
        assert other == expected


def test_inputs_are_not_changed(estimator):
    x, y = X.copy(), Y.copy()
    estimator.fit(x, y).estimate(x, y)
    assert np.array_equal(x, X)
    assert np.array_equal(y, Y)


def test_other_columns_than_in_fit_are_refused(estimator):
    estimator.fit(X, Y)
    for call in (estimator.log_ratio, estimator.estimate, estimator.score):
        with pytest.raises(DataError, match="X has 1 features"):
            call(X_NEW[:, :1], Y_NEW)
        with pytest.raises(DataError, match="Y has 1 features"):
            call(X_NEW, Y_NEW[:, :1])


def test_measure_scores_every_pair_once(estimator):
    result = estimator.measure(as_sample(X, Y), folds=3)
    assert result.n == len(X)
    assert np.isfinite(result.pointwise).all()
    assert result.pointwise.mean() == pytest.approx(result.mi)


def test_measure_leaves_the_estimator_as_it_was(estimator):
    before = set(vars(estimator))
    estimator.measure(as_sample(X, Y), folds=2)
    assert set(vars(estimator)) == before


@pytest.mark.parametrize("name", ["demi-concat", "gm"])
def test_the_answer_does_not_depend_on_the_number_of_processes(name):
    sample = as_sample(X, Y)
    alone, together = (
        clone(QUICK_ESTIMATORS[name]).measure(sample, folds=3, n_jobs=n) for n in (1, 2)
    )
    assert alone == together
    assert np.array_equal(alone.pointwise, together.pointwise)


def test_grid_search_chooses_by_the_held_out_loss():
    still, moving = (
        Training(batch=64, steps=s, learning_rate=r, halve_at=())
        for s, r in ((1, 1e-9), (150, 2e-3))
    )
    search = GridSearchCV(Estimator(baseline=None), {"training": [still, moving]}, cv=3).fit(X, Y)
    assert search.best_params_["training"] is moving
    assert search.best_estimator_.estimate(X_NEW, Y_NEW).mi > 0.1


@pytest.mark.parametrize("name", ["ksg", "gaussian"])
def test_swapping_the_sides_changes_nothing(name):
    there = clone(QUICK_ESTIMATORS[name]).measure(as_sample(X, Y))
    back = clone(QUICK_ESTIMATORS[name]).measure(as_sample(Y, X))
    assert there.mi == pytest.approx(back.mi)
