"""Progress of parts reaches the caller, from other processes too, and ends with the work."""

import io
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from joblib import Parallel, delayed

import deminat
from deminat.runtime import progress as module
from deminat.runtime.progress import part_progress, quiet, shown


def work(listener):
    for share in (0.25, 0.5, 1.0):
        listener(share)


def until(true, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(module, "_INTERVAL", 0.01)


def test_parts_that_are_done_here_are_reported_at_once():
    reported: list[float] = []
    with part_progress(reported.append, 2, here=True) as parts:
        work(parts.listener(0))
        parts.listener(1)(0.5)
        parts.finish(1)
    assert reported == [0.125, 0.25, 0.5, 0.75, 1.0]


def test_parts_of_other_processes_are_reported():
    reported: list[float] = []
    with part_progress(reported.append, 4, here=False) as parts:
        Parallel(n_jobs=2)(delayed(work)(parts.listener(part)) for part in range(3))
        until(lambda: 0.75 in reported)
        parts.finish(3)
    assert reported[-1] == 1.0
    assert reported == sorted(reported)


def test_a_part_may_outlive_the_caller():
    before = threading.active_count()
    with part_progress(lambda share: None, 1, here=False) as parts:
        listener = parts.listener(0)
    listener(0.5)
    assert threading.active_count() == before


@pytest.mark.parametrize("here", [True, False])
def test_without_a_listener_nothing_is_reported(here):
    with part_progress(None, 2, here=here) as parts:
        assert parts.listener(0) is None
        parts.report()
        parts.finish(0)


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_a_bar_is_shown_on_a_terminal_if_it_takes_long(monkeypatch):
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with shown(None, "estimating") as report:
        report(0.5)
    assert stream.getvalue() == ""  # it took less than two seconds
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    with shown(None, "estimating") as report:
        report(0.5)
        with shown(None, "inner") as inner:
            assert inner is None
    assert "estimating" in stream.getvalue()
    assert "50%" in stream.getvalue()


def test_nothing_is_shown_elsewhere_or_when_it_is_not_wanted(monkeypatch):
    with shown(None, "estimating") as report:
        assert report is None  # stderr of a test is no terminal
    monkeypatch.setattr("sys.stderr", _Terminal())
    for asked in (False, None):
        with quiet() if asked is None else nullcontext(), shown(asked, "estimating") as report:
            assert report is None
    heard = []
    with shown(heard.append, "estimating") as report:
        report(0.25)
    assert heard == [0.25]


def test_an_estimate_shows_its_progress(monkeypatch):
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    x = np.random.default_rng(0).normal(size=(120, 2))
    deminat.estimate(x, x + 1, preset="quick")
    assert "estimating" in stream.getvalue()
    before = stream.getvalue()
    deminat.estimate(x, x + 1, preset="quick", progress=False)
    assert stream.getvalue() == before
