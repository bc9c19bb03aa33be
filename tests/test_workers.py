"""Work shared between this process and others."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import pytest
from joblib import Parallel, delayed, parallel_config

from deminat.errors import DataError, TrainingError
from deminat.runtime.pool import _Work, preloaded_workers, run_parts, start_early, worker_pool


def who(part: int, seconds: float = 0.0) -> tuple[int, int]:
    time.sleep(seconds)
    return part, os.getpid()


def has_wave() -> bool:
    return "wave" in sys.modules


def end_badly(asking: int) -> tuple[int, int]:
    if os.getpid() != asking:
        os.kill(os.getpid(), signal.SIGKILL)
    return who(0)


def fail(part: int) -> tuple[int, int]:
    raise ValueError(f"part {part}")


def test_parts_come_in_order_and_this_process_takes_some():
    parts = [partial(who, i, 0.3) for i in range(6)]
    found = list(run_parts(parts, 2))
    assert [i for i, _ in found] == list(range(6))
    workers = {pid for _, pid in found}
    assert os.getpid() in workers
    assert len(workers) == 2


def test_with_one_job_all_is_done_here():
    assert list(run_parts([partial(who, i) for i in range(3)], 1)) == [
        (i, os.getpid()) for i in range(3)
    ]


def test_where_joblib_would_use_threads_all_is_done_by_one():
    with parallel_config(backend="threading"):
        found = list(run_parts([partial(who, i) for i in range(3)], 2))
    assert found == [(i, os.getpid()) for i in range(3)]


@pytest.mark.parametrize("failing", [0, 1, 3])
def test_an_error_of_any_process_is_raised(failing):
    parts = [partial(fail if i == failing else who, i) for i in range(5)]
    with pytest.raises(ValueError, match=f"part {failing}"):
        list(run_parts(parts, 2))
    assert [i for i, _ in run_parts([partial(who, i) for i in range(4)], 2)] == list(range(4))


def test_work_begun_elsewhere_is_waited_for():
    with worker_pool(2):
        part, pid = start_early(partial(who, 7))()
    assert part == 7
    assert pid != os.getpid()


def test_work_begun_here_waits_until_asked_and_is_done_once():
    asked = []
    ask = start_early(lambda: asked.append(1))
    assert asked == []
    ask(), ask()
    assert asked == [1]


def test_processes_that_stand_by_have_the_module_and_are_gone_afterwards():
    with preloaded_workers(2, "wave"):
        assert start_early(has_wave)()
        pids = {pid for _, pid in run_parts([partial(who, i, 0.3) for i in range(4)], 2)}
    (there,) = pids - {os.getpid()}
    assert is_gone(there)


def test_a_crew_that_rested_works_again_and_one_that_was_killed_does_not():
    with worker_pool(2):
        _, first = start_early(partial(who, 0))()
    with worker_pool(2):
        _, again = start_early(partial(who, 0))()
    assert again == first
    os.kill(first, signal.SIGKILL)
    assert is_gone(first)
    with worker_pool(2):
        _, other = start_early(partial(who, 0))()
    assert other != first


def test_a_process_that_is_killed_in_the_middle_is_told_in_words():
    with pytest.raises(TrainingError, match=r"killed in the middle of its work, .* n_jobs=1"):
        list(run_parts([partial(end_badly, os.getpid()), partial(who, 1, 2.0)], 2))


def test_what_cannot_be_sent_is_told_in_words():
    lock = threading.Lock()
    with pytest.raises(DataError, match="use n_jobs=1"):
        list(run_parts([lambda i=i: (i, lock) for i in range(2)], 2))


def test_threads_have_crews_of_their_own():
    def many() -> None:
        found.append([i for i, _ in run_parts([partial(who, i, 0.1) for i in range(9)], 3)])

    def wrong() -> None:
        with pytest.raises(ValueError, match="part 0"):
            list(run_parts([partial(fail, 0), partial(who, 1)], 2))

    found: list[list[int]] = []
    threads = [threading.Thread(target=each) for each in (many, wrong)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [list(range(9))]


def test_processes_of_joblib_are_left_alone():
    for i in Parallel(n_jobs=2, return_as="generator")(delayed(who)(i, 0.1) for i in range(4)):
        if i[0] == 1:
            assert [j for j, _ in run_parts([partial(who, j) for j in range(3)], 2)] == [0, 1, 2]


def test_processes_end_with_the_one_that_asks():
    code = (
        "import os, sys, time; from functools import partial; from deminat.runtime.pool import *\n"
        "with crew(2):\n"
        "    print(begun(os.getpid)(), flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        helper = int(process.stdout.readline())
        process.kill()
    assert is_gone(helper)


def test_after_processes_that_are_gone_nobody_waits_for_ever():
    def gone(part):
        raise BrokenProcessPool

    work = _Work([partial(who, i) for i in range(3)], gone)
    work.hand_out()
    with pytest.raises(TrainingError, match="killed"):
        list(work.results())


def is_gone(pid: int) -> bool:
    """Tell whether a process ends soon; one that nobody has buried yet has ended."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False
