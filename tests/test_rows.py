"""Large inputs are subsampled: by the seed, and the same rows in every format."""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.stats import chisquare
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app
from deminat.data import files
from deminat.data.arrays import gather
from deminat.data.files import guards as checks
from deminat.data.files import text_stream as long
from deminat.data.sample import RowOptions, as_sample
from deminat.data.subsample import MAX_ROWS, MAX_VALUES, subsample

RNG = np.random.default_rng(0)
N, K = 500, 60


@pytest.fixture
def pair():
    x = RNG.normal(size=(N, 2))
    return x, x[:, :1] + RNG.normal(size=(N, 1))


def codes(result):
    return [w.code for w in result.warnings]


def test_every_row_is_as_likely_as_any_other():
    counts = np.zeros(40)
    for seed in range(400):
        counts[subsample([np.zeros(40)], None, None, 10, seed).rows] += 1
    assert chisquare(counts).pvalue > 1e-4  # fails once in ten thousand


def test_a_subsample_is_reported_and_numbered(pair):
    result = deminat.estimate(*pair, method="gaussian", max_rows=K, seed=3)
    assert result.n == K
    (caution,) = [w for w in result.warnings if w.code == "subsampled"]
    assert f"{K} of {N} rows were used" in caution.message
    assert "--max-rows" in caution.advice
    same = deminat.estimate(*(a[result.rows] for a in pair), method="gaussian")
    assert same.mi == result.mi
    assert (np.diff(result.rows) > 0).all()
    other = deminat.estimate(*pair, method="gaussian", max_rows=K, seed=4)
    assert not np.array_equal(other.rows, result.rows)


def test_few_rows_are_all_used(pair):
    for limit in (None, N, 10**12):
        result = deminat.estimate(*pair, method="gaussian", max_rows=limit)
        assert result.n == N
        assert "subsampled" not in codes(result)
        assert result.rows.tolist() == list(range(N))


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_limit_below_one_is_refused(pair, limit):
    with pytest.raises(ValueError, match="max_rows must be at least 1"):
        deminat.estimate(*pair, max_rows=limit)


def test_the_default_limits_rows_and_values():
    assert len(subsample([np.zeros(MAX_ROWS + 1)], None, None, None, 0).rows) == MAX_ROWS
    wide = np.broadcast_to(np.zeros(1), (MAX_ROWS, 2000))
    assert len(subsample([wide], None, None, None, 0).rows) == MAX_VALUES // 2000
    assert subsample([np.zeros(MAX_ROWS)], None, None, None, 0).rows is None


def test_every_kind_of_rows_gives_the_same_draw(pair, tmp_path):
    x, y = pair
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    kinds = [
        x,
        x.tolist(),
        torch.from_numpy(x),
        pd.DataFrame(x, index=np.arange(N)[::-1]),
        pl.DataFrame(x),
        np.ma.masked_array(x),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
    ]
    found = {deminat.estimate(k, y, method="gaussian", max_rows=K).mi for k in kinds}
    assert len(found) == 1


def test_groups_stay_with_their_rows(pair):
    groups = np.arange(N) // 5
    sample = as_sample(*pair, RowOptions(groups=groups, max_rows=K))
    together = groups[sample.rows][:, None] == groups[sample.rows]
    assert np.array_equal(sample.labels[:, None] == sample.labels, together)


def test_a_series_is_one_stretch(pair):
    rows = as_sample(*pair, RowOptions(order=True, max_rows=K)).rows
    assert np.array_equal(rows, np.arange(rows[0], rows[0] + K))


@pytest.mark.parametrize("kind", ["numbers", "dates"])
def test_a_stretch_goes_by_time_and_not_by_row(pair, kind):
    places = RNG.permutation(N)
    times = places + 0.5 if kind == "numbers" else np.datetime64("2024-01-01") + places
    starts = set()
    for seed in range(12):
        rows = as_sample(*pair, RowOptions(order=times, max_rows=K, seed=seed)).rows
        drawn = np.sort(places[rows])
        assert np.array_equal(drawn, np.arange(drawn[0], drawn[0] + K))
        starts.add(int(drawn[0]))
    assert len(starts) > 6


def test_what_does_not_fit_is_refused_before_it_is_drawn(pair):
    x, y = pair
    with pytest.raises(DataError, match="x has 500, y has 499 rows"):
        deminat.estimate(x, y[1:], max_rows=K)
    for beside in ({"groups": np.zeros(9)}, {"order": np.arange(9)}):
        with pytest.raises(DataError, match="one value for each of the 500 rows"):
            deminat.estimate(x, y, max_rows=K, **beside)
    with pytest.raises(DataError, match="such as 2024"):
        deminat.estimate(x, y, max_rows=K, order=["soon"] * N)
    with pytest.raises(DataError, match="order is missing in 500"):
        deminat.estimate(x, y, max_rows=K, order=np.full(N, np.nan))


def test_missing_values_are_omitted_after_the_draw(pair):
    x, y = pair
    x = x.copy()
    x[::3] = np.nan
    result = deminat.estimate(x, y, method="gaussian", nan="omit", max_rows=K)
    assert result.n < K
    assert (result.rows % 3 != 0).all()
    assert {"subsampled", "missing"} <= set(codes(result))


def test_the_test_and_the_check_draw_as_well(pair):
    tested = deminat.independence_test(*pair, max_rows=K)
    assert (tested.n, codes(tested)[0]) == (K, "subsampled")
    base, _ = deminat.check(*pair, method="gaussian", max_rows=K)
    assert base.n == K
    assert "subsampled" in codes(base)
    given = deminat.estimate(*pair, given=pair[0][:, 1], method="gaussian", max_rows=K)
    assert given.n == len(given.rows) == K
    assert "subsampled" in codes(given)


# Maps of files


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_map_is_not_copied_whole_and_not_changed(tmp_path, mode, monkeypatch):
    values = RNG.normal(size=(3000, 40))
    np.save(tmp_path / "x.npy", values)
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    if mode != "r":
        mapped[0, 0] = 7.0
    monkeypatch.setattr("deminat.data.arrays.BLOCK", 10_000)
    expected = np.array(mapped)
    rows = np.arange(0, 3000, 7)
    np.testing.assert_array_equal(gather(mapped, rows), expected[rows])
    np.testing.assert_array_equal(gather(mapped[:, 3:5], rows), expected[rows, 3:5])
    np.testing.assert_array_equal(gather(np.asarray(mapped), None, [9, 1]), expected[:, [9, 1]])
    np.testing.assert_array_equal(mapped, expected)  # also what "c" holds in memory alone


# Files


@pytest.fixture
def tables(tmp_path, pair, monkeypatch):
    """One table in every format; the text files are too long to be read whole."""
    monkeypatch.setattr(long, "LONG", 100)
    monkeypatch.setattr(long, "BLOCK", 997)
    monkeypatch.setattr(long, "_RECORDS_PER_PIECE", 100)
    monkeypatch.setattr("deminat.data.arrays.BLOCK", 997)
    monkeypatch.setattr("deminat.data.files.npy.BLOCK", 997)
    monkeypatch.setattr("deminat.data.files.hdf5.BLOCK", 997)
    monkeypatch.setattr("deminat.data.files.parquet._SLICE_VALUES", 100)
    monkeypatch.setattr("deminat.data.files.parquet._MIN_SLICE_ROWS", 64)
    values = np.hstack([*pair, RNG.permutation(N)[:, None], np.arange(N)[:, None] // 4])
    frame = pl.DataFrame(values, schema=["a", "b", "c", "t", "who"])
    frame.write_csv(tmp_path / "t.csv")
    frame.write_csv(tmp_path / "t.tsv", separator=";", quote_style="always")
    (tmp_path / "t.txt").write_text(frame.write_csv(separator=" "), encoding="utf-16")
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=100)
    np.save(tmp_path / "t.npy", values)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        for name, part in {"a,b": values[:, :2], "c": values[:, 2:3], "t": values[:, 3]}.items():
            file.create_dataset(name, data=part, chunks=(30, *part.shape[1:]))
        file["who"] = values[:, 4]
    return tmp_path, values


NAMED = ["t.csv", "t.tsv", "t.txt", "t.parquet", "t.h5"]


@pytest.mark.parametrize("beside", [{}, {"order": "t"}, {"groups": "who"}, {"order": "rows"}])
def test_the_answer_does_not_depend_on_the_format(tables, beside):
    folder, _ = tables
    found = set()
    for name in (*NAMED, "t.npy"):
        numbers = {"a,b": "0,1", "c": "2", "t": "3", "who": "4"} if name == "t.npy" else {}
        words = ["estimate", folder / name, "--x", "a,b", "--y", "c", "--method", "gaussian"]
        words += [f"--{key}={value}" for key, value in beside.items()]
        words = [numbers.get(str(w), str(w)) for w in words]
        words = [f"{w[:8]}{numbers.get(w[8:], w[8:])}" if w[:8] == "--order=" else w for w in words]
        words = [
            f"{w[:9]}{numbers.get(w[9:], w[9:])}" if w[:9] == "--groups=" else w for w in words
        ]
        done = CliRunner().invoke(app, [*words, "--max-rows", str(K), "--json"])
        assert done.exit_code == 0, (name, done.output, done.exception)
        answer = json.loads(done.stdout)
        assert answer["n"] == K
        assert "subsampled" in [w["code"] for w in answer["warnings"]]
        found.add(round(answer["mi"], 12))
    assert len(found) == 1


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.parquet"])
def test_pieces_and_rows_of_a_file_are_its_values(tables, name):
    folder, values = tables
    x, y = files.scan(folder / name, "b,a", "c")
    assert (len(x), x.row_width, y.row_width) == (N, 2, 1)
    np.testing.assert_array_equal(x.take(), values[:, [1, 0]])
    rows = np.array([0, 5, 6, 499])
    np.testing.assert_array_equal(x.take(rows), values[rows][:, [1, 0]])
    assert len(list(y.pieces())) > 3
    np.testing.assert_array_equal(np.vstack([p.to_numpy() for p in y.pieces()]), values[:, 2:3])
    labels, _ = files.scan(folder / name, "who", "c", categorical=["who"])
    assert labels.take(rows)["who"].cast(pl.String).cast(pl.Float64).to_list() == [0, 1, 1, 124]


def test_long_text_is_refused_where_short_text_is(tables):
    folder, _ = tables
    whole = (folder / "t.csv").read_text().splitlines()
    for at, line, says in [
        (300, "1,2", "line 301 has 2 fields"),
        (450, '1,2,3,4,"', "cannot be divided into fields"),
        (200, "1,2,x,4,5", "'x' in row 200"),
    ]:
        lines = [*whole[:at], line, *whole[at + 1 :]]
        (folder / "bad.csv").write_text("\n".join(lines))
        with pytest.raises(DataError, match=says):
            files.read(folder / "bad.csv", "a", "c")
    text = "\n".join(whole).encode()
    for data, says in [
        (text[:9000] + b"\xe9" + text[9000:], "byte 0xe9 at position 9000"),
        (text[:9000] + b"\0" + text[9000:], "is binary"),
        (b"\n" * 3000, "is empty"),
        (b"a,b\n" + b"\n" * 3000, "no rows"),
    ]:
        (folder / "bad.csv").write_bytes(data)
        with pytest.raises(DataError, match=says):
            files.read(folder / "bad.csv", "a", "c")


def test_what_is_drawn_must_fit_in_memory(tables, monkeypatch):
    folder, _ = tables
    monkeypatch.setattr(checks, "available_memory", lambda: 5_000)
    for name in NAMED:
        x, _ = files.scan(folder / name, "a,b", "c")
        with pytest.raises(DataError, match="GB of memory"):
            x.take(np.arange(400))
        assert len(x.take(np.arange(4))) == 4


def test_long_files_of_different_lengths_are_refused_unread(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(300))
    np.save(tmp_path / "y.npy", np.zeros(301))
    words = ["estimate", tmp_path / "x.npy", tmp_path / "y.npy", "--max-rows", "100"]
    done = CliRunner().invoke(app, [str(w) for w in words])
    assert "x has 300, y has 301 rows" in str(done.exception)


def test_rows_that_do_not_match_are_refused_unread(tmp_path, monkeypatch):
    rows = tmp_path / "rows"
    rows.mkdir()
    np.save(rows / "r.npy", np.zeros((30, 2)))
    np.save(tmp_path / "y.npy", np.zeros(30))
    monkeypatch.setattr(
        "deminat.data.files.npy_folder.Folder.take", lambda *_: pytest.fail("was read")
    )
    with pytest.raises(DataError, match="x has 1, y has 30 rows"):
        deminat.estimate(*files.scan_pair(rows, tmp_path / "y.npy"))


if sys.platform == "linux":

    def test_pages_of_a_map_are_released_after_each_block(tmp_path):
        np.save(tmp_path / "x.npy", np.zeros((100_000, 100)))
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        gather(mapped, np.arange(0, 100_000, 10))
        text = Path("/proc/self/smaps").read_text().split("x.npy\n")[1]
        resident = int(text.split("Rss:")[1].split()[0])
        assert resident < 20_000  # kB, of 80,000


@pytest.mark.parametrize("line", ["# by hand", "# by hand, in May, June, July, August"])
def test_a_comment_above_a_long_table_is_named(tmp_path, monkeypatch, line):
    monkeypatch.setattr(long, "LONG", 100)
    monkeypatch.setattr(long, "BLOCK", 500)
    (tmp_path / "t.csv").write_text(f"{line}\na,b\n" + "1,2\n" * 500)
    with pytest.raises(DataError, match="line 1 begins with '#'"):
        files.scan(tmp_path / "t.csv", "a", "b")


@pytest.mark.parametrize("header", ["a", "a,b"])
def test_missing_values_of_one_long_column_are_not_lost(tmp_path, monkeypatch, header):
    monkeypatch.setattr(long, "LONG", 100)
    monkeypatch.setattr(long, "BLOCK", 64)
    cells = ["" if i % 3 == 0 else f"{i}.5" for i in range(200)] + ["1"]
    rest = ",2" if header == "a,b" else ""
    (tmp_path / "x.csv").write_text("\n".join([header, *(cell + rest for cell in cells)]))
    x = files.scan_times(tmp_path / "x.csv", "a")
    values = np.array([float(cell or "nan") for cell in cells])
    for rows in (np.arange(0, 199, 33), np.arange(0, 201, 2), np.array([0])):
        np.testing.assert_array_equal(x.take(rows), values[rows])
    np.testing.assert_array_equal(np.concatenate(list(x.pieces())), values)
