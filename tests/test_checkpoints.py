"""Finished folds stay finished: after kills the answer is the same, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import deminat
from common import QUICK, QUICK_ESTIMATORS
from deminat import DataError, Estimator, MLPCritic, Standardize
from deminat.data.sample import RowOptions, as_sample
from deminat.estimators.request import Request
from deminat.persistence.checkpoints import fingerprint
from deminat.runtime.atomic import exclusive
from deminat.tasks import gaussian
from deminat.training.callbacks import Recorder
from estimating import FOLDS, all_bits, estimated

KILLS = 2  # of one run; a fold is finished in between
SCRIPT = Path(__file__).parent / "estimating.py"
X, Y = gaussian(2, 1.0).sample(110, seed=0)
QUICKLY = Estimator(training=QUICK)


def estimate(folder, x=X, y=Y, **how):
    return deminat.estimate(x, y, **{"method": QUICKLY, "folds": 3, "checkpoint": folder, **how})


def trained(folder, **how):
    """Return the answer and which folds were trained for it."""
    heard = Recorder()
    result = estimate(folder, callbacks=[heard], **how)
    return result, sorted({a[0] for name, a in heard.events if name == "on_begin"})


def folds_in(folder):
    return sorted(Path(folder).glob("*-fold-*.safetensors"))


@pytest.fixture(scope="module")
def whole():
    return deminat.estimate(X, Y, method=QUICKLY, folds=3)


def same(a, b):
    return all_bits(a) == all_bits(b) and np.array_equal(a.log_ratio(X, Y), b.log_ratio(X, Y))


def test_what_is_finished_is_not_trained_again(tmp_path, whole):
    first, folds = trained(tmp_path)
    assert folds == [0, 1, 2]
    assert same(first, whole)
    kept = folds_in(tmp_path)
    assert len(kept) == 3
    kept[1].unlink()
    again, folds = trained(tmp_path)
    assert folds == [1]
    assert same(again, whole)
    assert folds_in(tmp_path) == kept  # the same bits again
    assert trained(tmp_path)[1] == []


def test_a_fold_is_kept_as_soon_as_it_is_finished(tmp_path, whole):
    class Failing(Recorder):
        def on_begin(self, fold, training):
            if fold == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        estimate(tmp_path, callbacks=[Failing()])
    assert len(folds_in(tmp_path)) == 2
    result, folds = trained(tmp_path)
    assert folds == [2]
    assert same(result, whole)


def test_flows_and_what_needs_no_training(tmp_path):
    for name in ("gm", "ksg"):
        how = {"method": QUICK_ESTIMATORS[name], "folds": 2}
        plain = deminat.estimate(X, Y, **how)
        for expected in ([0, 1] if name == "gm" else [], []):
            result, folds = trained(tmp_path / name, **how)
            assert folds == expected
            assert same(result, plain)


def test_given_z_both_estimates_are_kept(tmp_path):
    z = X[:, :1] ** 2
    first, folds = trained(tmp_path, given=z, folds=2)
    assert folds == [0, 1]
    assert len(folds_in(tmp_path)) == 4
    next(tmp_path.glob("known-0-fold-0-*")).unlink()
    again, folds = trained(tmp_path, given=z, folds=2)
    assert folds == [0]
    assert all_bits(again) == all_bits(first)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": X + 1e-9}, "other data"),
        ({"y": Y[:, :1]}, "other data"),
        ({"groups": np.arange(110) // 2}, "other data"),
        ({"seed": 1}, r"other settings \(seed 0, not 1\)"),
        ({"folds": 2}, r"other settings \(folds 3, not 2\)"),
        ({"budget": 60.0}, r"other settings \(budget None, not 60.0\)"),
        ({"method": replace(QUICKLY, seed=3)}, r"other settings \(methods "),
        ({"method": replace(QUICKLY, training=replace(QUICK, steps=19))}, "other settings"),
        ({"method": replace(QUICKLY, critic=partial(MLPCritic, hidden=(3,)))}, "other settings"),
    ],
)
def test_other_data_and_settings_are_refused(tmp_path, change, words):
    _begin(tmp_path)
    with pytest.raises(DataError, match=f"is of {words}.*choose another folder, or delete it"):
        estimate(tmp_path, **change)


def _begin(folder):
    """Leave a checkpoint without any fold."""

    class Stopping(Recorder):
        def on_begin(self, fold, training):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        estimate(folder, callbacks=[Stopping()])


def test_other_versions_are_refused(tmp_path, monkeypatch):
    _begin(tmp_path)
    from deminat.persistence import checkpoints

    other = {**checkpoints.versions(), "torch": "1.0"}
    monkeypatch.setattr(checkpoints, "versions", lambda: other)
    with pytest.raises(DataError, match=r"other versions \(torch .*, not 1\.0\)"):
        estimate(tmp_path)


def test_a_fingerprint_depends_on_what_is_a_label():
    x = np.arange(len(X)) % 3

    def of(discrete):
        return fingerprint([as_sample(x, Y, RowOptions(discrete=discrete))], Request(["demi"]))

    assert of(None) == of(["x"]) == of(["column 0 of x"])
    assert of(False) != of(None) != of(True)


def test_a_fingerprint_is_the_same_in_every_process():
    class Own:
        def __init__(self, tau):
            self.tau = tau

    def of(tau):
        methods = [Own(tau), partial(MLPCritic, hidden=(3,)), QUICKLY, None, {"b": len}]
        return fingerprint([as_sample(X, Y)], Request(methods))

    assert " at 0x" not in str(of(1))
    assert of(1) == of(1)
    assert of(1) != of(2)


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


def test_damaged_folds_are_trained_again_with_a_warning(tmp_path, whole):
    estimate(tmp_path)
    first, second, third = folds_in(tmp_path)
    flipped(first)
    second.write_bytes(second.read_bytes()[:100])
    third.rename(tmp_path / third.name.replace("fold-2", "fold-0"))
    result, folds = trained(tmp_path)
    assert folds == [0, 1, 2]
    assert (result.mi, result.interval) == (whole.mi, whole.interval)
    (caution,) = set(result.warnings) - set(whole.warnings)
    assert caution.code == "checkpoint"
    assert "3 file(s) of the checkpoint were damaged" in caution.message
    assert same(estimate(tmp_path), whole)  # it is sound again


def test_a_damaged_head_means_that_all_is_done_again(tmp_path, whole):
    estimate(tmp_path)
    flipped(tmp_path / "checkpoint.json")
    result, folds = trained(tmp_path)
    assert folds == [0, 1, 2]
    assert result.mi == whole.mi
    assert [w.code for w in result.warnings][-1] == "checkpoint"


def test_a_fold_of_another_training_is_not_taken(tmp_path, whole):
    estimate(tmp_path / "a", seed=0, method=replace(QUICKLY, seed=1))
    _begin(tmp_path / "b")
    for path in folds_in(tmp_path / "a"):
        path.rename(tmp_path / "b" / path.name)
    result, folds = trained(tmp_path / "b")
    assert folds == [0, 1, 2]
    assert result.mi == whole.mi


def test_what_a_kill_left_half_written_is_removed(tmp_path, whole):
    _begin(tmp_path)
    (tmp_path / "whole-0-fold-1-abc.safetensors.77.new").write_bytes(b"half of")
    assert same(estimate(tmp_path), whole)
    assert not list(tmp_path.glob("*.new"))


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex: name an empty folder"):
        estimate(tmp_path)


def test_two_processes_do_not_share_a_checkpoint(tmp_path):
    with (
        exclusive(tmp_path / "checkpoint.json"),
        pytest.raises(DataError, match="another process is writing to"),
    ):
        estimate(tmp_path)


class Own(MLPCritic):
    """A critic of a user's own."""


def test_folds_of_a_critic_of_ones_own_are_read(tmp_path):
    own = replace(QUICKLY, critic=Own)
    first = estimate(tmp_path, method=own)
    recorder = Recorder()
    resumed = estimate(tmp_path, method=own, callbacks=[recorder])
    assert recorder.events == []
    assert np.array_equal(first.pointwise, resumed.pointwise)


def test_a_scaling_of_ones_own_is_refused_before_it_is_trained(tmp_path):
    class OwnScaling(Standardize):
        pass

    recorder = Recorder()
    with pytest.raises(DataError, match="OwnScaling is not part of deminat"):
        estimate(tmp_path, method=replace(QUICKLY, scaling=OwnScaling), callbacks=[recorder])
    assert recorder.events == []


def started(folder, log):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "FOLD_LOG": str(log), "OMP_NUM_THREADS": "1"},
    )


def lines(log):
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize(
    "run", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 15))]
)
def test_kills_at_random_moments_change_nothing(tmp_path, run):
    folder, log = tmp_path / "checkpoint", tmp_path / "log"
    rng = np.random.default_rng(run)
    kept = set()
    for i in range(KILLS):
        with started(folder, log) as process:
            deadline = time.monotonic() + 120
            # Every other time it is given time to finish a fold, however slow the machine.
            while i % 2 == 0 and len(folds_in(folder)) == len(kept) and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.6))
            os.killpg(process.pid, signal.SIGKILL)
        now = {path.name for path in folds_in(folder)}
        assert kept <= now  # nothing that was finished is lost
        kept = now
    before = len(lines(log))
    with started(folder, log) as process:
        out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    assert json.loads(out) == json.loads(json.dumps(all_bits(estimated(None))))
    again = lines(log)[before:]
    assert len(again) == FOLDS - len(kept) < FOLDS
    assert len(lines(log)) <= FOLDS + KILLS  # at most the one in the making is lost


@pytest.mark.slow
def test_folds_that_other_processes_finish_are_kept(tmp_path, whole):
    result, _ = trained(tmp_path, n_jobs=2)
    assert same(result, whole)
    assert len(folds_in(tmp_path)) == 3
    assert trained(tmp_path)[1] == []
