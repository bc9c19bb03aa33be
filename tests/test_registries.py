"""What a user adds from outside the package works as if it were part of it."""

from dataclasses import dataclass

import numpy as np
import pytest

import deminat
from common import QUICK
from deminat import Estimator
from deminat.estimators.recipes import Auto
from deminat.estimators.registry import METHODS, PRESETS, estimator_for, trains
from deminat.objectives import DEMI, Objective
from deminat.tasks import gaussian

X, Y = gaussian(2, 1.0).sample(300, seed=0)


@dataclass(frozen=True)
class Brier(Objective):
    """A user's own objective: squared errors of a classifier, mean log-ratio estimate."""

    name = "brier"
    is_mean_log_ratio = True

    def loss(self, joint, product):
        missed, mistaken = joint.sigmoid() - 1, product.sigmoid()
        return missed.square().mean(-1) + mistaken.square().mean((-2, -1))

    def estimate(self, joint, product):
        return joint.mean(-1)


class NoMean(Brier):
    """The same, whose estimate is said to be something else."""

    is_mean_log_ratio = False


def test_an_objective_of_ones_own_gets_interval_and_correction():
    result = deminat.estimate(X, Y, method=Estimator(Brier(), training=QUICK), folds=2)
    assert result.method == "brier"
    assert result.interval is not None
    low, high = result.interval
    assert low <= result.mi <= high
    correction = result.diagnostics["correction"]
    d = result.diagnostics
    assert correction == pytest.approx((np.mean(d.training_means) - np.mean(d.fold_means)) / 2)
    assert correction != 0
    other = deminat.estimate(X, Y, method=Estimator(NoMean(), training=QUICK), folds=2)
    assert other.interval is None
    assert other.diagnostics["correction"] == 0


def test_a_method_is_added_by_one_line(monkeypatch):
    monkeypatch.setitem(METHODS, "brier", Brier)
    assert trains("brier")
    assert estimator_for("brier").objective == Brier()
    result = deminat.estimate(X, Y, method="brier", preset="quick", folds=2)
    assert 0.4 < result.mi < 1.4


class Tiny(Auto):
    """A user's own recipe."""

    def neural(self, objective, sample, seed):
        return Estimator(objective, training=QUICK, seed=seed)


def test_a_preset_is_added_by_one_line(monkeypatch):
    with pytest.raises(ValueError, match="preset must be one of auto, quick, paper"):
        deminat.estimate(X, Y, preset="tiny")
    monkeypatch.setitem(PRESETS, "tiny", Tiny)
    assert estimator_for(DEMI(), "tiny").training == QUICK
    assert deminat.estimate(X, Y, preset="tiny", folds=2).method == "demi"
