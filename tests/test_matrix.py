"""All pairs of columns: which pairs, adjusted p-values, going on, files and figures."""

import json
import pickle
import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import false_discovery_control
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app
from deminat.data.column_pairs import pairs_of
from deminat.matrix import PairwiseResult


def frame_of(n=300):
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, n))
    labels = np.where(c > 0, "up", "down")
    return pl.DataFrame({"a": a, "like a": a + 0.3 * b, "c": c, "label": labels}).with_columns(
        pl.col("label").cast(pl.Enum(["down", "up"]))
    )


@pytest.fixture(scope="module")
def found():
    return deminat.pairwise(frame_of(), refine="all", preset="quick")


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
    assert list(pairs_of(["a", "b"], ["c"])) == [("a", "c"), ("b", "c")]
    assert list(pairs_of(["a", "b"], ["b", "a"])) == [("b", "a")]
    assert list(pairs_of(["a", "b", "c"], None)) == [("a", "b"), ("a", "c"), ("b", "c")]
    with pytest.raises(DataError, match="no pair of different columns"):
        pairs_of(["a"], ["a"])


@pytest.mark.parametrize("named", [{"x": ["e"]}, {"y": ["e"]}, {"groups": "e"}, {"order": "e"}])
def test_columns_that_are_not_there_are_told(named):
    with pytest.raises(DataError, match="no column 'e'; there are a, c"):
        deminat.pairwise(frame_of(30).select("a", "c"), **named)


def test_many_with_few_is_no_square_even_if_the_few_are_among_the_many():
    names = list("abcdef")
    pairs = pl.DataFrame(list(pairs_of(names, ["a", "b"])), schema=["x", "y"], orient="row")
    table = pairs.with_columns(mi=pl.Series(range(len(pairs)), dtype=pl.Float64))
    lines, columns, nats = PairwiseResult(table).square()
    assert (sorted(lines), columns) == (names, ["a", "b"])
    known = dict(zip(map(frozenset, pairs.iter_rows()), table["mi"], strict=True))
    for i, line in enumerate(lines):
        for j, column in enumerate(columns):
            expected = known.get(frozenset((line, column)), np.nan)
            np.testing.assert_equal(nats[i, j], expected)


@pytest.fixture
def asked(monkeypatch):
    """What is asked of `estimate`, which only answers."""
    calls = []

    def answered(x, y, **how):
        calls.append((x.name, y.name, how))
        return deminat.MIResult(0.5, 0.1, len(x), "none", np.zeros(len(x)), p_value=0.5)

    monkeypatch.setattr("deminat.matrix.estimate", answered)
    return calls


@pytest.mark.parametrize(("n", "given", "folds"), [(1_999, None, 5), (2_000, None, 2), (60, 3, 3)])
def test_few_rows_are_split_into_more_folds(asked, n, given, folds):
    deminat.pairwise(frame_of(n), ["a"], ["c"], refine="all", folds=given)
    assert [how["folds"] for *_, how in asked] == [folds]


def with_words(n=30):
    words = {"day": [date(2024, 1, 1)] * n, "comment": [f"no. {i}" for i in range(n)]}
    return frame_of(n).with_columns(**{k: pl.Series(v) for k, v in words.items()})


def in_pandas(frame):
    return pd.DataFrame(frame.to_dict(as_series=False)).astype({"label": "category"})


@pytest.mark.parametrize("as_given", [pl.DataFrame, in_pandas])
def test_columns_that_nobody_named_and_that_are_no_numbers_are_left_out(asked, as_given):
    frame = as_given(with_words().with_columns(yes=pl.col("a") > 0))
    with pytest.warns(UserWarning, match=r"left out: (day, )?comment \(neither numbers") as told:
        result = deminat.pairwise(frame)
    assert told[0].filename == __file__
    used = {*result.table["x"], *result.table["y"]} - {"day"}  # pandas holds it as objects
    assert used == {"a", "like a", "c", "label", "yes"}
    with pytest.warns(UserWarning, match="left out"):
        deminat.pairwise(frame, y=["c"])


def test_objects_are_left_out_unless_all_are_numbers(asked):
    frame = in_pandas(frame_of(30))[["a", "c"]]
    frame["mixed"] = pd.Series([*range(29), "many"], dtype=object)
    frame["boxed"] = pd.Series(range(30), dtype=object)
    with pytest.warns(UserWarning, match=r"left out: mixed \("):
        result = deminat.pairwise(frame)
    assert set(result.table["x"]) | set(result.table["y"]) == {"a", "c", "boxed"}


def test_columns_that_were_named_are_not_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = deminat.pairwise(with_words(), ["a"], ["comment"])
    assert "hardly any is repeated" in result.table["error"][0]


def test_each_pair_is_told_of_its_own_labels(asked, tmp_path):
    frame = frame_of(60).select("a", "like a", "c")
    deminat.pairwise(frame, refine="all", discrete=["c"])
    assert [how["discrete"] for *_, how in asked] == [[], ["c"], ["c"]]
    store = tmp_path / "pairs.sqlite"
    for discrete in (None, True, False, ["a"], ["a", "c"]):
        sides = ["a"], ["like a"]
        deminat.pairwise(frame, *sides, refine="all", discrete=discrete, store=store)
    assert [how["discrete"] for *_, how in asked[3:]] == [None, True, False, ["a"]]
    with pytest.raises(DataError, match="no column 'b'"):
        deminat.pairwise(frame, discrete=["b"])


def test_a_matrix_goes_on_unless_the_values_changed(tmp_path, monkeypatch):
    frame, store = frame_of(60).select("a", "like a", "c"), tmp_path / "pairs.sqlite"
    how = {"store": store, "refine": "all", "preset": "quick"}
    first = deminat.pairwise(frame.select("a", "like a"), **how)

    asked = []

    def counted(x, y, **how):
        asked.append((x.name, y.name))
        return deminat.api.estimate(x, y, **how)

    monkeypatch.setattr("deminat.matrix.estimate", counted)
    again = deminat.pairwise(frame, **how)
    assert asked == [("a", "c"), ("like a", "c")]
    assert again.table.head(1).drop("q_value").equals(first.table.drop("q_value"))
    deminat.pairwise(frame.with_columns(a=pl.col("a") + 1).select("a", "like a"), **how)
    assert len(asked) == 3


class _PreparedError(Exception):
    """Ends `pairwise` before anything is estimated."""


@pytest.fixture
def prepared(monkeypatch):
    """Return a call of `pairwise` that returns the sweep it would run."""

    def prepare(*args, **options):
        sweeps = []

        def stop(sweep, *_, **__):
            sweeps.append(sweep)
            raise _PreparedError

        monkeypatch.setattr("deminat.matrix.run_sweep", stop)
        with pytest.raises(_PreparedError):
            deminat.pairwise(*args, **options)
        return sweeps[0]

    return prepare


class _CountedName(str):
    """A name that counts how often it is hashed or compared."""

    uses = 0

    def __hash__(self):
        type(self).uses += 1
        return super().__hash__()

    def __eq__(self, other):
        type(self).uses += 1
        return super().__eq__(other)


def wide_frame(columns, rows=20):
    values = np.random.default_rng(0).normal(size=(rows, columns))
    return pl.DataFrame({f"column_{i}": values[:, i] for i in range(columns)})


def test_preparing_many_pairs_uses_each_name_a_few_times_a_pair(prepared):
    frame = wide_frame(766)
    names = [_CountedName(name) for name in frame.columns]
    _CountedName.uses = 0
    cells = prepared(frame, names, refine="all").cells
    assert len(cells) == 766 * 765 // 2
    assert _CountedName.uses <= 5 * len(cells)


def test_the_work_of_a_pair_does_not_grow_with_the_number_of_columns(prepared):
    sizes = []
    for columns in (3, 30, 300):
        sweep = prepared(wide_frame(columns), groups=np.arange(20) // 2)
        sizes.append(len(pickle.dumps((sweep.run, sweep.cells[0]))))
    assert sizes[0] == sizes[1] == sizes[2] < 4_000


def test_several_processes_find_the_same():
    frame = frame_of(60).select("a", "like a", "c")
    how = {"refine": 1, "preset": "quick"}
    one, two = (deminat.pairwise(frame, n_jobs=jobs, **how) for jobs in (1, 2))
    assert one.table.equals(two.table)
    assert sorted(one.table["method"]) == ["quick", "ranks", "ranks"]


_NUMBERS = [1, 2, 3] * 20
_COLLISIONS = {
    "integers and categories": (
        pd.Series(_NUMBERS),
        pd.Series(_NUMBERS, dtype="category"),
    ),
    "integers of two sizes": (pl.Series(_NUMBERS), pl.Series(_NUMBERS, dtype=pl.Int8)),
    "null and the label None": (
        pl.Series([None, "b", "c"] * 20, dtype=pl.Enum(["None", "b", "c"])),
        pl.Series(["None", "b", "c"] * 20, dtype=pl.Enum(["None", "b", "c"])),
    ),
    "labels that hold the separator": (
        pl.Series(["a\0b", "c"] * 30, dtype=pl.Categorical),
        pl.Series(["a", "b\0c"] * 30, dtype=pl.Categorical),
    ),
}


@pytest.mark.parametrize("columns", _COLLISIONS.values(), ids=_COLLISIONS)
def test_stored_rows_are_not_used_for_another_type_or_for_nulls(asked, tmp_path, columns):
    frame_class = pd.DataFrame if isinstance(columns[0], pd.Series) else pl.DataFrame
    for i, column in enumerate(columns, start=1):
        frame = frame_class({"a": column, "b": np.arange(60.0)})
        for _ in range(2):
            deminat.pairwise(frame, refine="all", store=tmp_path / "pairs.sqlite")
            assert len(asked) == i


def test_rows_may_be_dependent(asked, tmp_path):
    frame = frame_of(60).select("a", "like a").with_columns(who=pl.arange(60) // 6)
    store, who = tmp_path / "pairs.sqlite", frame["who"].to_list()
    for _ in range(2):
        deminat.pairwise(frame, groups="who", store=store)
    deminat.pairwise(frame.drop("who"), groups=who, store=store)
    assert len(asked) == 1  # the same values are the same pair
    deminat.pairwise(frame.drop("who"), groups=who[::-1], store=store)
    deminat.pairwise(frame.drop("who"), order=True, store=store)
    deminat.pairwise(frame, order="who", store=store)
    assert [(x, y) for x, y, _ in asked] == [("a", "like a")] * 4
    named, turned, rows, times = (how for *_, how in asked)
    assert named["groups"].to_list() == who
    assert turned["groups"] == who[::-1]
    assert rows["order"] is True
    assert times["order"].to_list() == who
    assert times["groups"] is None
    deminat.pairwise(frame, ["who"], ["a"], groups="who")
    assert asked[-1][:2] == ("who", "a")  # since it is named


def test_each_kind_of_warning_is_told_once(found):
    codes = set(" ".join(found.table["warnings"]).split())
    assert [w.code for w in found.warnings] == list(dict.fromkeys(w.code for w in found.warnings))
    assert {w.code for w in found.warnings} == codes >= {"underpowered"}


def test_a_pair_that_cannot_be_estimated_leaves_the_others():
    frame = pd.DataFrame(frame_of(60).select("a", "c").to_dict(as_series=False))
    frame["empty"] = np.nan
    result = deminat.pairwise(frame, nan="omit")
    errors = dict(zip(result.table["y"], result.table["error"], strict=True))
    assert errors["c"] == ""
    assert "20 rows are needed" in errors["empty"]
    assert isinstance(result.table, pd.DataFrame)
    assert result.table["q_value"].isna().sum() == 2


def called(*words):
    return CliRunner().invoke(app, ["matrix", *map(str, words)])


def test_the_command_writes_a_table_and_figures(tmp_path):
    frame_of().write_csv(tmp_path / "rows.csv")
    words = tmp_path / "rows.csv", "--x", "*a", "--y", "c", "--out", tmp_path / "out"
    result = called(*words)
    assert result.exit_code == 0, result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"pairs.parquet", "pairs.csv", "heat_map.png", "network.png"} <= names
    assert "0 of 2 pairs are dependent" in result.stderr
    told = json.loads(called(*words, "--json").stdout)
    assert {(row["x"], row["y"]) for row in told} == {("a", "c"), ("like a", "c")}
    assert pl.read_parquet(tmp_path / "out" / "pairs.parquet").to_dicts() == told


def test_the_command_shows_intervals_and_warnings_under_their_names(tmp_path, monkeypatch):
    numbers = {"mi": 0.5, "standard_error": 0.1, "low": 0.25, "high": 0.75, "p_value": 1e-3}
    pair = {"x": "a", "y": "c", **numbers, "lower_bound": 0.1, "q_value": 2e-3, "n": 60}
    nothing = dict.fromkeys([*numbers, "lower_bound", "q_value", "n"])
    table = [
        {**pair, "warnings": "range", "error": ""},
        {**pair, "y": "d", "low": None, "high": None, "warnings": "", "error": ""},
        {**pair, "y": "e", **nothing, "warnings": "", "error": "too few"},
    ]
    monkeypatch.setattr(
        "deminat.matrix.pairwise", lambda *_, **__: PairwiseResult(pl.DataFrame(table))
    )
    frame_of(60).write_csv(tmp_path / "rows.csv")
    result = called(tmp_path / "rows.csv", "--x", "a,c", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["x", "y", "nats", "low", "high", "p", "q", "warnings"]
    assert ["a", "c", "0.500", "0.250", "0.750", "0.001", "0.002", "range"] in lines
    assert ["a", "d", "0.500", "0.001", "0.002"] in lines
    assert ["a", "e", "not", "estimated"] in lines
    assert "error: 1 of 3 pairs failed; the first: too few" in result.stderr


@pytest.fixture
def paired(monkeypatch):
    """What the command asks of `pairwise`, which only answers."""
    calls = []

    def answered(frame, x, y, **how):
        calls.append((frame, x, y, how))
        pair = dict(zip(("x", "y"), next(iter(pairs_of(x, y))), strict=True))
        numbers = dict.fromkeys(("mi", "low", "high", "p_value", "q_value"), 0.5)
        return PairwiseResult(pl.DataFrame([{**pair, **numbers, "warnings": "", "error": ""}]))

    monkeypatch.setattr("deminat.matrix.pairwise", answered)
    return calls


def words_file(folder, suffix):
    path = folder / f"rows.{suffix}"
    frame = with_words().with_columns(pl.col("label").cast(pl.String))
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_leaves_out_what_nobody_named_and_is_no_number(tmp_path, paired, suffix):
    path, out = words_file(tmp_path, suffix), ("--out", tmp_path / "out")
    result = called(path, *out)
    assert result.exit_code == 0, result.output
    reason = "neither numbers nor repeated words; declare categories with --categorical"
    assert f"columns left out: comment ({reason})\n" in result.stderr
    for declared in ((), ("--categorical", "label")):
        result = called(path, *declared, "--y", "label", *out)
        assert "left out: comment (" in result.stderr
    (whole, x, y, how), *others = paired
    assert (x, y, how["folds"]) == (["a", "like a", "c", "label", "day"], None, None)
    assert whole.drop("day").equals(frame_of(30))
    assert set(whole["day"]) == {19_723.0}  # days since 1970
    for frame, *sides, _ in others:
        assert sides == [["a", "like a", "c", "label", "day"], ["label"]]
        assert frame["label"].to_list() == frame_of(30)["label"].to_list()
        assert isinstance(frame["label"].dtype, pl.Enum)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_refuses_what_was_named_and_is_no_number(tmp_path, paired, suffix):
    path, out = words_file(tmp_path, suffix), ("--out", tmp_path / "out")
    for words in (
        ("--x", "a,comment"),
        ("--x", "a", "--y", "comment"),
        ("--y", "comment"),
        ("--categorical", "comment"),
    ):
        message = str(called(path, *words, *out).exception)
        assert "hardly any value of column 'comment' is repeated" in message
    with_words().select("comment").write_csv(tmp_path / "words.csv")
    assert "hardly any value of column" in str(called(tmp_path / "words.csv", *out).exception)
    assert not paired


def test_the_command_takes_groups_and_times_from_columns(tmp_path, paired):
    path, out = tmp_path / "rows.csv", ("--out", tmp_path / "out")
    frame = frame_of(30).select("a", "c").with_columns(who=pl.arange(30) // 3, at=pl.arange(30))
    frame.write_csv(path)
    assert called(path, "--groups", "who", "--order", "at", *out).exit_code == 0
    assert called(path, "--order", "rows", *out).exit_code == 0
    (plain, x, _, how), (_, all_x, _, of_rows) = paired
    assert (plain.columns, x) == (["a", "c"], ["a", "c"])
    assert list(how["groups"]) == list(map(str, frame["who"]))
    assert list(how["order"]) == frame["at"].to_list()
    assert all_x == ["a", "c", "who", "at"]
    assert (of_rows["groups"], of_rows["order"]) == (None, True)


def test_the_command_says_what_warnings_mean(tmp_path):
    frame_of(100).select("a", "c").write_csv(tmp_path / "rows.csv")
    words = "--refine", "all", "--preset", "quick", "--out", tmp_path / "out"
    result = called(tmp_path / "rows.csv", *words)
    said = "warning for 1 of 1 pairs, quoted from the first: underpowered: 100 pairs are few"
    assert said in result.stderr


def test_what_cannot_be_paired_is_told(tmp_path):
    frame_of(60).write_csv(tmp_path / "rows.csv")
    result = called(tmp_path / "rows.csv", "--x", "gene_*", "--out", tmp_path / "out")
    assert "no column matches 'gene_*'" in str(result.exception)
    np.savez(tmp_path / "rows.npz", x=np.zeros((9, 2, 2)))
    result = called(tmp_path / "rows.npz", "--out", tmp_path / "out")
    assert "no array (n,) or (n, d) of numbers" in str(result.exception)


def test_columns_in_units_are_one_variable(tmp_path):
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(300, 1))
    arrays = {
        "v1": shared + rng.normal(size=(300, 3)),
        "m1": shared + rng.normal(size=(300, 2)),
        "speed": shared[:, 0],
        "mask": np.zeros(7),
    }
    np.savez(tmp_path / "session.npz", **arrays)
    words = "--unit", "v1_*", "--unit", "m1_*", "--preset", "quick", "--out", tmp_path / "out"
    result = called(tmp_path / "session.npz", *words, "--json", "--max-rows", 250)
    assert result.exit_code == 0, result.output
    pairs = {(row["x"], row["y"]): row for row in json.loads(result.stdout)}
    assert set(pairs) == {("v1_*", "speed"), ("m1_*", "speed"), ("v1_*", "m1_*")}
    assert {row["method"] for row in pairs.values()} == {"quick"}
    assert {row["n"] for row in pairs.values()} == {250}
    one = deminat.estimate(arrays["speed"][:, None], arrays["v1"], preset="quick", folds=5)
    assert pairs["v1_*", "speed"]["mi"] == pytest.approx(one.mi, abs=0.1)
    single = called(tmp_path / "session.npz", "--out", tmp_path / "all", "--json")
    assert len(json.loads(single.stdout)) == 15
    failed = called(tmp_path / "session.npz", "--x", "mask")
    assert "no columns of 300 rows: mask (7,)" in str(failed.exception)


def test_units_are_checked(asked):
    frame = frame_of(60).select("a", "like a", "c")
    for units, wrong in [
        ({"a": ["c"]}, "is a column already"),
        ({"both": []}, "has no columns"),
        ({"both": ["a", "z"]}, "no column 'z'"),
    ]:
        with pytest.raises(DataError, match=wrong):
            deminat.pairwise(frame, units=units)


def test_the_table_of_very_many_pairs_has_the_strongest(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 20)) + rng.normal(size=(60, 1)) * (np.arange(20) < 6)
    frame = pl.DataFrame({f"c{i}": values[:, i] for i in range(20)})
    whole = deminat.pairwise(frame)
    monkeypatch.setattr("deminat.matrix.MOST_PAIRS", 30)  # rows of tiles are then in a file
    monkeypatch.setattr("deminat.inference.tiles._SIDE", 4)
    some = deminat.pairwise(frame, most=30)
    assert [w.code for w in some.warnings] == ["strongest"]
    assert "160 others are not in it" in str(some.warnings[0])
    expected = whole.table.sort("p_value").head(30).sort("mi", descending=True)
    assert_frame_equal(some.table, expected, rel_tol=1e-3)
    refined = deminat.pairwise(frame, most=30, refine=1, preset="quick")
    assert len(refined.table.filter(pl.col("method") == "quick")) == 1
    assert len(refined.table) == 30


def test_a_result_is_a_table_on_the_screen_and_in_notebooks(found):
    lines = str(found).splitlines()
    assert lines[0].split() == ["x", "y", "nats", "95%", "interval", "q"]
    assert len(lines) == 1 + len(found) == 7
    assert found._repr_html_().count("<tr>") == 7


def test_files_hold_no_formulas_and_the_screen_no_controls(tmp_path):
    frame = frame_of(60).select(**{"=cmd|1": "a", "red\x1b[31m": "c"})
    frame.write_csv(tmp_path / "rows.csv")
    result = called(tmp_path / "rows.csv", "--out", tmp_path / "out")
    assert "\x1b" not in result.stdout
    (row,) = pl.read_csv(tmp_path / "out" / "pairs.csv").to_dicts()
    assert row["x"] == "'=cmd|1"
    assert pl.read_parquet(tmp_path / "out" / "pairs.parquet")["x"][0] == "=cmd|1"


def test_dates_are_numbers_of_days(tmp_path):
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 10**6, size=300)
    frame = pl.DataFrame({"m": minutes, "e": rng.normal(size=300)}).with_columns(
        when=pl.datetime(2024, 1, 1) + pl.duration(minutes="m")
    )
    expected = deminat.pairwise(frame.with_columns(when=pl.col("m") / 1440)).table
    assert_frame_equal(deminat.pairwise(frame).table, expected)
    frame.write_parquet(tmp_path / "typed.parquet")
    texts = frame.with_columns(pl.col("when").dt.strftime("%Y-%m-%dT%H:%M"))
    texts[0, "when"] = None
    texts.write_csv(tmp_path / "text.csv")
    for name, rows in (("typed.parquet", 300), ("text.csv", 299)):
        found = json.loads(called(tmp_path / name, "--out", tmp_path / name[:4], "--json").stdout)
        assert {(r["x"], r["y"]): r["n"] for r in found}["m", "when"] == rows
        assert found[0]["mi"] > 2


def test_two_columns_of_one_name_are_told():
    frame = pd.DataFrame(np.ones((30, 2)), columns=["a", "a"])
    for ask in (deminat.pairwise, lambda data: deminat.rank(data, "a")):
        with pytest.raises(DataError, match="two columns are called a: rename or drop one"):
            ask(frame)


def test_a_pair_that_the_recipe_refuses_keeps_its_row(monkeypatch):
    def refuse(*_, **__):
        raise DataError("too few")

    frame = frame_of(60).select("a", "like a")
    plain = deminat.pairwise(frame).table
    monkeypatch.setattr("deminat.matrix.estimate", refuse)
    assert deminat.pairwise(frame, refine=1).table.equals(plain)
    units = {"both": ["a", "like a"]}
    (row,) = deminat.pairwise(frame_of(60), ["both"], ["c"], units=units).table.to_dicts()
    assert row["error"] == "too few"
