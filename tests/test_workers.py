"""Work shared between this process and others."""

import os
import sys
import time
from functools import partial

import pytest
from joblib import parallel_config

from deminat.workers import begun, shared, standing_by


def who(part: int, seconds: float = 0.0) -> tuple[int, int]:
    time.sleep(seconds)
    return part, os.getpid()


def has_wave() -> bool:
    return "wave" in sys.modules


def fail(part: int) -> tuple[int, int]:
    raise ValueError(f"part {part}")


def test_parts_come_in_order_and_this_process_takes_some():
    parts = [partial(who, i, 0.3) for i in range(6)]
    found = list(shared(parts, 2))
    assert [i for i, _ in found] == list(range(6))
    workers = {pid for _, pid in found}
    assert os.getpid() in workers
    assert len(workers) == 2


def test_with_one_job_all_is_done_here():
    assert list(shared([partial(who, i) for i in range(3)], 1)) == [
        (i, os.getpid()) for i in range(3)
    ]


def test_what_joblib_was_told_of_does_the_work():
    with parallel_config(backend="threading"):
        found = list(shared([partial(who, i) for i in range(3)], 2))
    assert found == [(i, os.getpid()) for i in range(3)]


@pytest.mark.parametrize("failing", [0, 1, 3])
def test_an_error_of_any_process_is_raised(failing):
    parts = [partial(fail if i == failing else who, i) for i in range(5)]
    with pytest.raises(ValueError, match=f"part {failing}"):
        list(shared(parts, 2))
    assert [i for i, _ in shared([partial(who, i) for i in range(4)], 2)] == list(range(4))


def test_work_begun_elsewhere_is_waited_for():
    part, pid = begun(partial(who, 7), 2)()
    assert part == 7
    assert pid != os.getpid()


def test_work_begun_here_waits_until_asked_and_is_done_once():
    asked = []
    ask = begun(lambda: asked.append(1), 1)
    assert asked == []
    ask(), ask()
    assert asked == [1]


def test_processes_that_stand_by_have_the_module_and_are_gone_afterwards():
    with standing_by(2, "wave"):
        assert begun(has_wave, 2)()
        pids = {pid for _, pid in shared([partial(who, i, 0.3) for i in range(4)], 2)}
    (there,) = pids - {os.getpid()}
    with pytest.raises(ProcessLookupError):
        os.kill(there, 0)
