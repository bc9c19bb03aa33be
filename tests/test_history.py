"""Callbacks hear every training of every fold, in one process or in several."""

import pickle
import sys

import numpy as np
import pytest

import deminat
from common import QUICK, QUICK_ESTIMATORS
from deminat import Callback, DataError, Estimator, TensorBoard
from deminat.tasks import gaussian
from deminat.training.callbacks import History, Listener, Recorder, current_listener, listen

X, Y = gaussian(2, 1.0).sample(120, seed=0)
HOW = {"method": Estimator(training=QUICK), "folds": 2}


@pytest.fixture(scope="module")
def alone():
    heard = Recorder()
    result = deminat.estimate(X, Y, callbacks=[heard], **HOW)
    return result, heard.events


def named(events, name):
    return [arguments for event, arguments in events if event == name]


def test_every_training_begins_and_ends(alone):
    result, events = alone
    begun, ended = named(events, "on_begin"), named(events, "on_end")
    assert {fold for fold, _ in begun} == {0, 1}
    for fold in (0, 1):
        numbers = [training for f, training in begun if f == fold]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > 1  # stages
    assert len(begun) == len(ended)
    assert sum(history.steps for (history,) in ended) == sum(result.diagnostics["steps"])


def test_steps_and_evaluations_are_those_of_the_history(alone):
    _, events = alone
    steps, evaluations = [], []
    for name, arguments in events:
        if name == "on_begin":
            steps, evaluations = [], []
        elif name == "on_step":
            steps.append(arguments)
        elif name == "on_evaluation":
            evaluations.append(arguments)
        else:
            (history,) = arguments
            assert [step for step, _ in steps] == list(range(1, history.steps + 1))
            assert history.loss == pytest.approx(np.mean([loss for _, loss in steps[-100:]]))
            assert tuple(loss for _, loss in evaluations) == history.held_out
            assert evaluations[0][0] == 0


def test_callbacks_do_not_change_the_answer(alone):
    result, _ = alone
    assert deminat.estimate(X, Y, **HOW) == result


def test_several_processes_report_the_same_to_callbacks_that_stay_here(alone):
    class Here(Recorder):
        def __reduce__(self):
            raise pickle.PicklingError("not this one")

    result, events = alone
    heard = Here()
    assert deminat.estimate(X, Y, callbacks=[heard], n_jobs=2, **HOW) == result
    assert heard.events == events


def test_callbacks_are_called_for_flows():
    heard = Recorder()
    deminat.estimate(X, Y, method=QUICK_ESTIMATORS["gm"], folds=2, callbacks=[heard])
    assert len(named(heard.events, "on_step")) == 24


def test_outside_of_the_folds_there_are_no_callbacks():
    assert current_listener().callbacks == ()
    heard = Recorder()
    with listen(3, [heard]):
        current_listener().begin()
    assert heard.events == [("on_begin", (3, 0))]
    assert current_listener().callbacks == ()


def test_an_error_of_a_callback_ends_the_estimate():
    class Failing(Recorder):
        def on_evaluation(self, step, held_out):
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        deminat.estimate(X, Y, callbacks=[Failing()], **HOW)
    assert current_listener().callbacks == ()


def test_a_recorder_is_a_callback():
    heard: Callback = Recorder()
    listener = Listener(0, [heard])
    history = History(2, 1, 0.5, (0.7,), 0)
    listener.begin()
    listener.report("on_step", 1, 0.6)
    listener.report("on_evaluation", 1, 0.7)
    listener.report("on_end", history)
    others = Recorder(), Recorder()
    heard.replay(others)
    assert others[0].events == others[1].events == heard.events
    assert [name for name, _ in heard.events] == ["on_begin", "on_step", "on_evaluation", "on_end"]
    assert heard.events[-1] == ("on_end", (history,))


def test_tensorboard_has_what_callbacks_are_given(tmp_path, alone):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _, events = alone
    deminat.estimate(X, Y, callbacks=[TensorBoard(tmp_path / "logs")], **HOW)
    runs = sorted(path.parent for path in (tmp_path / "logs").rglob("events.*"))
    assert len(runs) == len(named(events, "on_begin"))
    assert runs[0] == tmp_path / "logs" / "fold 1" / "training 1"
    losses, evaluations, kept = [], [], []
    for run in runs:
        read = EventAccumulator(str(run))
        read.Reload()
        losses += [(e.step, e.value) for e in read.Scalars("loss")]
        evaluations += [(e.step, e.value) for e in read.Scalars("held_out")]
        kept += [e.value for e in read.Scalars("kept_step")]
    np.testing.assert_allclose(losses, named(events, "on_step"), rtol=1e-6)
    np.testing.assert_allclose(evaluations, named(events, "on_evaluation"), rtol=1e-6)
    assert kept == [history.best_step for (history,) in named(events, "on_end")]


def test_without_tensorboard_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(DataError, match=r"pip install 'deminat\[tensorboard\]'"):
        TensorBoard("logs")


def test_a_folder_that_tensorboard_cannot_write_to_is_named(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write to .*file"):
        TensorBoard(tmp_path / "file").on_begin(0, 0)
