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


def test_labels_are_read_alike_by_all_laws(monkeypatch):
    asked = {}
    estimate = deminat.laws.estimate

    def recorded(*sides, **how):
        asked[len(asked)] = how["discrete"]
        return estimate(*sides, **how)

    monkeypatch.setattr("deminat.laws.estimate", recorded)
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(9, size=200), rng.normal(size=200)], axis=1)
    base, checks = deminat.check(x, x[:, 0], method="ksg")
    found = dict(zip(["", *(c.change for c in checks)], asked.values(), strict=True))
    both = ["column 0 of x", "column 0 of y"]
    assert found.pop("x and y exchanged") == both
    assert found.pop("as much noise added to y") == ["column 0 of x"]
    assert found.pop("rows concatenated two by two") == [
        *("column 0 of x", "column 2 of x", "column 0 of y", "column 1 of y"),
    ]
    assert set(map(tuple, found.values())) == {tuple(both)}
    assert "labels" not in [w.code for w in base.warnings]  # nearest neighbours know of none
    asked.clear()
    deminat.check(x, x[:, 0], method="ksg", discrete=False)
    assert not any(asked.values())


def test_a_check_says_once_which_numbers_are_labels():
    rng = np.random.default_rng(0)
    x, y = rng.integers(9, size=100), rng.normal(size=100)
    quick = {"preset": "quick", "folds": 2, "budget": 4}
    for declared, count in ((None, 1), (["x"], 0)):
        base, _ = deminat.check(x, y, discrete=declared, **quick)
        assert sum(w.code == "labels" for w in base.warnings) == count


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
