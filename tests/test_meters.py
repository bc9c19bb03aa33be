"""Progress of parts reaches who asked, from other processes too, and ends with the work."""

import threading
import time

import pytest
from joblib import Parallel, delayed

from deminat.runtime import progress as meters
from deminat.runtime.progress import part_progress


def work(meter):
    for share in (0.25, 0.5, 1.0):
        meter(share)


def until(true, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(meters, "_EVERY", 0.01)


def test_parts_that_are_done_here_are_heard_at_once():
    heard: list[float] = []
    with part_progress(heard.append, 2, here=True) as told:
        work(told.of(0))
        told.of(1)(0.5)
        told.done(1)
    assert heard == [0.125, 0.25, 0.5, 0.75, 1.0]


def test_parts_of_other_processes_are_heard():
    heard: list[float] = []
    with part_progress(heard.append, 4, here=False) as told:
        Parallel(n_jobs=2)(delayed(work)(told.of(part)) for part in range(3))
        until(lambda: 0.75 in heard)
        told.done(3)
    assert heard[-1] == 1.0
    assert heard == sorted(heard)


def test_a_part_may_outlive_who_asked():
    before = threading.active_count()
    with part_progress(lambda share: None, 1, here=False) as told:
        meter = told.of(0)
    meter(0.5)
    assert threading.active_count() == before


@pytest.mark.parametrize("here", [True, False])
def test_nobody_asks_nothing_is_told(here):
    with part_progress(None, 2, here=here) as told:
        assert told.of(0) is None
        told.look()
        told.done(0)
