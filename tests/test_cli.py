"""The command line: real files, real processes, exit codes, stdout and stderr."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from deminat.cli import app
from deminat.cli.inputs import scan_sides
from deminat.errors import DataError
from deminat.estimators.registry import METHODS, PRESETS
from deminat.tasks import gaussian

DEMINAT = Path(sys.executable).with_name("deminat")


def run(*words, **options):
    """Run the real command in a process of its own."""
    return subprocess.run(
        [DEMINAT, *map(str, words)], capture_output=True, text=True, timeout=120, **options
    )


def invoke(*words):
    """Run a command in this process, which is faster."""
    return CliRunner().invoke(app, [str(w) for w in words])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    x, y = gaussian(2, 1.0).sample(300, seed=0)
    frame = pl.DataFrame({"raf": x[:, 0], "mek": y[:, 0], "erk": x[:, 1], "akt": y[:, 1]})
    path = tmp_path_factory.mktemp("data") / "cells.csv"
    frame.write_csv(path)
    return path


def test_one_line_of_data_on_stdout(table):
    done = run("estimate", table, "--x", "raf,erk", "--y", "mek", "--method", "ksg")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert " nats  s.e. " in done.stdout
    assert "n=300" in done.stdout
    assert "warning: underpowered" in done.stderr


@pytest.mark.parametrize(
    ("words", "variable", "expected"), [((), None, -1), ((), "3", 3), (("--jobs", "2"), "3", 2)]
)
def test_one_process_per_core_by_default(table, monkeypatch, words, variable, expected):
    seen = []
    monkeypatch.setattr("deminat.api.compare", lambda *a, n_jobs, **k: seen.append(n_jobs) or [])
    monkeypatch.delenv("DEMINAT_JOBS", raising=False)
    if variable:
        monkeypatch.setenv("DEMINAT_JOBS", variable)
    assert invoke("estimate", table, "--x", "raf", "--y", "mek", *words).exit_code == 0
    assert seen == [expected]


@pytest.mark.parametrize(
    ("closed", "printed"), [("2>&-", True), (">&-", False), (">&- 2>&-", False)]
)
def test_closed_streams_do_no_harm(table, closed, printed):
    words = f"'{sys.executable}' -m deminat estimate '{table}' --x raf --y mek --method gaussian"
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert (" nats " in done.stdout) == printed


def test_bits_and_json_agree_with_nats(table):
    words = ["estimate", table, "--x", "raf", "--y", "mek", "--method", "gaussian", "--json"]
    nats, bits = (json.loads(invoke(*words, "--unit", u).stdout) for u in ("nats", "bits"))
    assert (nats["unit"], bits["unit"]) == ("nats", "bits")
    assert bits["mi"] == pytest.approx(nats["mi"] / np.log(2))
    assert {"mi", "standard_error", "n", "method", "warnings", "diagnostics"} <= set(nats)


def test_every_format_gives_the_same_answer(table, tmp_path):
    frame = pl.read_csv(table)
    x, y = frame[["raf", "erk"]].to_numpy(), frame[["mek"]].to_numpy()
    frame.write_parquet(tmp_path / "cells.parquet")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "both.npy", np.hstack([x, y]))
    np.savez(tmp_path / "both.npz", x=x, y=y)
    columns = "--x", "raf,erk", "--y", "mek"
    words = [
        (table, *columns),
        (tmp_path / "cells.parquet", *columns),
        (tmp_path / "x.npy", tmp_path / "y.npy"),
        (tmp_path / "both.npy", "--x", "0,1", "--y", "2"),
        (tmp_path / "both.npz",),
        (tmp_path / "both.npz", "--x", "x", "--y", "y"),
    ]
    answers = {invoke("estimate", *w, "--method", "gaussian").stdout for w in words}
    assert len(answers) == 1
    assert "nats" in answers.pop()


def test_several_methods_print_a_line_each(table):
    words = "--x", "raf", "--y", "mek", "--method", "gaussian", "--method", "ksg"
    lines = invoke("estimate", table, *words).stdout.splitlines()
    assert ["gaussian" in lines[0], "ksg" in lines[1]] == [True, True]


def test_a_trained_method_runs_and_its_seed_decides(tmp_path):
    x, y = gaussian(1, 1.0).sample(40, seed=0)
    np.savez(tmp_path / "few.npz", x=x, y=y)
    words = "estimate", tmp_path / "few.npz", "--preset", "paper", "--folds", "2", "--json"
    first, second, other = (invoke(*words, "--seed", s).stdout for s in (1, 1, 2))
    assert first == second != other
    assert json.loads(first)["method"] == "demi"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv", "--x", "a", "--y", "b"], "nowhere.csv"),
        (["{table}", "--x", "rfa", "--y", "mek"], "raf"),
        (["{table}", "--x", "raf"], "--y"),
        (["{table}", "{table}", "--x", "raf", "--y", "mek"], "two files"),
        (["{table}", "--x", "raf", "--y", "mek", "--folds", "1"], "folds must be at least 2"),
        (["{table}", "--x", "raf", "--y", "mek", "--folds", "0"], "folds must be at least 2"),
        (["{table}", "--x", "raf", "--y", "mek", "--report", "no/r.html"], "write no/r.html"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, message, table):
    done = run("estimate", *(w.format(table=table) for w in words))
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_an_unknown_method_is_refused_with_the_list(table):
    done = run("estimate", table, "--x", "raf", "--y", "mek", "--method", "dmei")
    assert done.returncode == 2
    assert "not one of demi, jsd" in " ".join(done.stderr.replace("│", " ").split())


def test_missing_values_are_refused_or_omitted(tmp_path):
    path = tmp_path / "gaps.csv"
    rows = [f"{i},{(i * 7) % 31}" for i in range(40)]
    path.write_text("a,b\n" + "\n".join([*rows, "NA,3", "4,"]) + "\n")
    words = "estimate", path, "--x", "a", "--y", "b", "--method", "ksg"
    refused, omitted = run(*words), run(*words, "--nan", "omit")
    assert refused.returncode == 2
    assert "a (1)" in refused.stderr
    assert omitted.returncode == 0
    assert "n=40" in omitted.stdout
    assert "2 of 42 pairs" in omitted.stderr


@pytest.mark.parametrize("name", ["penguins.csv", "penguins.parquet"])
def test_words_are_categories(tmp_path, name):
    path = tmp_path / name
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=200)
    frame = pl.DataFrame(
        {"species": [("a", "b", "c")[k] for k in kind], "mass": kind + rng.normal(size=200) / 9}
    )
    frame.write_csv(path) if name.endswith("csv") else frame.write_parquet(path)
    words = "estimate", path, "--x", "species", "--y", "mass", "--method", "ksg", "--json"
    answer = json.loads(run(*words).stdout)
    assert answer["mi"] == pytest.approx(np.log(3), abs=0.15)
    declared = json.loads(invoke(*words, "--categorical", "species").stdout)
    assert declared["mi"] == answer["mi"]


def test_what_is_no_category_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{'no' if i % 9 else i},2024-01-{i % 28 + 1},p{i},{i}" for i in range(100)]
    path.write_text("mixed,day,name,v\n" + "\n".join(rows))
    for side, says in [
        ("mixed", "is not all numbers ('no' in row 2): declare it with --categorical 'mixed'"),
        ("day", "holds dates or times ('2024-01-1' in row 1): turn them into numbers first"),
        ("name", "is it an identifier, or free text?"),
    ]:
        assert says in refusal("estimate", path, "--x", side, "--y", "v")
    done = invoke("test", path, "--x", "mixed", "--y", "v", "--categorical", "mixed")
    assert done.exit_code == 0, done.exception


@pytest.fixture
def declared(monkeypatch):
    """Return a call of a command that returns what reaches the library as `discrete`."""

    def call(*words):
        seen = []

        def stop(*_, discrete, **__):
            seen.append(discrete)
            raise DataError("stopped")

        for name in ("api.compare", "laws.check", "matrix.pairwise"):
            monkeypatch.setattr(f"deminat.{name}", stop)
        assert refusal(*words) == "stopped"
        return seen[0]

    return call


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["--discrete", "all"], True),
        (["--discrete", "none"], False),
        (["--discrete", "raf,akt"], ["raf of x", "akt of y"]),
        (["--discrete", "2, erk"], ["erk of x", "erk of x"]),
        (["--discrete", "y"], ["y"]),
    ],
)
def test_labels_are_declared_by_name_or_number(table, declared, words, expected):
    sides = "--x", "raf,erk", "--y", "mek,akt"
    assert declared("estimate", table, *sides, *words) == expected
    assert declared("check", table, *sides, *words) == expected


def test_labels_of_an_array_are_declared_by_number(tmp_path, declared):
    np.save(tmp_path / "a.npy", np.zeros((30, 5)))
    words = tmp_path / "a.npy", "--x", "4,1", "--y", "3", "--discrete", "1,3"
    assert declared("estimate", *words) == ["column 1 of x", "column 0 of y"]


def test_labels_of_a_matrix_are_declared(table, tmp_path, declared):
    out = "--out", tmp_path / "matrix"
    assert declared("matrix", table, *out, "--discrete", "raf,3") == ["raf", "akt"]
    assert declared("matrix", table, *out, "--discrete", "none") is False


def test_a_warning_names_labels_unless_they_are_declared(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "houses.csv"
    pl.DataFrame({"zip": rng.integers(5, size=200), "size": rng.normal(size=200)}).write_csv(path)
    words = "estimate", path, "--x", "zip", "--y", "size", "--preset", "quick", "--folds", "2"
    assert "zip of x takes 5 distinct values and is read as a label" in invoke(*words).stderr
    assert "read as a label" not in invoke(*words, "--discrete", "zip").stderr
    assert "x has zip; y has size" in refusal(*words, "--discrete", "zpi")


def test_tasks_are_listed():
    assert len(invoke("tasks").stdout.splitlines()) == 40
    assert len(json.loads(invoke("tasks", "--json").stdout)) == 40


def test_doctor_finds_this_installation_sound():
    done = run("doctor")
    assert done.returncode == 0, done.stdout
    assert "self_test      passed" in done.stdout
    assert "torch" in done.stdout


def test_a_bench_resumes_after_its_rows(tmp_path):
    out = tmp_path / "speed.csv"
    first = run("bench", "speed", "--runs", 1, "--out", out, "--json")
    assert first.returncode == 0, first.stderr
    second = run("bench", "speed", "--runs", 2, "--out", out, "--json")
    (row,), rows = json.loads(first.stdout), json.loads(second.stdout)
    assert rows[0] == pytest.approx(row)
    assert len(rows) == 2
    assert "of the limit" in second.stderr
    assert run("bench", "nothing").returncode == 2


@pytest.fixture
def oracle_bench(monkeypatch):
    """Replace the estimates of two benchmarks by the true value plus 0.01."""
    from deminat.studies.bench import BENCHES
    from deminat.tasks import get

    def run(cell):
        mi = get(cell["task"]).mi
        return {"estimate": mi + 0.01, "standard_error": 0.01, "truth": mi, "oracle": mi}

    for name in ("bmi", "highmi"):
        monkeypatch.setitem(BENCHES, name, replace(BENCHES[name], run=run))


def test_a_bench_is_narrowed_and_drawn(tmp_path, oracle_bench):
    out, figure = tmp_path / "bmi.csv", tmp_path / "bmi.png"
    words = ["bench", "bmi", "--jobs", 1, "--runs", 2, "--only", "preset=auto", "--only", "n=*000"]
    words += ["--only", "task=1v1-n*", "--out", out, "--figure", figure]
    done = invoke(*words, "--json")
    rows = json.loads(done.stdout)
    assert {(r["task"], r["preset"]) for r in rows} == {("1v1-normal-0.75", "auto")}
    assert sorted({r["n"] for r in rows}) == [1_000, 5_000, 10_000]
    assert len(rows) == 6
    assert figure.stat().st_size > 5_000
    assert "ok   auto, n=10000: mean absolute error 0.0100 nats" in done.stderr
    second = invoke(*words)
    assert len(out.read_text().splitlines()) == 7
    assert second.stdout.splitlines()[0].split()[:4] == ["task", "n", "seed", "preset"]
    assert " 10000 " in second.stdout


def test_high_information_is_drawn_by_family(tmp_path, oracle_bench):
    figure = tmp_path / "highmi.svg"
    words = "--runs", 1, "--only", "family=tre", "--only", "family=independent", "--figure", figure
    done = invoke("bench", "highmi", "--jobs", 1, *words)
    assert len(done.stdout.splitlines()) == 11
    assert figure.stat().st_size > 5_000
    assert [line.split()[:2] for line in done.stderr.splitlines()[1:]] == [
        ["ok", "tre:"],
        ["ok", "independent:"],
        ["ok", "overshoot:"],
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bmi", "--only", "tsk=a"], "no cell has tsk; there are task, n, seed, preset"),
        (["bmi", "--only", "n=7"], "no cell has n = 7; there are 1000, 5000, 10000"),
        (["bmi", "--only", "n"], "--only takes key=value"),
        (["speed", "--figure", "a.png"], "there is no figure of speed"),
    ],
)
def test_a_bench_that_cannot_be_is_refused_at_once(words, message):
    done = run("bench", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_independence_is_tested_from_a_file(table):
    done = invoke("test", table, "--x", "raf", "--y", "mek")
    assert done.exit_code == 0
    assert done.stdout.startswith("p < 0.001  n=300  ranks")
    printed = json.loads(invoke("test", table, "--x", "raf", "--y", "mek", "--json").stdout)
    assert printed["p_value"] < 0.001


def test_groups_and_order_are_columns(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=200), "y": rng.normal(size=200), "who": np.arange(200) // 4}
    path = tmp_path / "visits.csv"
    pl.DataFrame(columns).write_csv(path)
    pair = path, "--x", "x", "--y", "y"
    p_values = set()
    for more in ([], ["--groups", "who"], ["--order", "rows"], ["--order", "who"]):
        done = invoke("test", *pair, *more, "--json")
        assert done.exit_code == 0, done.output
        p_values.add(json.loads(done.stdout)["p_value"])
    assert len(p_values) == 3  # the order of the column is that of the rows
    done = invoke("estimate", *pair, "--groups", "who", "--method", "gaussian")
    assert done.exit_code == 0


def test_order_none_ignores_similarity_of_adjacent_rows(tmp_path):
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=200))
    pl.DataFrame({"x": x, "y": x + rng.normal(size=200)}).write_csv(tmp_path / "sorted.csv")
    words = "estimate", tmp_path / "sorted.csv", "--x", "x", "--y", "y", "--method", "gaussian"
    assert "--order none" in invoke(*words).stderr
    assert "autocorrelated" not in invoke(*words, "--order", "none").stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([DEMINAT, "tasks"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "error: the output: No space left on device\n")


def test_groups_of_two_files_are_refused(tmp_path):
    for name in "xy":
        np.save(tmp_path / f"{name}.npy", np.arange(30.0))
    done = run("test", tmp_path / "x.npy", tmp_path / "y.npy", "--groups", "who")
    assert (done.returncode, done.stdout) == (2, "")
    assert "name columns of one file" in done.stderr


def test_methods_are_those_of_the_library():
    help_text = run("estimate", "--help").stdout
    assert all(name in help_text for name in (*METHODS, *PRESETS))


def test_version_and_help_answer():
    assert run("--version").stdout.startswith("deminat ")
    assert "estimate" in run("--help").stdout


def test_ctrl_c_exits_with_130(tmp_path):
    x, y = gaussian(5, 1.0).sample(20_000, seed=0)
    np.savez(tmp_path / "many.npz", x=x, y=y)
    process = subprocess.Popen(
        [DEMINAT, "estimate", tmp_path / "many.npz"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    time.sleep(8)  # long enough to be at work, whatever else the machine does
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert err.strip() == "interrupted"


def test_a_bar_is_drawn_on_a_terminal_only(table):
    import pty

    words = [DEMINAT, "estimate", table, "--x", "raf", "--y", "mek", "--method", "gaussian"]
    master, slave = pty.openpty()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 4096):
            shown += chunk
    except OSError:  # the terminal is gone with the process
        pass
    os.close(master)
    assert process.wait() == 0
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()))
    bars = [line for line in lines if "estimating" in line]
    assert bars
    for bar in bars:  # how much is done, how long it took, how long it will take
        assert re.search(r"\d+% (\d:\d\d:\d\d|-:--:--) (\d:\d\d:\d\d|-:--:--)", bar), bar
    assert "estimating" not in run(*words[1:]).stderr


def refusal(*words):
    done = invoke(*words)
    assert isinstance(done.exception, DataError), done.exception
    assert str(done.exception).isprintable()
    return str(done.exception)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["{table}", "--x", "raf", "mek", "--y", "erk"], "--x raf,mek or --y erk,mek"),
        (["{table}", "--x", "raf", "mek"], "--x raf,mek"),
        (["--x", "raf", "mek", "{table}", "--y", "erk"], "--x raf,mek or --y erk,mek"),
        (["{table}", "--given", "raf", "mek"], "--given raf,mek"),
    ],
)
def test_a_second_column_is_not_a_file(table, words, says):
    message = refusal("estimate", *(w.format(table=table) for w in words))
    assert message == f"there is no file 'mek'; if it is a column, write {says}"


@pytest.fixture
def identified(tmp_path):
    """Return a folder of tables: an identifier, a category, and names with few repetitions."""
    names = [f"p{i}" for i in range(60)]
    half = [*names[:30], *names[:30]]
    columns = {"id": names, "kind": ["a", "b", "c"] * 20, "half": half, "31": [*half[:-1], "q"]}
    frame = pl.DataFrame({**columns, "v": np.random.default_rng(0).normal(size=60)})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    frame[:20].write_csv(tmp_path / "few.csv")
    return tmp_path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("declared", [[], ["--categorical", "id,kind,half,31"]])
def test_an_identifier_is_no_category(identified, monkeypatch, name, long, declared):
    if long:
        monkeypatch.setattr("deminat.data.files.text_stream.LONG", 0)
        monkeypatch.setattr("deminat.data.files.text_stream.BLOCK", 100)
    words = "--x", "v", "--method", "ksg", *declared
    for side, kinds in (("id", 60), ("kind,id", 60), ("31", 31)):
        message = refusal("estimate", identified / name, *words, "--y", side)
        column = side.removeprefix("kind,")
        assert f"hardly any value of column '{column}' is repeated ({kinds} kinds in 60" in message
        assert "is it an identifier, or free text? Leave it out, or turn it into" in message
    for side in ("kind", "half"):
        done = invoke("estimate", identified / name, *words, "--y", side)
        assert "identifier" not in str(done.exception)


def test_what_may_occur_once(identified):
    words = "--x", "v", "--y", "kind", "--categorical", "kind,id"
    done = invoke("test", identified / "t.csv", *words, "--groups", "id")
    assert done.exit_code == 0, done.exception
    words = "--x", "v", "--y", "id"
    assert "identifier" not in str(invoke("test", identified / "few.csv", *words).exception)
    scan_sides(identified / "t.csv", None, "v", "id", "id", scoring=True)


def test_a_category_with_a_comma_in_its_name_is_declared(tmp_path):
    frame = pl.DataFrame({"site, kind": ["a", "b", "c"] * 20, "v": range(60), "w": ["u", "v"] * 30})
    frame.write_csv(tmp_path / "t.csv")
    declared = '"site, kind", w'
    words = "--x", "v", "--y", '"site, kind",w', "--categorical", declared
    done = invoke("test", tmp_path / "t.csv", *words)
    assert done.exit_code == 0, done.exception


@pytest.mark.parametrize("name", ["nodir/s.csv", "s.txt", "s.csv/"])
def test_the_place_of_scores_is_checked_first(tmp_path, monkeypatch, name):
    (tmp_path / "s.csv").mkdir()
    monkeypatch.setattr("deminat.persistence.saved_run.load", lambda *_: pytest.fail("loaded"))
    message = refusal("score", tmp_path, tmp_path / "new.csv", "--out", tmp_path / name)
    assert name.rstrip("/") in message
    assert ".new" not in message
