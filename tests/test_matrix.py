"""All pairs of columns: which pairs, adjusted p-values, going on, files and figures."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import false_discovery_control
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app
from deminat.matrix import _pairs


def frame_of(n=300):
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, n))
    labels = np.where(c > 0, "up", "down")
    return pl.DataFrame({"a": a, "like a": a + 0.3 * b, "c": c, "label": labels}).with_columns(
        pl.col("label").cast(pl.Enum(["down", "up"]))
    )


@pytest.fixture(scope="module")
def found():
    return deminat.pairwise(frame_of())


def test_every_pair_is_estimated_once(found):
    pairs = list(found.table.select("x", "y").iter_rows())
    assert len(pairs) == 6
    assert len({frozenset(pair) for pair in pairs}) == 6


def test_what_depends_is_found_and_nothing_else(found):
    assert {frozenset(p) for p in found.significant().select("x", "y").iter_rows()} == {
        frozenset(("a", "like a")),
        frozenset(("c", "label")),
    }
    assert found.significant()["mi"][0] == found.table["mi"].max()
    (mi,) = found.table.filter(pl.col("x") == "c", pl.col("y") == "label")["mi"]
    assert mi == pytest.approx(np.log(2), abs=0.1)


def test_p_values_are_adjusted_for_their_number(found):
    adjusted = false_discovery_control(found.table["p_value"].to_numpy())
    np.testing.assert_allclose(found.table["q_value"].to_numpy(), adjusted)


def test_a_square_is_symmetric_and_has_no_diagonal(found):
    lines, columns, nats = found.square()
    assert lines == columns
    np.testing.assert_array_equal(nats, nats.T)
    assert np.isnan(np.diagonal(nats)).all()
    assert np.isfinite(nats).sum() == 12


def test_some_columns_with_others():
    names = list("abcd")
    assert _pairs(names, ["a", "b"], ["c"]) == [("a", "c"), ("b", "c")]
    assert _pairs(names, ["a", "b"], ["b", "a"]) == [("b", "a")]
    assert _pairs(names, ["a", "b", "c"], None) == [("a", "b"), ("a", "c"), ("b", "c")]
    with pytest.raises(DataError, match="no pair of different columns"):
        _pairs(names, ["a"], ["a"])
    with pytest.raises(DataError, match="no column 'e'; there are a, b, c, d"):
        _pairs(names, ["e"], None)


def test_a_matrix_goes_on_unless_the_values_changed(tmp_path, monkeypatch):
    frame, store = frame_of(60).select("a", "like a", "c"), tmp_path / "pairs.sqlite"
    first = deminat.pairwise(frame.select("a", "like a"), store=store)

    asked = []

    def counted(x, y, **how):
        asked.append((x.name, y.name))
        return deminat.api.estimate(x, y, **how)

    monkeypatch.setattr("deminat.matrix.estimate", counted)
    again = deminat.pairwise(frame, store=store)
    assert asked == [("a", "c"), ("like a", "c")]
    assert again.table.head(1).drop("q_value").equals(first.table.drop("q_value"))
    deminat.pairwise(frame.with_columns(a=pl.col("a") + 1).select("a", "like a"), store=store)
    assert len(asked) == 3


def test_a_pair_that_cannot_be_estimated_leaves_the_others():
    frame = pd.DataFrame(frame_of(60).select("a", "c").to_dict(as_series=False))
    frame["empty"] = np.nan
    result = deminat.pairwise(frame, nan="omit")
    errors = dict(zip(result.table["y"], result.table["error"], strict=True))
    assert errors["c"] == ""
    assert "too few" in errors["empty"]
    assert result.table["q_value"].is_null().sum() == 2


def called(*words):
    return CliRunner().invoke(app, ["matrix", *map(str, words)])


def test_the_command_writes_a_table_and_figures(tmp_path):
    frame_of().write_csv(tmp_path / "rows.csv")
    words = tmp_path / "rows.csv", "--x", "*a", "--y", "c", "--out", tmp_path / "out"
    result = called(*words)
    assert result.exit_code == 0, result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"pairs.parquet", "pairs.csv", "heat_map.png", "network.png"} <= names
    assert "0 of 2 pairs depend on each other" in result.stderr
    told = json.loads(called(*words, "--json").stdout)
    assert [(row["x"], row["y"]) for row in told] == [("a", "c"), ("like a", "c")]
    assert pl.read_parquet(tmp_path / "out" / "pairs.parquet").to_dicts() == told


def test_what_cannot_be_paired_is_told(tmp_path):
    frame_of(60).write_csv(tmp_path / "rows.csv")
    result = called(tmp_path / "rows.csv", "--x", "gene_*", "--out", tmp_path / "out")
    assert "no column is like 'gene_*'" in str(result.exception)
    np.savez(tmp_path / "rows.npz", x=np.zeros(9))
    result = called(tmp_path / "rows.npz", "--out", tmp_path / "out")
    assert "holds arrays, and this wants a table" in str(result.exception)
