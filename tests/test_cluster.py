"""The same rows from a Dask cluster: a real scheduler, two worker processes, one of them killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import deminat
from deminat.errors import DataError
from deminat.inference import tiles
from deminat.runtime.rowstore import SqliteStore
from deminat.runtime.sweep import Sweep, _check_cluster, filter_cells, run_sweep
from deminat.studies.paper.gaussian import GaussianStudy, run_gaussian
from sweeping import cells, squares, with_origin

pytest.importorskip("distributed", reason="the cluster extra is not installed")

HERE = Path(__file__).parent


class Cluster:
    """A scheduler on loopback and worker processes, which end with the test."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
        address = folder / "scheduler.json"
        self.start(
            *("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--scheduler-file", str(address)),
        )
        deadline = time.monotonic() + 60
        while not address.exists():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.1)
        self.address = json.loads(address.read_text())["address"]

    def start(self, *arguments):
        command = [sys.executable, "-m", "dask", *arguments]
        with (self.folder / f"{len(self.processes)}.log").open("w") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.env, cwd=self.folder
            )
        self.processes.append(process)
        return process

    def worker(self, threads=1):
        """Start a worker process, which is not restarted."""
        return self.start(
            *("worker", self.address, "--nthreads", str(threads), "--no-nanny", "--no-dashboard"),
            *("--host", "127.0.0.1", "--death-timeout", "60"),
        )

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.stop()


def test_a_cluster_gives_the_same_rows_when_a_worker_is_killed(cluster, tmp_path):
    first, _ = cluster.worker(), cluster.worker()

    def progress(share):
        if share >= 20 / 150 and first.poll() is None:
            first.kill()

    wanted = cells(150)
    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        sweep = Sweep(wanted, squares)
        rows = run_sweep(sweep, store, cluster=cluster.address, progress=progress)
        stored = len(store.rows())
    assert first.wait() == -signal.SIGKILL
    assert rows == with_origin(wanted)
    assert stored == len(rows)


def test_all_pairs_go_on_when_a_worker_is_killed(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "_SIDE", 8)
    values = np.random.default_rng(0).normal(size=(300, 100))
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(values.T)})
    first, _ = cluster.worker(), cluster.worker()

    def progress(share):
        if share >= 0.2 and first.poll() is None:
            first.kill()

    options = {"cluster": cluster.address, "store": tmp_path / "pairs.sqlite"}
    found = deminat.pairwise(frame, progress=progress, **options)
    assert first.wait() == -signal.SIGKILL
    assert found.table.equals(deminat.pairwise(frame).table)
    assert len(found) == 4_950


def test_workers_of_another_commit_are_refused(monkeypatch):
    class Other:
        def ncores(self):
            return {"tcp://far:1": 2}

        def run(self, function):
            return {"tcp://far:1": "0.1.0 0123456789ab"}

        def run_on_scheduler(self, function):
            return function()

    with pytest.raises(DataError, match=r"tcp://far:1 has deminat 0.1.0 0123456789ab, here it is"):
        _check_cluster(Other())


def test_trainings_give_the_same_numbers_here_in_processes_and_on_a_cluster(cluster, tmp_path):
    cluster.worker(threads=2)  # which must not train two critics at once
    study = GaussianStudy(settings=(("normal", 20, 32_000),), reps=1, scale=0.01)
    wanted = filter_cells(
        study.cells(), ["truth=2", "training=demi(0.5)", "training=mine", "training=gm"]
    )
    tables = []
    for i, options in enumerate([{}, {"jobs": 2}, {"cluster": cluster.address}]):
        with SqliteStore.writing(tmp_path / f"{i}.sqlite") as store:
            rows = run_sweep(Sweep(wanted, run_gaussian), store, **options)
        tables.append([{k: v for k, v in row.items() if k != "seconds"} for row in rows])
    assert len(tables[0]) == 7
    assert tables[0] == tables[1] == tables[2]
