"""`estimate` and `compare`: from two arrays to a number in nats."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

import deminat
from common import QUICK
from deminat import (
    CCMI,
    DEMI,
    GM,
    JSD,
    KSG,
    SMILE,
    ConvCritic,
    Estimator,
    GaussianCopula,
    MLPCritic,
    Standardize,
)
from deminat.data.sample import as_sample
from deminat.estimators.registry import METHODS, estimator_for
from deminat.tasks import gaussian
from deminat.training.config import AUTO, PAPER

TASK = gaussian(1, 0.7)
X, Y = TASK.sample(600, seed=3)
SHORT = Estimator(training=replace(AUTO, batch=128, steps=300), baseline=None)  # the network alone


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_its_name(method):
    estimator = estimator_for(method)
    assert estimator.name.startswith(method.partition("-")[0])
    assert estimator_for(method, "paper").name == estimator.name


def test_the_default_is_near_the_truth():
    result = deminat.estimate(X, Y, method=SHORT)
    assert abs(result.mi - TASK.mi) < 4 * result.standard_error
    assert result.diagnostics["restarts"] == 0
    assert len(result.diagnostics["fold_means"]) == 5


def estimates_by_prior(baseline):
    objectives = DEMI(0.5), DEMI(0.1), DEMI(0.9), DEMI(0.25, draw=True)
    methods = [Estimator(o, training=SHORT.training, baseline=baseline) for o in objectives]
    return [deminat.estimate(X, Y, method=m, folds=2) for m in methods]


def test_alpha_does_not_matter():
    half, *others = estimates_by_prior(GaussianCopula.choose)
    for other in others:
        assert abs(other.mi - half.mi) < 2 * half.standard_error


def test_a_prior_is_taken_out_again():
    # The network alone, from 300 pairs: misplaced, the prior would show as 1.1 or 2.2 nats.
    half, *others = estimates_by_prior(None)
    for other in others:
        assert abs(other.mi - half.mi) < 0.3


def test_methods_that_share_a_loss_share_the_training(monkeypatch):
    trained = []
    fit = Estimator.fit_sample
    monkeypatch.setattr(
        Estimator, "fit_sample", lambda self, *a: (trained.append(self.objective), fit(self, *a))[1]
    )
    objectives = [DEMI(), JSD(), CCMI(), SMILE(1.0), SMILE(5.0), DEMI(0.25)]
    methods = [Estimator(o, training=QUICK) for o in objectives]
    results = deminat.compare(X, Y, methods=methods, folds=2)
    assert [r.method for r in results] == [o.name for o in objectives]
    assert len(trained) == 2 * 2 + 2  # two folds of DEMI(1/2) and of DEMI(1/4), and the test
    alone = deminat.estimate(X, Y, method=Estimator(CCMI(), training=QUICK), folds=2)
    assert alone == results[2]


def test_the_seed_decides():
    same = [deminat.estimate(X, Y, method=Estimator(training=QUICK, seed=s)) for s in (1, 1, 2)]
    assert same[0] == same[1]
    assert same[0] != same[2]


def test_each_pair_is_scored_by_a_critic_that_never_saw_it():
    """A critic that only remembers its training rows must score every pair as new."""

    class Memory(torch.nn.Module):
        def __init__(self, x_shape, y_shape):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))
            self.seen = set()

        def forward(self, x, y):
            if self.training:
                self.seen |= set(x[:, 0].tolist())
                return self.weight + 0 * x[:, 0]
            return torch.tensor([float(v in self.seen) for v in x[:, 0].tolist()])

    class Same:  # a map that does not depend on the fold, so that rows can be recognised
        fit = classmethod(lambda cls, a: cls())
        __call__ = staticmethod(lambda a: a)

    training = replace(QUICK, stopping=None, steps=100, negatives=1)
    method = Estimator(DEMI(), Memory, Same, training, baseline=None)
    unrelated = np.random.default_rng(1).normal(size=Y.shape)  # so that there is no lower bound
    assert deminat.estimate(X, unrelated, method=method, folds=3).mi == 0
    assert method.fit(X, Y).estimate(X, Y).mi > 0.9


def test_no_cap_by_the_batch():
    x, y = gaussian(20, 8.0).sample(4_000, seed=0)
    training = replace(PAPER, batch=16, steps=3_000, halve_at=())
    fitted = Estimator(DEMI(), MLPCritic, Standardize, training).fit(x[:3_500], y[:3_500])
    assert fitted.estimate(x[3_500:], y[3_500:]).mi > np.log(16) + 0.5


def test_presets_choose_critic_and_training():
    paper, auto = estimator_for("demi", "paper"), estimator_for("demi")
    assert (paper.critic, paper.training) == (MLPCritic, PAPER)
    assert auto.network.training == AUTO
    assert estimator_for("infonce", "paper").training.negatives == 63
    assert estimator_for("gm", "paper").training.stopping is None
    images = as_sample(np.random.default_rng(0).normal(size=(30, 1, 6, 6)), np.ones((30, 2, 6, 6)))
    assert estimator_for("infonce", "auto", images).critic is ConvCritic
    assert estimator_for("demi", "paper", images).critic is ConvCritic


def test_images_go_in():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1, 8, 8))
    method = Estimator(critic=ConvCritic, training=replace(QUICK, steps=5, batch=16))
    assert deminat.estimate(x, x + 1, method=method, folds=2).n == 60


def test_a_constant_side_has_no_information():
    for result in deminat.compare(X, np.ones(len(X)), methods=["demi", "ksg", "gaussian", "gm"]):
        assert result.mi == 0
        assert [w.code for w in result.warnings] == ["constant"]


def test_a_constant_column_changes_nothing():
    with_constant = np.column_stack([X, np.full(len(X), 1e9)])
    for method in ("ksg", "gaussian"):
        plain, padded = (deminat.estimate(x, Y, method=method) for x in (X, with_constant))
        assert padded.mi == plain.mi
        assert "constant" in str(padded)


def test_scale_and_offset_change_nothing():
    method = Estimator(training=QUICK)
    plain = deminat.estimate(X, Y, method=method).mi
    for moved in (X * 1e30, X * 1e-30, X + 1e8):
        assert deminat.estimate(moved, Y, method=method).mi == pytest.approx(plain, abs=1e-3)


def test_few_pairs_are_flagged_or_refused():
    result = deminat.estimate(X[:30], Y[:30], method=Estimator(training=QUICK))
    assert "underpowered" in [w.code for w in result.warnings]
    with pytest.raises(deminat.DataError, match="at least 20"):
        deminat.estimate(X[:19], Y[:19])


def test_copies_do_not_leak():
    # 40 rows, ten times each, of independent noise: seen in training, each would be recognised.
    rng = np.random.default_rng(0)
    x, y = (np.repeat(rng.normal(size=(40, 3)), 10, axis=0) for _ in range(2))
    result = deminat.estimate(x, y, method=SHORT, folds=4)
    assert "duplicates" in [w.code for w in result.warnings]
    assert result.mi < 0.1


def test_a_negative_estimate_is_kept_and_explained():
    rng = np.random.default_rng(1)
    results = [
        deminat.estimate(rng.normal(size=100), rng.normal(size=100), method="ksg") for _ in range(9)
    ]
    below = [r for r in results if r.mi < 0]
    assert below
    assert all("negative" in [w.code for w in r.warnings] for r in below)


def test_unknown_names_say_what_there_is():
    with pytest.raises(ValueError, match="method must be one of demi, jsd"):
        deminat.estimate(X, Y, method="dmei")
    with pytest.raises(ValueError, match="preset must be one of auto, quick, paper"):
        deminat.estimate(X, Y, preset="fast")
    with pytest.raises(ValueError, match="folds must be at least 2"):
        deminat.estimate(X, Y, folds=1)


def test_flows_without_zuko_say_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zuko.flows", None)
    with pytest.raises(deminat.DataError, match=r"pip install 'deminat\[flows\]'"):
        GM().fit(X, Y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_told(n_jobs):
    seen: list[float] = []
    methods = [Estimator(training=QUICK), KSG()]
    deminat.compare(X, Y, methods=methods, progress=seen.append, n_jobs=n_jobs)
    assert seen == sorted(seen)
    assert seen[-1] > 0.4


@pytest.mark.slow
def test_independent_data_read_zero():
    values = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(2, 5_000, 10))
        values.append(deminat.estimate(x, y, seed=seed).mi)
    assert abs(np.mean(values)) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("method", ["demi", "ccmi", "mine", "nwj", "infonce", "gm"])
def test_trained_methods_find_one_nat(method):
    task = gaussian(2, 1.0)
    x, y = task.sample(4_000, seed=0)
    result = deminat.estimate(x, y, method=method, n_jobs=2)
    assert abs(result.mi - task.mi) < 4 * result.standard_error + 0.05


def test_threads_do_not_disturb_each_other():
    x, y = gaussian(1, 0.5).sample(200, seed=0)
    alone = deminat.estimate(x, y, preset="quick").mi
    before = torch.get_rng_state()
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: deminat.estimate(x, y, preset="quick").mi, range(3)))
    assert found == [alone] * 3
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("wrong", [0, 1.5, "2"])
def test_a_number_of_processes_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match=r"n_jobs must be a number of processes, -1 for all cores"):
        deminat.estimate(np.arange(99.0), np.arange(99.0), n_jobs=wrong)
