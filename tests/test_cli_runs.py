"""Saved runs on the command line: saving, resuming after signals, scoring new rows."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import deminat
from deminat.cli import app
from deminat.tasks import gaussian

DEMINAT = Path(sys.executable).with_name("deminat")


def invoke(*words):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(w) for w in words])


def refused(done, *words):
    """Check that a command ended with an error that the user can fix."""
    assert isinstance(done.exception, deminat.DataError), done.output
    assert done.stdout == ""
    for word in words:
        assert word in str(done.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table, several files of new rows, and a saved run."""
    folder = tmp_path_factory.mktemp("runs")
    x, y = gaussian(2, 1.0).sample(200, seed=0)
    kinds = np.array(["p", "q", "r"])[np.digitize(x[:, 1], [-0.5, 0.5])]
    table = pl.DataFrame({"raf, p": x[:, 0], "kind": kinds, "mek": y[:, 0], "akt": y[:, 1]})
    table.write_csv(folder / "cells.csv")
    new = table[:15]
    new.write_csv(folder / "new.csv")
    new.filter(pl.col("kind") == "p").write_csv(folder / "fewer.csv")
    new.rename({"raf, p": "RAF"}).write_csv(folder / "renamed.csv")
    new.rename({"kind": "sort"}).write_csv(folder / "sorts.csv")
    new.with_columns(pl.lit("s").alias("kind")).write_csv(folder / "level.csv")
    new.with_columns(pl.when(pl.col("mek") < 0).then("mek")).write_csv(folder / "gaps.csv")
    words = "--x", '"raf, p",kind', "--y", "mek"
    done = invoke(
        "estimate", folder / "cells.csv", *words, "--method", "copula", "--save", folder / "run"
    )
    assert done.exit_code == 0, done.output
    assert f"saved run: {folder / 'run'}" in done.stderr
    return folder


def test_a_saved_run_holds_the_result(folder):
    result = deminat.load(folder / "run")
    assert result.method == "copula"
    assert result.n == 200
    assert not (folder / "run" / "checkpoint").exists()


def test_new_rows_are_scored_by_the_columns_of_the_run(folder):
    done = invoke("score", folder / "run", folder / "new.csv")
    assert done.exit_code == 0, done.output
    printed = json.loads(invoke("score", folder / "run", folder / "new.csv", "--json").stdout)
    new = pl.read_csv(folder / "new.csv")
    x = new.select("raf, p", pl.col("kind").cast(pl.Enum(["p", "q", "r"])))
    scores = deminat.load(folder / "run").log_ratio(x, new["mek"])
    assert printed["log_ratio"] == scores.tolist()
    assert printed["mean"] == pytest.approx(scores.mean())
    assert printed["standard_error"] == pytest.approx(scores.std(ddof=1) / 15**0.5)
    assert (printed["n"], printed["unit"]) == (15, "nats")
    assert done.stdout == (
        f"{scores.mean():.3f} nats  s.e. {printed['standard_error']:.3f}  n=15\n"
    )


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_scores_are_written(folder, tmp_path, name):
    out = tmp_path / name
    done = invoke("score", folder / "run", folder / "new.csv", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    frame = pl.read_csv(out) if name.endswith("csv") else pl.read_parquet(out)
    assert frame["row"].to_list() == list(range(15))
    assert frame["log_ratio"].to_list() == json.loads(done.stdout)["log_ratio"]
    assert f"wrote scores: {out}" in done.stderr


def test_other_names_may_be_given_for_the_columns(folder):
    command = "score", folder / "run"
    expected = invoke(*command, folder / "new.csv").stdout
    words = "--x", "RAF,kind"
    renamed = invoke(*command, folder / "renamed.csv", *words)
    assert renamed.stdout == expected
    assert "note: column RAF is used as raf, p of the run" in renamed.stderr
    assert invoke(*command, folder / "sorts.csv", "--x", '"raf, p",sort').stdout == expected
    refused(invoke(*command, folder / "renamed.csv"), "no column 'raf, p'")
    refused(invoke(*command, folder / "new.csv", "--x", "akt"), "the fit had raf, p, kind=p")


def test_levels_may_be_missing_but_not_new(folder):
    done = invoke("score", folder / "run", folder / "fewer.csv")
    assert done.exit_code == 0, done.output
    level = invoke("score", folder / "run", folder / "level.csv")
    refused(level, "kind=s, a level that the fit never saw")


def test_missing_values_have_no_score(folder, tmp_path):
    command = "score", folder / "run", folder / "gaps.csv"
    refused(invoke(*command), "NaN or inf", "--nan omit")
    out = tmp_path / "scores.csv"
    done = invoke(*command, "--nan", "omit", "--json", "--out", out)
    printed = json.loads(done.stdout)
    assert printed["log_ratio"].count(None) == 15 - printed["n"] > 0
    assert pl.read_csv(out)["log_ratio"].null_count() == 15 - printed["n"]
    assert "rows held NaN or inf and have no score" in done.stderr


def test_one_row_has_no_standard_error(folder, tmp_path):
    pl.read_csv(folder / "new.csv")[:1].write_csv(tmp_path / "one.csv")
    assert "s.e. unknown  n=1" in invoke("score", folder / "run", tmp_path / "one.csv").stdout


def test_arrays_and_two_files_are_scored(tmp_path):
    x, y = gaussian(2, 1.0).sample(60, seed=0)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    run = tmp_path / "run"
    words = "--method", "ksg", "--save", run
    assert invoke("estimate", tmp_path / "both.npz", *words).exit_code == 0
    answers = {
        invoke("score", run, *(tmp_path / name for name in names)).stdout
        for names in (["both.npz"], ["x.npy", "y.npy"])
    }
    assert len(answers) == 1
    assert "n=60" in answers.pop()


def test_given_z_is_scored(folder, tmp_path):
    words = "--x", "akt", "--y", "mek", "--given", '"raf, p"', "--method", "gaussian"
    done = invoke("estimate", folder / "cells.csv", *words, "--save", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "n=15" in invoke("score", tmp_path / "run", folder / "new.csv").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resume"], "--resume needs the folder of the run"),
        (["--save", "{run}", "--method", "ksg", "--method", "gaussian"], "--method once"),
        (["--save", "{folder}"], "holds something else"),
        (["--save", "{folder}/cells.csv"], "cannot write to"),
    ],
)
def test_what_cannot_be_saved_is_refused_at_once(folder, words, message):
    words = [w.format(run=folder / "run", folder=folder) for w in words]
    refused(invoke("estimate", folder / "cells.csv", "--x", "akt", "--y", "mek", *words), message)


def test_what_cannot_be_scored_is_refused(folder, tmp_path):
    refused(invoke("score", tmp_path, folder / "new.csv"), "holds no run")
    done = invoke("score", folder / "run", folder / "new.csv", "--out", "scores.xlsx")
    refused(done, "ends in .csv or .parquet")
    done = invoke("score", folder / "run", folder / "new.csv", "--out", tmp_path / "no" / "s.csv")
    assert "cannot write" in str(done.exception)


def test_a_run_resumed_after_signals_gives_the_same_result(tmp_path):
    x, y = gaussian(3, 1.0).sample(1_500, seed=0)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    words = ["estimate", "data.npz", "--preset", "paper", "--folds", "6", "--save", "my run"]
    checkpoint = tmp_path / "my run" / "checkpoint"
    resume = f"deminat {shlex.join(words)} --resume"
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        before = len(list(checkpoint.glob("*.safetensors")))
        process = subprocess.Popen(
            [DEMINAT, *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        deadline = time.monotonic() + 240
        while len(list(checkpoint.glob("*.safetensors"))) == before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, err
        assert out == ""
        assert err.splitlines() == ["interrupted", f"to resume: {resume}"]
        words = shlex.split(resume)[1:]
    in_folder = [str(tmp_path / "my run") if w == "my run" else w for w in words]
    in_folder[1] = str(tmp_path / "data.npz")
    refused(invoke(*in_folder[:-1]), "holds an unfinished run: add --resume")
    assert 0 < len(list(checkpoint.glob("*.safetensors"))) < 6
    done = invoke(*in_folder, "--json")
    assert done.exit_code == 0, done.output
    whole = deminat.estimate(x, y, preset="paper", folds=6)
    assert json.loads(done.stdout) == whole.to_dict()
    assert not checkpoint.exists()
    folds = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "my run" / "folds").glob("*fold*")}
    assert len(folds) == 6
    assert json.loads(invoke(*in_folder, "--json").stdout) == whole.to_dict()
    refused(invoke(*in_folder, "--seed", "1"), "other settings")
    after = (tmp_path / "my run" / "folds").glob("*fold*")
    assert folds == {p.name: p.stat().st_mtime_ns for p in after}
    assert np.array_equal(deminat.load(tmp_path / "my run").pointwise, whole.pointwise)
