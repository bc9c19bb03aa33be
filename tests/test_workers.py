"""Work shared between this process and workers."""

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
from deminat.runtime.pool import (
    _SharedWork,
    preloaded_workers,
    run_parts,
    start_early,
    worker_pool,
)


def who(part: int, seconds: float = 0.0) -> tuple[int, int]:
    time.sleep(seconds)
    return part, os.getpid()


def has_wave() -> bool:
    return "wave" in sys.modules


def end_badly(parent: int) -> tuple[int, int]:
    if os.getpid() != parent:
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


def test_work_that_a_worker_started_is_waited_for():
    with worker_pool(2):
        part, pid = start_early(partial(who, 7))()
    assert part == 7
    assert pid != os.getpid()


def test_work_without_workers_is_run_on_request_and_once():
    calls = []
    result = start_early(lambda: calls.append(1))
    assert calls == []
    result(), result()
    assert calls == [1]


def test_preloaded_workers_have_the_module_and_are_gone_afterwards():
    with preloaded_workers(2, "wave"):
        assert start_early(has_wave)()
        pids = {pid for _, pid in run_parts([partial(who, i, 0.3) for i in range(4)], 2)}
    (worker,) = pids - {os.getpid()}
    assert is_gone(worker)


def test_an_idle_pool_is_used_again_and_a_killed_one_is_not():
    with worker_pool(2):
        _, first = start_early(partial(who, 0))()
    with worker_pool(2):
        _, second = start_early(partial(who, 0))()
    assert second == first
    os.kill(first, signal.SIGKILL)
    assert is_gone(first)
    with worker_pool(2):
        _, other = start_early(partial(who, 0))()
    assert other != first


def test_the_error_of_a_killed_worker_says_what_to_do():
    with pytest.raises(TrainingError, match=r"a worker process was killed, .* n_jobs=1"):
        list(run_parts([partial(end_badly, os.getpid()), partial(who, 1, 2.0)], 2))


def test_the_error_of_work_that_cannot_be_sent_says_what_to_do():
    lock = threading.Lock()
    with pytest.raises(DataError, match="use n_jobs=1"):
        list(run_parts([lambda i=i: (i, lock) for i in range(2)], 2))


def test_threads_have_pools_of_their_own():
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


def test_workers_end_with_their_parent():
    code = (
        "import os, sys, time; from functools import partial; from deminat.runtime.pool import *\n"
        "with worker_pool(2):\n"
        "    print(start_early(os.getpid)(), flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        process.kill()
    assert is_gone(worker)


def test_lost_workers_are_not_waited_for():
    def gone(part):
        raise BrokenProcessPool

    work = _SharedWork([partial(who, i) for i in range(3)], gone)
    work.submit_next()
    with pytest.raises(TrainingError, match="killed"):
        list(work.results())


def is_gone(pid: int) -> bool:
    """Tell whether a process ends soon; a zombie has ended."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False
