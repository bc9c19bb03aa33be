"""A saved run is the same when it is loaded; a damaged, foreign or newer one is refused."""

import contextlib
import dataclasses
import errno
import json
import pickle
import resource
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn

import deminat
from common import QUICK, QUICK_ESTIMATORS
from deminat import Caution, DataError, Estimator, MIResult
from deminat.data.sample import as_sample
from deminat.runtime.atomic import with_checksum
from deminat.tasks import gaussian

X, Y = gaussian(2, 1.0).sample(110, seed=0)
X_NEW, Y_NEW = gaussian(2, 1.0).sample(30, seed=1)
QUICKLY = Estimator(training=QUICK)


@pytest.fixture(scope="module")
def result():
    return deminat.estimate(X, Y, method=QUICKLY, folds=2)


@pytest.fixture
def run(result, tmp_path):
    result.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("estimator", QUICK_ESTIMATORS.values(), ids=QUICK_ESTIMATORS)
def test_all_of_a_result_comes_back(estimator, tmp_path):
    result = deminat.estimate(X, Y, method=estimator, folds=2)
    result.save(tmp_path / "run")
    again = deminat.load(tmp_path / "run")
    assert again == result  # mi, interval, p-value, warnings and so on
    assert repr(again) == repr(result)
    assert str(again) == str(result)
    assert again.recipe == result.recipe
    assert again.diagnostics == result.diagnostics
    assert again.pointwise.tobytes() == result.pointwise.tobytes()
    scores = result.log_ratio(X_NEW, Y_NEW)
    assert scores.shape == (30,)
    assert again.log_ratio(X_NEW, Y_NEW).tobytes() == scores.tobytes()


def test_a_loaded_run_can_be_saved_again(run, tmp_path):
    deminat.load(run).save(tmp_path / "copy")
    for path in run.glob("*-*"):
        assert (tmp_path / "copy" / path.name).read_bytes() == path.read_bytes()


def test_new_rows_are_scored_by_the_mean_of_the_critics(result):
    members = result.model.whole.members
    assert len(members) == 2
    each = [member.joint(as_sample(X_NEW, Y_NEW)) for member in members]
    assert result.log_ratio(X_NEW, Y_NEW) == pytest.approx(np.mean(each, axis=0))
    assert not np.array_equal(*each)


def test_old_rows_have_one_critic_that_never_saw_them(result):
    held_out = result.pointwise - result.diagnostics["correction"]
    each = [member.joint(as_sample(X, Y)) for member in result.model.whole.members]
    nearest = np.min(np.abs(np.array(each) - held_out), axis=0)
    assert nearest.max() < 1e-5


def test_given_z_the_log_ratio_is_beyond_z(tmp_path):
    z = X[:, :1]
    result = deminat.estimate(X, Y, given=z, method=QUICKLY, folds=2)
    result.save(tmp_path / "run")
    again = deminat.load(tmp_path / "run")
    assert again.diagnostics == result.diagnostics
    new = again.log_ratio(X_NEW, Y_NEW, X_NEW[:, :1])
    parts = result.model
    both = np.hstack([Y_NEW, X_NEW[:, :1]])
    whole = np.mean([m.joint(as_sample(X_NEW, both)) for m in parts.whole.members], axis=0)
    known = np.mean([m.joint(as_sample(X_NEW, X_NEW[:, :1])) for m in parts.known.members], axis=0)
    assert new == pytest.approx(whole - known)
    with pytest.raises(DataError, match="pass given="):
        again.log_ratio(X_NEW, Y_NEW)


def test_nothing_was_given(result):
    with pytest.raises(DataError, match="leave given out"):
        result.log_ratio(X_NEW, Y_NEW, X_NEW)


def test_images_come_back(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(40, 1, 6, 6))
    how = {"preset": "paper", "folds": 2}
    result = deminat.estimate(images, images + rng.normal(size=images.shape), **how)
    result.save(tmp_path / "run")
    again = deminat.load(tmp_path / "run")
    assert np.array_equal(again.log_ratio(images, images), result.log_ratio(images, images))
    with pytest.raises(DataError, match=r"rows of shape \(1, 6, 6\)"):
        again.log_ratio(images[:, :, :3], images)


def test_constant_columns_are_left_out_of_new_rows_too(tmp_path):
    x = np.hstack([np.full((110, 1), 7.0), X])
    result = deminat.estimate(x, Y, method="gaussian")
    result.save(tmp_path / "run")
    new = np.hstack([np.full((30, 1), 3.0), X_NEW])
    expected = deminat.estimate(X, Y, method="gaussian").log_ratio(X_NEW, Y_NEW)
    assert deminat.load(tmp_path / "run").log_ratio(new, Y_NEW) == pytest.approx(expected)


def test_where_nothing_varies_the_log_ratio_is_zero(tmp_path):
    result = deminat.estimate(np.ones(30), np.arange(30.0))
    result.save(tmp_path / "run")
    assert deminat.load(tmp_path / "run").log_ratio([1.0, 2.0], [3.0, 4.0]).tolist() == [0, 0]


@pytest.fixture(scope="module")
def named():
    frame = pl.DataFrame({"a": X[:, 0], "kind": [("p", "q", "r")[i % 3] for i in range(110)]})
    frame = frame.with_columns(pl.col("kind").cast(pl.Enum(["p", "q", "r"])))
    return deminat.estimate(frame, pl.Series("y", Y[:, 0]), method="gaussian")


class TestNewRows:
    """They must look like the old ones."""

    def rows(self, kinds, levels=("p", "q", "r"), a=0.5):
        values = pl.Series("kind", kinds, dtype=pl.Enum(levels))
        return pl.DataFrame({"a": [a] * len(kinds), "kind": values})

    def test_frames_are_matched_by_name(self, named):
        rows, y = self.rows(["p", "r"]), pl.Series("y", [1.0, 2.0])
        expected = named.log_ratio(rows, y)
        assert np.array_equal(named.log_ratio(rows.select("kind", "a"), y), expected)
        other = pd.DataFrame({"kind": pd.Categorical(["p", "r"]), "a": [0.5, 0.5]})
        assert np.array_equal(named.log_ratio(other, np.array([1.0, 2.0])), expected)
        arrays = np.array([[0.5, 1, 0, 0], [0.5, 0, 0, 1]]), np.array([1.0, 2.0])
        assert np.array_equal(named.log_ratio(*arrays), expected)

    def test_levels_may_be_missing_but_not_new(self, named):
        y = pl.Series("y", [1.0, 2.0])
        expected = named.log_ratio(self.rows(["p", "r"]), y)
        assert np.array_equal(named.log_ratio(self.rows(["p", "r"], ["p", "r"]), y), expected)
        assert np.array_equal(named.log_ratio(self.rows(["p", "r"], ["p", "r", "z"]), y), expected)
        with pytest.raises(DataError, match="kind=z, a level that the fit never saw"):
            named.log_ratio(self.rows(["p", "z"], ["p", "r", "z"]), y)

    def test_other_columns_are_refused(self, named):
        y = pl.Series("y", [1.0, 2.0])
        rows = self.rows(["p", "r"])
        for wrong in (rows.drop("kind"), rows.drop("a"), rows.with_columns(b=1.0)):
            with pytest.raises(DataError, match="the fit had a, kind=p, kind=q, kind=r"):
                named.log_ratio(wrong, y)
        with pytest.raises(DataError, match="the fit had y"):
            named.log_ratio(rows, pl.Series("z", [1.0, 2.0]))

    def test_other_shapes_are_refused(self, result):
        with pytest.raises(DataError, match="X has 1 features, but deminat is expecting 2"):
            result.log_ratio(X_NEW[:, 0], Y_NEW)
        with pytest.raises(DataError, match="30 rows and y has 29"):
            result.log_ratio(X_NEW, Y_NEW[1:])

    def test_missing_values_are_refused_or_have_no_score(self, result):
        x = X_NEW.copy()
        x[[3, 7], 1] = np.nan
        with pytest.raises(DataError, match="NaN or inf in 2 of 30 rows"):
            result.log_ratio(x, Y_NEW)
        scores = result.log_ratio(x, Y_NEW, nan="omit")
        assert np.flatnonzero(np.isnan(scores)).tolist() == [3, 7]
        whole = result.log_ratio(X_NEW, Y_NEW)
        assert np.delete(scores, [3, 7]) == pytest.approx(np.delete(whole, [3, 7]))

    def test_one_row_is_enough(self, result):
        one = result.log_ratio(X_NEW[:1], Y_NEW[:1])
        assert one == pytest.approx(result.log_ratio(X_NEW, Y_NEW)[:1])


def test_what_was_fitted_does_not_swell_the_result(result):
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert len(pickle.dumps(result)) < 10_000
    assert "model" not in repr(result)
    assert "model" not in result.to_dict()
    for lost in (lambda: again.log_ratio(X_NEW, Y_NEW), lambda: again.save("nowhere")):
        with pytest.raises(ValueError, match=r"use save and deminat\.load"):
            lost()
    assert not Path("nowhere").exists()


class Own(nn.Module):
    def __init__(self, x_shape, y_shape):
        super().__init__()
        self.layer = nn.Linear(x_shape[0] + y_shape[0], 1)

    def forward(self, x, y):
        return self.layer(torch.cat([x, y], dim=1))[:, 0]


class OwnSeparable(nn.Module):
    """A separable critic of a user's own: trained in stages, of other columns each."""

    def __init__(self, x_shape, y_shape):
        super().__init__()
        self.u, self.v = nn.Linear(x_shape[0], 3), nn.Linear(y_shape[0], 3)

    def left(self, x):
        return self.u(x)

    def right(self, y):
        return self.v(y)

    def forward(self, x, y):
        return (self.left(x) * self.right(y)).sum(dim=1)


@pytest.mark.parametrize("own", [Own, OwnSeparable])
@pytest.mark.parametrize("baseline", [None, deminat.GaussianCopula.choose], ids=["alone", "added"])
def test_a_critic_of_ones_own_is_loaded_if_its_class_is_given(tmp_path, own, baseline):
    estimator = Estimator(critic=own, training=QUICK, baseline=baseline)
    result = deminat.estimate(X, Y, method=estimator, folds=2)
    result.save(tmp_path)
    state = torch.get_rng_state()
    loaded = deminat.load(tmp_path, critic=own)
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(loaded.log_ratio(X_NEW, Y_NEW), result.log_ratio(X_NEW, Y_NEW))


def test_a_critic_of_ones_own_needs_its_class(tmp_path):
    estimator = Estimator(critic=Own, training=QUICK, baseline=None)
    deminat.estimate(X, Y, method=estimator, folds=2).save(tmp_path)
    refused(tmp_path, "critic of your own, Own", "deminat.load(folder, critic=Own)")
    with pytest.raises(DataError, match="does not fit the weights of Own"):
        deminat.load(tmp_path, critic=OwnSeparable)


def test_columns_whose_names_look_like_levels_are_not_taken_for_levels():
    rng = np.random.default_rng(0)
    x = pl.DataFrame({f"t={i}": rng.normal(size=200) for i in range(3)})
    y = x["t=1"] + rng.normal(size=200)
    result = deminat.estimate(x, y, method="gaussian")
    with pytest.raises(DataError, match="pass the same"):
        result.log_ratio(x.drop("t=1"), y)
    assert result.log_ratio(x.select("t=2", "t=1", "t=0"), y) == pytest.approx(result.pointwise)


def test_nothing_is_pickled(run):
    names = sorted(path.suffix for path in run.iterdir() if not path.name.endswith(".lock"))
    assert names == [".json", ".json", ".safetensors"]
    told = json.loads(next(run.glob("result-*.json")).read_text())
    assert told["method"] == "demi"


def refused(run, *words):
    with pytest.raises(DataError) as caught:
        deminat.load(run)
    message = str(caught.value)
    assert "\n" not in message
    assert str(run) in message
    for word in words:
        assert word in message


def test_every_flipped_bit_is_found(run):
    rng = np.random.default_rng(0)
    for path in run.glob("*.[js]*"):
        whole = path.read_bytes()
        if not whole:
            continue  # the lock
        for place in [0, len(whole) - 1, *rng.integers(len(whole), size=12)]:
            damaged = bytearray(whole)
            damaged[place] ^= 1 << rng.integers(8)
            path.write_bytes(bytes(damaged))
            refused(run, "damaged")
        path.write_bytes(whole)
    deminat.load(run)


def test_every_truncated_file_is_found(run):
    for path in [p for p in run.iterdir() if p.stat().st_size]:
        whole = path.read_bytes()
        for length in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            refused(run, "damaged")
        path.write_bytes(whole)


def test_a_missing_file_is_named(run):
    next(run.glob("model-*")).unlink()
    refused(run, "cannot read", ".safetensors")


def test_what_is_no_run_is_refused(tmp_path):
    refused(tmp_path / "nowhere", "cannot read")
    refused(tmp_path, "no manifest.json")
    (tmp_path / "file").write_text("a file")
    refused(tmp_path / "file", "cannot read")
    (tmp_path / "manifest.json").write_text('{"name": "another program"}')
    refused(tmp_path, "no run of deminat")
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    refused(tmp_path, "no run of deminat")


def test_an_unfinished_run_is_told_from_none(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    refused(tmp_path, "unfinished", "--resume")


def test_a_newer_run_asks_for_an_update(run):
    manifest = run / "manifest.json"
    told = json.loads(manifest.read_text())
    manifest.write_bytes(with_checksum({**told, "version": 2, "more": "things"}))
    refused(run, "newer deminat (format 2", "update")


@pytest.mark.parametrize("suffix", [".pkl", ".pt", ".joblib"])
def test_a_pickle_in_the_folder_is_refused(run, suffix):
    (run / f"model{suffix}").write_bytes(pickle.dumps("harmless"))
    refused(run, f"model{suffix}", "could run code")


@pytest.mark.parametrize("name", ["../model-0123456789ab.safetensors", "model-x.pkl", "/etc/x"])
def test_a_manifest_cannot_name_other_files(run, name):
    manifest = run / "manifest.json"
    told = json.loads(manifest.read_text())
    other = {key: value for key, value in told["files"].items() if key.startswith("result")}
    manifest.write_bytes(with_checksum({**told, "files": {**other, name: "0" * 64}}))
    refused(run, "damaged")


def test_a_run_is_replaced_and_leaves_nothing_behind(run):
    deminat.estimate(X, Y, method="gaussian").save(run)
    assert deminat.load(run).method == "gaussian"
    names = [path.name for path in run.iterdir() if not path.name.endswith(".lock")]
    assert len(names) == 3


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_is_replaced_whole_or_not_at_all(run, result, at, monkeypatch):
    # Killed before the at-th of three renames, so to speak.
    renames = []
    rename = Path.replace

    def counted(self, target):
        renames.append(target)
        if len(renames) == at:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", counted)
    with pytest.raises(KeyboardInterrupt):
        deminat.estimate(X, Y, method="gaussian").save(run)
    monkeypatch.undo()
    assert deminat.load(run) == result
    deminat.estimate(X, Y, method="gaussian").save(run)
    assert len([p for p in run.iterdir() if not p.name.endswith(".lock")]) == 3


@contextlib.contextmanager
def largest_file(size):
    """A disk that is full, so to speak."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_one_line_and_the_old_run_stays(run, result):
    other = dataclasses.replace(result, method="other")
    with largest_file(2_000), pytest.raises(DataError, match=r"cannot write .*File too large"):
        other.save(run)
    assert deminat.load(run) == result
    assert not list(run.glob("*.new"))


def test_a_place_that_cannot_be_written_is_named(result, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(DataError, match=r"cannot write to .*file"):
            result.save(place)

    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", read_only)
    with pytest.raises(DataError, match=r"cannot write .*run.*Read-only file system"):
        result.save(tmp_path / "run")


def test_a_folder_of_something_else_is_refused(result, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex: name an empty folder"):
        result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_diagnostics_that_json_cannot_hold_are_refused(tmp_path, result):
    odd = dataclasses.replace(result, diagnostics={"array": np.arange(3)})
    with pytest.raises(DataError, match="make them lists"):
        odd.save(tmp_path / "run")


def test_figures_that_are_not_finite_come_back(tmp_path, result):
    told = {"a": [np.inf, 1.0], "b": (None, -np.inf)}
    odd = dataclasses.replace(result, diagnostics=told, warnings=(Caution("a", "b", "c"),))
    odd.save(tmp_path / "run")
    again = deminat.load(tmp_path / "run")
    assert again.diagnostics == told
    assert again.warnings == odd.warnings


def test_a_result_without_a_fit_says_so():
    bare = MIResult(1.0, 0.1, 9, "demi", np.arange(9.0))
    with pytest.raises(ValueError, match="needs the fitted model"):
        bare.save("nowhere")
