"""Which rows carry the information: numbers of rows, tables, figures, words."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app
from deminat.report import render
from deminat.report.plots import save_information
from deminat.report.pointwise import table
from deminat.report.tables import save_table
from deminat.results import MIResult
from deminat.runtime.atomic import check_writable

RNG = np.random.default_rng(0)


def result(pointwise, **changes):
    pointwise = np.asarray(pointwise, float)
    return replace(
        MIResult(float(pointwise.mean()), 0.01, len(pointwise), "demi", pointwise), **changes
    )


def test_the_rows_that_tell_most_come_first():
    r = result([0.1, 3.0, -1.0, 2.0])
    rows, nats = r.top(2)
    assert (rows.tolist(), nats.tolist()) == ([1, 3], [3.0, 2.0])
    rows, _ = replace(r, rows=np.array([5, 7, 8, 11])).top()
    assert rows.tolist() == [7, 11, 5, 8]
    assert r.top(0)[0].tolist() == r.top(-1)[0].tolist() == []


def test_half_is_where_half_of_the_sum_is():
    assert result([4.0, 0.0, 0.0, 0.0]).half == 0.25
    assert result([1.0] * 10).half == 0.5
    assert result([6.0, 1.0, 1.0, -2.0]).half == 0.25
    assert result([1.0, -1.0]).half is None
    assert result([-1.0, -2.0]).half is None
    assert result([0.01, 0.0], standard_error=1.0).half is None
    assert result([np.inf, 1.0]).half is None


@pytest.fixture
def cells(tmp_path):
    a = RNG.normal(size=300)
    frame = pl.DataFrame({"a": a, "b": a + RNG.normal(size=300), "=cmd": ["=1+1", "v"] * 150})
    frame[7, "a"] = frame[9, "b"] = None
    frame.write_parquet(tmp_path / "cells.parquet")
    np.save(tmp_path / "cells.npy", frame[["a", "b"]].to_numpy())
    return tmp_path, frame


def estimate(*words):
    done = CliRunner().invoke(app, ["estimate", *map(str, words)])
    assert done.exit_code == 0, done.exception or done.output
    return done


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_row_keeps_its_number_in_the_file(cells, suffix):
    folder, frame = cells
    out = folder / f"rows.{suffix}"
    words = "--x", "a", "--y", "b", "--nan", "omit", "--method", "gaussian", "--pointwise", out
    done = estimate(folder / "cells.parquet", *words, "--max-rows", 100)
    told = (pl.read_csv if suffix == "csv" else pl.read_parquet)(out)
    assert told.columns == ["row", "a", "b", "pointwise"]
    assert told["row"].is_sorted()
    assert not {7, 9} & set(told["row"])
    for name in "ab":
        np.testing.assert_allclose(told[name], frame[name].gather(told["row"]))
    assert told["pointwise"].mean() == pytest.approx(float(done.stdout.split()[0]), abs=1e-3)
    most = told.sort("pointwise", descending=True)[0]
    row, nats = most["row"].item(), most["pointwise"].item()
    assert f"most in row {row}, counted from 0 ({nats:.3f} nats)" in done.stderr
    assert "half of the information is in" in done.stderr
    assert not list(folder.glob("*.new"))


def test_columns_of_an_array_and_of_categories_are_told(cells):
    folder, _ = cells
    out = folder / "rows.csv"
    how = "--nan", "omit", "--method", "gaussian", "--method", "ksg", "--pointwise", out
    estimate(folder / "cells.npy", "--x", "0", "--y", "1", *how)
    names = ["row", "0", "1", "pointwise gaussian", "pointwise ksg(k=3)"]
    assert pl.read_csv(out).columns == names
    estimate(folder / "cells.parquet", "--x", "=cmd", "--y", "b", "--categorical", "=cmd", *how)
    told = pl.read_csv(out)
    assert told.columns[1] == "'=cmd"  # a spreadsheet computes nothing
    assert set(told["'=cmd"]) == {"'=1+1", "v"}


def test_many_columns_are_not_told(tmp_path):
    np.savez(tmp_path / "t.npz", x=RNG.normal(size=(50, 19)), y=RNG.normal(size=(50, 2)))
    estimate(tmp_path / "t.npz", "--method", "copula", "--pointwise", tmp_path / "o.parquet")
    assert pl.read_parquet(tmp_path / "o.parquet").columns == ["row", "pointwise"]


def test_names_that_collide_are_told_apart():
    told = table(
        [result([1.0, 2.0])],
        [pl.DataFrame({"row": [1, 2]}), pl.DataFrame({"pointwise": [3, 4], "row": [5, 6]})],
    )
    assert told.columns == ["row", "x: row", "pointwise", "y: row", "pointwise (nats)"]


def test_a_place_that_cannot_be_written_is_refused_before_any_work(cells, tmp_path):
    folder, _ = cells
    for option, target, says in [
        ("--pointwise", "rows.txt", "ends in .parquet or .csv"),
        ("--pointwise", "no/rows.csv", "cannot write"),
        ("--figure", "rows.exe", "ends in .png"),
        ("--figure", "no/rows.png", "cannot write"),
    ]:
        words = ["estimate", "nowhere.csv", option, str(folder / target)]
        done = CliRunner().invoke(app, words)
        assert says in str(done.exception)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        check_writable(tmp_path / "d.csv", (".csv",), "a table")


def test_an_old_table_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    out = tmp_path / "rows.csv"
    out.write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    with pytest.raises(DataError, match="No space left"):
        save_table(out, pl.DataFrame({"row": [0]}))
    assert out.read_text() == "old"


def test_a_full_disk_is_told_by_its_path(tmp_path, monkeypatch):
    def full(*_, **__):
        raise pl.exceptions.ComputeError("No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(DataError, match=r"rows\.parquet: No space left"):
        save_table(tmp_path / "rows.parquet", pl.DataFrame({"row": [0]}))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
@pytest.mark.parametrize("x", ["a", "a,b"])
def test_a_figure_is_drawn(cells, suffix, x):
    folder, frame = cells
    frame.with_columns(c=pl.Series(RNG.exponential(size=300) ** 4)).write_csv(folder / "t.csv")
    out = folder / f"rows.{suffix}"
    words = "--x", x, "--y", "c", "--nan", "omit", "--method", "copula", "--figure", out
    assert "figure: " in estimate(folder / "t.csv", *words).stderr
    assert out.stat().st_size > 5000


def test_a_figure_of_nothing_says_so(tmp_path):
    save_information(tmp_path / "o.svg", result([-1.0, 0.5]))
    assert (tmp_path / "o.svg").exists()


def test_a_report_says_where_the_information_is():
    x = RNG.normal(size=500)
    r = deminat.estimate(x, x + RNG.normal(size=500), method="gaussian")
    assert f"Half of the information is in the {r.half:.0%} of pairs" in render([r])
    nothing = deminat.estimate(x, RNG.permutation(x), method="gaussian")
    assert "Half of the information" not in render([nothing])


def test_json_stays_as_it_was(cells):
    folder, _ = cells
    words = "--x", "a", "--y", "b", "--nan", "omit", "--method", "gaussian", "--json"
    done = estimate(folder / "cells.parquet", *words, "--pointwise", folder / "o.csv")
    assert "rows" not in json.loads(done.stdout)
