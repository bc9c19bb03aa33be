"""Ranking the columns of a table by what they tell about one of them."""

import json
from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app

RNG = np.random.default_rng


def table(n=600):
    rng = RNG(0)
    wave, line, noise, gap = rng.normal(size=(4, n))
    kind = rng.integers(4, size=n)
    days = rng.integers(1_000, size=n)
    y = np.sin(2 * wave) + 0.5 * line + (kind == 2) + days / 500 + 0.3 * rng.normal(size=n)
    return pl.DataFrame(
        {
            "wave": wave,
            "line": line,
            "noise": noise,
            "gap": pl.Series(gap).set(pl.Series(gap > 1), None),
            "kind": np.array(["north", "east", "south", "west"])[kind],
            "when": [date(2020, 1, 1) + timedelta(days=int(d)) for d in days],
            "note": [f"row {i}" for i in range(n)],
            "y": y,
        }
    )


@pytest.fixture(scope="module")
def found():
    return deminat.rank(table(), "y")


def test_columns_are_in_the_order_of_what_they_tell(found):
    rows = found.rows()
    assert {row["column"] for row in rows[:4]} == {"wave", "line", "kind", "when"}
    assert {row["column"] for row in rows[4:]} == {"noise", "gap"}
    assert all(row["q_value"] < 0.05 for row in rows[:4])
    assert all(row["q_value"] > 0.05 for row in rows[4:])
    nats = [row["mi"] for row in rows]
    assert nats == sorted(nats, reverse=True)
    assert next(row["n"] for row in rows if row["column"] == "gap") < 600
    assert list(found.left_out) == ["note"]


def test_it_is_printed_and_shown_in_a_notebook(found):
    assert str(found).splitlines()[0].split() == ["column", "nats", "95%", "interval", "q"]
    assert len(str(found).splitlines()) == 7
    html = found._repr_html_()
    assert html.count("<tr>") == 7
    odd = deminat.rank(table().select("y", pl.col("wave").alias("<b>&")), "y")
    assert "&lt;b&gt;&amp;" in odd._repr_html_()


def test_the_frame_is_of_the_kind_that_was_given(found):
    assert isinstance(found.table, pl.DataFrame)
    frame = pd.DataFrame(table().drop("when").to_dict(as_series=False))
    of_pandas = deminat.rank(frame, "y")
    assert isinstance(of_pandas.table, pd.DataFrame)
    assert of_pandas.table["column"][0] == found.table["column"][0]


def test_the_best_are_refined_and_rows_may_be_dependent():
    frame = table(300).select("wave", "noise", "y")
    refined = deminat.rank(frame, "y", refine=1, preset="quick")
    assert dict(zip(refined.table["column"], refined.table["method"], strict=True)) == {
        "wave": "quick",
        "noise": "ranks",
    }
    grouped = deminat.rank(
        frame.with_columns(who=pl.int_range(300) // 3), "y", groups="who", preset="quick"
    )
    assert grouped.table["column"].to_list() == ["wave", "noise"]
    assert set(grouped.table["method"]) == {"quick"}


def test_what_cannot_be_ranked_is_told():
    with pytest.raises(DataError, match="no column 'z'; there are wave"):
        deminat.rank(table(), "z")
    with pytest.raises(DataError, match="the target 'note' holds neither numbers nor labels"):
        deminat.rank(table(), "note")
    with pytest.raises(DataError, match="no column can be ranked; the first: column gap has"):
        deminat.rank(table().select("gap", "y"), "y", nan="raise")


def test_the_command_prints_a_table_and_writes_a_chart(tmp_path):
    table().write_parquet(tmp_path / "rows.parquet")
    words = ["rank", str(tmp_path / "rows.parquet"), "--y", "y", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["column", "nats", "low", "high", "q", "method"]
    assert {line[0] for line in lines[1:5]} == {"wave", "line", "kind", "when"}
    assert "columns left out: note" in result.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"ranking.csv", "ranking.parquet", "ranking.png"}
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [row["column"] for row in told] == [line[0] for line in lines[1:]]
    assert CliRunner().invoke(app, [*words, "--refine", "some"]).exit_code == 2
