"""Stored rows: a cell is stored whole or not at all, once, and one process writes."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from deminat.errors import DataError, TrainingError
from deminat.runtime.rowstore import SqliteStore, key_of, read_csv
from deminat.runtime.sweep import Sweep, run_sweep
from sweeping import cells, deadly, hoarded, relentless, squares, with_origin

SCRIPT = Path(__file__).parent / "sweeping.py"


def started(path, count, *more):
    command = [sys.executable, str(SCRIPT), str(path), str(count), *map(str, more)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "SWEEP_LOG": str(path.with_name("log"))},
    )


def rows_at(path):
    with SqliteStore.reading(path) as store:
        return store.rows()


def test_rows_come_back_as_they_were(tmp_path):
    row = {"seed": 1, "estimate": 0.1 + 0.2, "method": "demi", "missing": None, "curve": [1.5, 2]}
    with SqliteStore.writing(tmp_path / "new" / "rows.sqlite") as store:
        store.add({"seed": 1}, [row, {"seed": 1}])
        assert store.missing([{"seed": 2}, {"seed": 1}]) == [{"seed": 2}]
        assert store.rows() == [row, {"seed": 1}]


def test_a_cell_is_the_same_in_any_order_of_its_keys():
    assert key_of({"a": 1, "b": 2.5}) == key_of({"b": 2.5, "a": 1})
    assert key_of({"a": 1}) != key_of({"a": "1"})


def test_a_cell_is_stored_once(tmp_path):
    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        store.add({"seed": 0}, [{"value": 1}])
        store.add({"seed": 0}, [{"value": 2}, {"value": 3}])
        assert store.rows() == [{"value": 1}]


def test_a_cell_without_rows_is_done_too(tmp_path):
    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        store.add({"seed": 0}, [])
        assert store.missing([{"seed": 0}]) == []


def test_a_store_in_memory_ends_with_its_block():
    with SqliteStore.in_memory() as store:
        store.add({"seed": 1}, [{"seed": np.int64(1), "share": np.float64(0.1)}])
        assert store.missing([{"seed": 2}, {"seed": 1}]) == [{"seed": 2}]
        assert store.rows([{"seed": 1}]) == [{"seed": 1, "share": 0.1}]
    with SqliteStore.in_memory() as store:
        assert store.rows() == []


def test_a_csv_file_keeps_its_rows_in_order_with_those_of_other_cells(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("seed,value\n3,a\n1.0,2\n3,a\n,b\n")
    wanted = [{"seed": 1}, {"seed": 2}]
    with SqliteStore.in_csv(path, wanted) as store:
        assert store.missing(wanted) == [{"seed": 2}]
        assert store.rows(wanted) == [{"seed": 1.0, "value": 2}]
        store.add({"seed": 2}, [{"seed": 2, "more": True}])
    assert path.read_text() == "seed,value,more\n3,a,\n1.0,2,\n3,a,\n,b,\n2,,True\n"


def test_a_csv_file_is_read_with_numbers_booleans_text_and_nothing(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n,share,check,name,none\n1,0.5,true,demi,\n2,inf,false,0.1.0,\n")
    first, second = read_csv(path)
    assert first == {"n": 1, "share": 0.5, "check": True, "name": "demi", "none": None}
    assert second == {"n": 2, "share": np.inf, "check": False, "name": "0.1.0", "none": None}


def test_another_database_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE rows (cell, row)")
    with pytest.raises(DataError, match="choose another place"), SqliteStore.writing(path):
        pass


def test_errors_within_are_not_mistaken_for_those_of_the_file(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"model\.bin"),
        SqliteStore.writing(tmp_path / "rows.sqlite"),
    ):
        raise FileNotFoundError("model.bin")


def test_rows_are_there_for_readers_while_one_writes(tmp_path):
    path = tmp_path / "rows.sqlite"
    with SqliteStore.writing(path) as store:
        store.add({"seed": 0}, [{"value": 1}])
        assert rows_at(path) == [{"value": 1}]


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "rows.sqlite"
    with SqliteStore.writing(path):
        second = started(path, 1, 1)
        _, error = second.communicate(timeout=60)
    assert second.returncode != 0
    assert "another process is writing to" in error
    with SqliteStore.writing(path) as store:  # and the lock went with the first
        assert store.rows() == []


def test_what_is_no_store_is_refused_by_name(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look like one " * 50)
    with (
        pytest.raises(DataError, match=r"cannot use .*notes.txt: file is not a database"),
        SqliteStore.writing(path),
    ):
        pass
    with (
        pytest.raises(DataError, match="there are no rows at"),
        SqliteStore.reading(tmp_path / "none"),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(DataError, match="cannot write to"),
        SqliteStore.writing(tmp_path / "file" / "rows.sqlite"),
    ):
        pass


def test_commits_are_on_disk_before_they_return(tmp_path):
    path = tmp_path / "rows.sqlite"
    with SqliteStore.writing(path) as store:
        connection = store._connection
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # full


def test_a_sweep_runs_what_is_missing_and_keeps_the_order(tmp_path):
    ran, shares = [], []

    def run(cell):
        ran.append(cell["seed"])
        return [{**cell, "value": cell["seed"] ** 2}]

    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        store.add({"seed": 2}, [{"seed": 2, "value": 4}])
        sweep = Sweep([{"seed": s} for s in (3, 2, 1)], run)
        rows = run_sweep(sweep, store, progress=shares.append)
        second = run_sweep(sweep, store)
    assert [row["value"] for row in rows] == [9, 4, 1]
    assert second == rows
    assert sorted(ran) == [1, 3]
    assert shares == pytest.approx([1 / 3, 2 / 3, 1])


def test_rows_do_not_depend_on_processes(tmp_path):
    tables = []
    for jobs in (1, 2):
        with SqliteStore.writing(tmp_path / f"{jobs}.sqlite") as store:
            tables.append(run_sweep(Sweep(cells(7), squares), store, jobs=jobs))
    assert tables[0] == tables[1] == with_origin(cells(7))


def test_processes_that_grew_are_replaced_in_silence(tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
            rows = run_sweep(Sweep(cells(6), hoarded), store, jobs=2)
    assert len({row["process"] for row in rows}) > 2
    assert not said


def test_an_error_in_a_cell_leaves_the_others(tmp_path):
    def run(cell):
        if cell["seed"] == 1:
            raise TrainingError("training diverged")
        return [cell]

    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        with pytest.raises(TrainingError, match=r'1 of 4 cells failed, the first \{"seed": 1\}'):
            run_sweep(Sweep([{"seed": s} for s in range(4)], run), store)
        assert {row["seed"] for row in store.rows()} == {0, 2, 3}


def test_a_fault_of_ours_in_a_cell_leaves_the_others(tmp_path):
    def run(cell):
        return [{"inverse": 1 / cell["seed"]}]

    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        with pytest.raises(TrainingError, match=r"1 of 4 cells .*: ZeroDivisionError: division by"):
            run_sweep(Sweep([{"seed": s} for s in range(4)], run), store)
        assert len(store.rows()) == 3


def test_other_processes_continue_after_one_is_killed(tmp_path):
    wanted = [{"seed": s, "folder": str(tmp_path)} for s in range(30)]
    shares = []
    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        rows = run_sweep(Sweep(wanted, deadly), store, jobs=2, progress=shares.append)
    assert [row["seed"] for row in rows] == list(range(30))
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.isdigit()) == [
        *("14", "24", "4")
    ]
    assert shares[-1] == 1
    assert shares == sorted(shares)


def test_repeated_kills_of_processes_end_a_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr("deminat.runtime.sweep._ATTEMPTS", 2)
    wanted = [{"seed": s} for s in (1, 2, 4, 14)]
    with SqliteStore.writing(tmp_path / "rows.sqlite") as store:
        with pytest.raises(TrainingError, match=r"killed 2 times, .* continue with --jobs 1"):
            run_sweep(Sweep(wanted, relentless), store, jobs=2)
        assert {row["seed"] for row in store.rows()} <= {1, 2}


def test_a_scheduler_that_does_not_answer_is_named(tmp_path):
    pytest.importorskip("distributed")
    with (
        SqliteStore.writing(tmp_path / "rows.sqlite") as store,
        pytest.raises(DataError, match="no Dask scheduler answers at tcp:"),
    ):
        run_sweep(Sweep(cells(1), squares), store, cluster="tcp://127.0.0.1:9")


def survives(path, kills, count, jobs, rng):
    """Kill a sweep so many times, at random moments, and return its final rows.

    But for every fifth time it is given time to get to work, however slow the machine.
    """
    log = path.with_name("log")
    seen, midway = {}, 0
    for i in range(kills):
        before = lines(log)
        process = started(path, count, jobs)
        deadline = time.monotonic() + 30
        while i % 5 and lines(log) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.6))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        found = rows_by_cell(path) if seen or path.exists() else {}
        assert seen.items() <= found.items()  # nothing that was committed is lost
        seen = found
        midway += 0 < len(seen) < count
    assert midway > 0  # otherwise nothing was tested
    out, error = started(path, count, jobs).communicate(timeout=120)
    assert out.strip() == "finished", error
    return rows_at(path)


def lines(log):
    return len(log.read_text().split()) if log.exists() else 0


def rows_by_cell(path):
    """Return the rows of each cell, which has both or none."""
    try:
        rows = rows_at(path)
    except DataError:  # killed before the tables were made
        return {}
    found = {}
    for row in rows:
        found.setdefault(row["seed"], []).append(json.dumps(row))
    assert all(len(rows) == 2 for rows in found.values())
    return {seed: tuple(rows) for seed, rows in found.items()}


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_at_random_moments_lose_and_repeat_nothing(tmp_path, kills):
    count = 30 * kills
    rng = np.random.default_rng(kills)
    rows = survives(tmp_path / "rows.sqlite", kills, count, 2, rng)
    wanted = with_origin(cells(count))
    assert sorted(rows, key=json.dumps) == sorted(wanted, key=json.dumps)
    # Those in the making may be run again: two at work, and some on their way back.
    assert lines(tmp_path / "log") <= count + 8 * kills
