"""Progress of parts reaches the caller, from other processes too, and ends with the work."""

import threading
import time

import pytest
from joblib import Parallel, delayed

from deminat.runtime import progress as module
from deminat.runtime.progress import part_progress


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
