"""The laws of information, checked on data: a good estimator passes, a bad one fails."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import deminat
from deminat import tasks
from deminat.cli import app


def laws(checks):
    return [c.law for c in checks]


def test_a_closed_form_passes_on_normal_data():
    x, y = tasks.gaussian(2, 1.0).sample(2_000, seed=0)
    base, checks = deminat.check(x, y, method="copula")
    assert base.mi == pytest.approx(1, abs=0.1)
    assert laws(checks) == [
        *("independence", "symmetry", "invariance"),
        *("data processing",) * 3,
        "additivity",
    ]
    assert all(c.passed for c in checks)


def test_an_estimator_of_linear_dependence_alone_fails():
    x, y = tasks.gaussian(2, 2.0).sample(2_000, seed=0)
    checks = {c.law: c for c in deminat.check(x, y, method="gaussian")[1]}
    assert not checks["invariance"].passed
    assert checks["symmetry"].passed


def test_an_estimator_with_a_ceiling_is_not_additive():
    class Capped(deminat.Gaussian):
        def estimate_sample(self, sample):
            found = super().estimate_sample(sample)
            return replace(found, result=replace(found.result, mi=min(found.result.mi, 1.2)))

    x, y = tasks.gaussian(1, 1.0).sample(2_000, seed=0)
    checks = {c.law: c for c in deminat.check(x, y, method=Capped())[1]}
    assert not checks["additivity"].passed
    assert checks["independence"].passed


def test_groups_and_images_have_fewer_laws():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(60, 1, 4, 4))
    _, checks = deminat.check(images, images[:, :, :, ::-1], method="ksg")
    assert laws(checks) == ["independence", "symmetry", "data processing", "additivity"]
    x = rng.normal(size=60)
    _, checks = deminat.check(x, x, method="ksg", groups=np.arange(60) // 3)
    assert laws(checks) == ["independence", "symmetry", "invariance", "data processing"]


def test_the_command_prints_a_table_and_fails_if_a_law_does(tmp_path):
    x, y = tasks.gaussian(1, 2.0).sample(1_000, seed=0)
    path = tmp_path / "pairs.npz"
    np.savez(path, x=x, y=y)
    done = CliRunner().invoke(app, ["check", str(path), "--method", "copula"])
    assert done.exit_code == 0, done.output
    assert done.stdout.count(" ok") == 5
    done = CliRunner().invoke(app, ["check", str(path), "--method", "gaussian", "--json"])
    assert done.exit_code == 1
    written = json.loads(done.stdout)
    assert [c["passed"] for c in written["checks"]] == [True, True, False, True, True]
