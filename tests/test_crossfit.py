"""Cross-fitting: every pair by a model that never saw it, and what sampling noise cost it."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator

import deminat
from deminat import Estimator
from deminat.data.sample import as_sample
from deminat.estimators.crossfit import CrossFitOptions, cross_fit
from deminat.estimators.scores import Scores
from deminat.objectives import CCMI, DEMI, JSD
from deminat.tasks import gaussian
from deminat.training.callbacks import History


@dataclass
class PlugIn(BaseEstimator):
    """The log ratio of Gaussians with the covariance of the training rows, as it is."""

    seed: int = 0

    def fit_sample(self, sample, progress=None):
        self.history_ = History(0, 0, 0.0, (), 0)
        self.covariance_ = np.cov(sample.x, sample.y, rowvar=False)
        self.scorer_ = self
        return self

    def baseline_mean(self, sample):
        return 0.0

    def lead(self):
        return 0.0

    def neighbours(self, sample, part, joint):
        return None

    def tables(self, sample, seed):
        return np.empty((1, 0, 2, 2))

    def joint(self, sample):
        d, both = sample.x.shape[1], np.hstack([sample.x, sample.y])
        c = self.covariance_
        parts = (both, c), (sample.x, c[:d, :d]), (sample.y, c[d:, d:])
        joint, x, y = (multivariate_normal(cov=cov).logpdf(rows) for rows, cov in parts)
        return joint - x - y

    def scores(self, sample, k, seed):
        return Scores(self.joint(sample), np.zeros((len(sample), k)))

    def table(self, x, y):
        return np.zeros((len(x), len(y)))


@pytest.mark.parametrize("seed", range(3))
def test_held_out_and_training_rows_are_off_by_equal_amounts(seed):
    task = gaussian(10, 1.0)
    x, y = task.sample(2000, seed)
    fit = cross_fit(PlugIn(), as_sample(x, y), CrossFitOptions(), partners=1)
    oracle, held_out = task.log_ratio(x, y).mean(), fit.scores.joint.mean()
    assert held_out < oracle - 0.02
    assert np.mean(fit.training_means) > oracle + 0.02
    assert held_out + fit.optimism == pytest.approx(oracle, abs=0.007)


def test_the_correction_is_reported_and_added_once():
    x, y = gaussian(2, 1.0).sample(300, seed=0)
    result = deminat.estimate(x, y)
    figures = result.diagnostics
    gap = np.mean(figures["training_means"]) - np.mean(figures["fold_means"])
    assert figures["correction"] == pytest.approx(gap / 2)
    assert result.mi == pytest.approx(np.mean(figures["fold_means"]) + gap / 2)
    assert result.pointwise.mean() == pytest.approx(result.mi)


def test_only_mean_log_ratios_are_corrected():
    x, y = gaussian(2, 1.0).sample(300, seed=0)
    demi, jsd, ccmi = deminat.compare(x, y, methods=[DEMI(), JSD(), CCMI()])
    assert demi.mi == jsd.mi
    assert demi.diagnostics["correction"] != 0 == ccmi.diagnostics["correction"]


def test_what_is_not_stopped_early_is_not_corrected():
    x, y = gaussian(2, 1.0).sample(200, seed=0)
    for answer in (
        deminat.estimate(x, y, preset="paper"),
        deminat.estimate(x, y, method=Estimator(correct=False)),
        deminat.estimate(x, y, method=Estimator(training=deminat.PAPER)),
    ):
        assert answer.diagnostics["correction"] == 0
