"""The fast tier of all pairs: estimates, p-values, tiles, labels and missing values."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.special import gammaln
from scipy.stats import kstest

import deminat
from deminat import DataError
from deminat.estimators.partition import rank_information, table_information, tree_information
from deminat.inference import tiles as tiles_module
from deminat.inference.all_pairs import Column, tile
from deminat.inference.rank_test import rank_test, ranks
from deminat.report.clustering import MOST_SHOWN, clustered, pairs_to_show
from deminat.tasks import get

RNG = np.random.default_rng
TASKS = [
    "1v1-normal-0.75",
    "1v1-additive-0.1",
    "1v1-additive-0.75",
    "student-identity-1-1-1",
]


# The tree of cells


def in_cells(columns, cells):
    return np.array([ranks(c, RNG(0)) * cells // len(c) for c in columns])


def by_recursion(x, y, cells, top):
    """Return the log density of each row and the evidence of one square, cell by cell."""

    def square(rows, left, below, width):
        count, size = len(rows), top**2 if width == cells else 4
        if width == 1:
            return 0.0, np.zeros(count), rows
        parts = width // (top if width == cells else 2)
        children = []
        for i in range(0, width, parts):
            for j in range(0, width, parts):
                inside = (x[rows] >= left + i) & (x[rows] < left + i + parts)
                inside &= (y[rows] >= below + j) & (y[rows] < below + j + parts)
                children.append(square(rows[inside], left + i, below + j, parts))
        counts = np.array([len(own) for *_, own in children])
        a = 0.75
        cut = gammaln(size * a) - gammaln(size * a + count)
        cut += (gammaln(counts + a) - gammaln(a)).sum()
        cut += count * np.log(size) + sum(e for e, *_ in children) + np.log(0.56)
        evidence = np.logaddexp(cut, np.log(0.44))
        share = np.exp(cut - evidence)
        logs = [
            share * (d + np.log(size * (len(o) + a) / (count + size * a))) for _, d, o in children
        ]
        order = np.concatenate([own for *_, own in children])
        return evidence, np.concatenate(logs), order

    _, logs, _ = square(np.arange(len(x)), 0, 0, cells)
    return logs.mean()


def test_the_tree_is_the_one_that_recursion_builds():
    rng = RNG(1)
    x = rng.normal(size=150)
    y = x + 0.3 * rng.normal(size=150)
    for top, width in ((3, 12), (5, 20)):
        cells = in_cells([x, y, rng.normal(size=150)], width)
        nats, _ = tree_information(cells[[0, 0]], cells[[1, 2]], width, top)
        assert nats[0] == pytest.approx(by_recursion(cells[0], cells[1], width, top))
        assert nats[1] == pytest.approx(by_recursion(cells[0], cells[2], width, top))


@pytest.mark.parametrize(("n", "allowed"), [(1_000, 0.21), (10_000, 0.07)])
def test_estimates_of_single_columns_are_near_the_truth(n, allowed):
    errors = []
    for name in TASKS:
        task, each = get(name), []
        for seed in range(5):
            x, y = task.sample(n, seed)
            both = in_cells([x[:, 0], y[:, 0]], n)
            (nats,), _ = rank_information(both[:1], both[1:], is_weak=False)
            each.append(nats - task.mi)
        assert abs(np.mean(each)) < allowed, name
        errors.append(np.abs(each).mean())
    assert np.mean(errors) < allowed / 2


def test_pairs_do_not_depend_on_those_beside_them():
    cells = in_cells(RNG(0).normal(size=(40, 300)), 24)
    nats, errors = tree_information(cells[:-1], cells[1:], 24, 3)
    one, error = tree_information(cells[6:7], cells[7:8], 24, 3)
    assert (nats[6], errors[6]) == (one[0], error[0])


def test_a_table_of_counts_is_corrected_for_its_bias():
    rng = RNG(0)
    found = [table_information(*rng.integers(6, size=(2, 400)))[0] for _ in range(200)]
    assert np.mean(found) < 0.02  # without the correction, 25 / 800 = .03 more
    x = rng.integers(4, size=4_000)
    assert table_information(x, x)[0] == pytest.approx(np.log(4), abs=0.01)


# Tiles


def columns_of(values, names="abcdefgh"):
    return [Column(name, column) for name, column in zip(names, values, strict=False)]


def all_of(count):
    return np.array([(i, j) for i in range(count) for j in range(i)])


def test_a_tile_has_the_p_values_of_the_test():
    values = RNG(0).normal(size=(5, 200))
    values[1] += values[0] ** 2
    columns, pairs = columns_of(values), all_of(5)
    found = tile(columns, columns, pairs, seed=3)
    for (i, j), p in zip(pairs, found.p_value, strict=True):
        assert p == pytest.approx(rank_test(values[i], values[j], RNG(0))[0], rel=1e-3)
    low, high = found.interval()
    assert ((low <= found.mi) & (found.mi <= high)).all()
    assert (found.n == 200).all()


def test_missing_values_are_left_out_pair_by_pair():
    values = RNG(0).normal(size=(4, 300))
    values[0, :50], values[1, 40:90], values[3, 5:] = np.nan, np.nan, np.nan
    columns = columns_of(values)
    found = tile(columns, columns, np.array([(0, 1), (0, 2), (2, 2), (2, 3)]), seed=0)
    assert found.n.tolist() == [210, 250, 300, 5]
    assert np.isnan(found.p_value[3])
    known = ~np.isnan(values[0])
    alone = columns_of(values[[0, 2]][:, known], "ac")
    assert tile(alone, alone, np.array([(0, 1)]), seed=0).mi[0] == found.mi[1]


def test_labels_have_no_order():
    rng = RNG(0)
    kind = rng.integers(5, size=600)
    y = np.array([0.0, 2, 0, 2, 0])[kind] + rng.normal(size=600)
    for codes in (np.arange(5.0), rng.permutation(np.arange(5.0))):
        columns = [Column("kind", codes[kind], is_label=True), Column("y", y)]
        found = tile(columns[:1], columns[1:], np.array([(0, 0)]), seed=0)
        assert found.p_value[0] < 1e-6
        assert found.mi[0] == pytest.approx(0.33, abs=0.07)


def test_constant_columns_are_independent_of_all():
    columns = columns_of([np.zeros(50), RNG(0).normal(size=50)])
    found = tile(columns, columns, np.array([(0, 1)]), seed=0)
    assert (found.p_value[0], found.mi[0]) == (1.0, 0.0)


@pytest.mark.parametrize("of", ["numbers", "counts", "labels"])
def test_p_values_of_independent_columns_are_uniform(of):
    rng, p = RNG(4), []
    for seed in range(15):
        values = rng.normal(size=(16, 150))
        if of != "numbers":
            values[:8] = rng.poisson(2, size=(8, 150)) if of == "counts" else 0
        if of == "labels":
            values[:8] = rng.integers(4, size=(8, 150))
        xs = [Column(f"x{i}", v, is_label=of == "labels") for i, v in enumerate(values[:8])]
        ys = [Column(f"y{i}", v) for i, v in enumerate(values[8:])]
        found = tile(xs, ys, np.array([(i, i) for i in range(8)]), seed)
        p += found.p_value.tolist()
    assert kstest(p, "uniform").pvalue > 1e-3
    assert np.mean(np.array(p) <= 0.05) < 0.12


# Tables


def table(n=400):
    rng = RNG(0)
    a, b, c = rng.normal(size=(3, n))
    return pl.DataFrame(
        {
            "a": a,
            "like a": a + 0.3 * b,
            "c": c,
            "kind": np.where(c > 0.5, "up", np.where(c < -0.5, "down", "flat")),
            "count": rng.poisson(2, n),
        }
    )


def test_every_pair_has_a_row_the_largest_first():
    found = deminat.pairwise(table())
    pairs = list(found.table.select("x", "y").iter_rows())
    assert len(pairs) == len(set(pairs)) == 10
    assert all(list(table().columns).index(x) < list(table().columns).index(y) for x, y in pairs)
    assert found.table["mi"].to_list() == sorted(found.table["mi"], reverse=True)
    assert set(found.table["method"]) == {"ranks"}
    assert {frozenset(p) for p in found.significant().select("x", "y").iter_rows()} == {
        frozenset(("a", "like a")),
        frozenset(("c", "kind")),
    }
    # Counts are read as labels; text is one without being asked.
    assert [w.code for w in found.warnings] == ["labels"]
    named = found.table.filter(pl.col("warnings") == "labels")
    assert len(named) == 4
    assert deminat.pairwise(table(), discrete=False).warnings == ()


def test_the_strongest_pairs_are_refined():
    found = deminat.pairwise(table(), refine=2, preset="quick")
    refined = found.table.filter(pl.col("method") == "quick")
    assert {frozenset(p) for p in refined.select("x", "y").iter_rows()} == {
        frozenset(("a", "like a")),
        frozenset(("c", "kind")),
    }
    assert refined["lower_bound"].is_not_null().all()
    with pytest.raises(ValueError, match="refine must be a number of pairs or 'all'"):
        deminat.pairwise(table(), refine=-1)


def test_missing_values_are_refused_by_name_or_omitted():
    frame = table().with_columns(gap=pl.when(pl.col("a") > 0).then(pl.col("c")))
    refused = deminat.pairwise(frame, nan="raise").table.filter(pl.col("error") != "")
    assert set(refused["y"]) == {"gap"}
    assert "column gap has 2" in refused["error"][0]
    assert "nan='omit' (--nan omit)" in refused["error"][0]
    found = deminat.pairwise(frame)
    omitted = found.table
    assert "missing values in 1 columns, most of them in gap: " in str(found.warnings[0])
    assert (omitted["error"] == "").all()
    assert omitted.filter(pl.col("x") == "c", pl.col("y") == "gap")["mi"][0] > 1


def test_tiles_of_any_size_find_the_same(monkeypatch, tmp_path):
    values = RNG(0).normal(size=(60, 11))
    frame = pl.DataFrame({f"c{i}": values[:, i] for i in range(11)})
    whole = deminat.pairwise(frame).table
    monkeypatch.setattr(tiles_module, "_SIDE", 4)
    # Matrix products of other shapes have other last digits.
    assert_frame_equal(deminat.pairwise(frame, n_jobs=2).table, whole, rel_tol=1e-3)
    some = deminat.pairwise(frame, ["c1", "c9"], ["c0", "c1", "c5"]).table
    assert len(some) == 5
    numbers = "p_value", "mi", "low", "high"
    known = {frozenset((r["x"], r["y"])): [r[k] for k in numbers] for r in whole.to_dicts()}
    for row in some.to_dicts():
        expected = known[frozenset((row["x"], row["y"]))]
        assert [row[k] for k in numbers] == pytest.approx(expected, rel=1e-3)


def test_an_interrupted_table_goes_on(monkeypatch, tmp_path):
    values = RNG(0).normal(size=(50, 9))
    frame = pl.DataFrame({f"c{i}": values[:, i] for i in range(9)})
    monkeypatch.setattr(tiles_module, "_SIDE", 4)
    whole = deminat.pairwise(frame).table
    done = []
    real = tiles_module.tile

    def counted(xs, ys, pairs, seed):
        if len(done) == 3:
            raise DataError("power cut")
        done.append((xs[0].name, ys[0].name))
        return real(xs, ys, pairs, seed)

    monkeypatch.setattr(tiles_module, "tile", counted)
    store = tmp_path / "pairs.sqlite"
    with pytest.raises(deminat.TrainingError, match="power cut"):
        deminat.pairwise(frame, store=store)
    monkeypatch.setattr(tiles_module, "tile", real)
    assert_frame_equal(deminat.pairwise(frame, store=store).table, whole, rel_tol=1e-3)
    # A column that changed is not taken from the store, and others are.
    monkeypatch.setattr(tiles_module, "tile", counted)
    done.clear()
    deminat.pairwise(frame.with_columns(c8=-pl.col("c8")), store=store)
    assert {y for _, y in done} == {"c8"}


def test_the_number_of_pairs_and_the_time_are_told_first():
    said = []
    deminat.pairwise(table(), say=said.append)
    (line,) = said
    assert line.startswith("10 pairs of 5 columns, 400 rows: about ")
    said.clear()
    deminat.pairwise(table(60).select("a", "c"), refine="all", preset="quick", say=said.append)
    assert said == ["by the recipe quick, some seconds each: 1 of the pairs"]


# Heat maps


def test_columns_that_share_information_are_beside_each_other():
    names = list("abcdef")
    nats = np.full((6, 6), 0.01)
    for group in ([0, 3, 5], [1, 2, 4]):
        nats[np.ix_(group, group)] = 1.0
    np.fill_diagonal(nats, np.nan)
    rows, columns = clustered(names, names, nats)
    assert (rows == columns).all()
    assert {frozenset(rows[:3]), frozenset(rows[3:])} == {
        frozenset([0, 3, 5]),
        frozenset([1, 2, 4]),
    }
    rows, columns = clustered(names, list("xyz"), nats[:, :3])
    assert (sorted(rows), sorted(columns)) == (list(range(6)), [0, 1, 2])


def test_of_many_columns_those_with_large_values_are_shown():
    count = MOST_SHOWN + 60
    nats = RNG(0).random((count, count)) / 100
    nats = (nats + nats.T) / 2
    nats[7, count - 1] = nats[count - 1, 7] = 2.0
    names = [f"c{i}" for i in range(count)]
    rows, _ = clustered(names, names, nats)
    assert len(rows) == len(set(rows)) == MOST_SHOWN
    at = rows.tolist()
    assert abs(at.index(7) - at.index(count - 1)) == 1


def test_the_pairs_of_columns_with_large_values_are_shown():
    count = MOST_SHOWN + 60
    names = [f"c{i}" for i in range(count)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    rng = RNG(0)
    mi = sorted(rng.random(len(pairs)), reverse=True)
    table = pl.DataFrame(rng.permutation(pairs), schema=["x", "y"]).with_columns(
        mi=pl.Series(mi), error=pl.lit("")
    )
    some, every = pairs_to_show(table)
    assert sorted(every) == sorted(names)
    assert len(some) == MOST_SHOWN * (MOST_SHOWN - 1) // 2
    assert some.row(0) == table.row(0)
    beside = table.filter(~pl.col("x").is_in(names[:2]), pl.col("y").is_in(names[:2]))
    few, _ = pairs_to_show(beside)
    assert set(few["x"]) == set(beside["x"].unique(maintain_order=True).head(MOST_SHOWN))


# What newcomers' tables are like


def of_pairs(columns):
    """The rows of the pairs x0 y0, x1 y1 and so on."""
    table = deminat.pairwise(pl.DataFrame(columns)).table
    return table.filter(pl.col("x").str.slice(1) == pl.col("y").str.slice(1))


@pytest.mark.parametrize(("n", "rho"), [(300, 0.4), (1_000, 0.3), (1_500, 0.2), (5_000, 0.1)])
def test_weak_dependence_is_in_the_interval(n, rho):
    rng, columns = RNG(3), {}
    for i in range(20):
        a, b = rng.normal(size=(2, n))
        columns |= {f"x{i}": a, f"y{i}": rho * a + np.sqrt(1 - rho**2) * b}
    found, truth = of_pairs(columns), float(-np.log(1 - rho**2) / 2)
    assert found["mi"].mean() == pytest.approx(truth, rel=0.2)
    assert ((found["low"] <= truth) & (truth <= found["high"])).mean() >= 0.9


def test_weak_shapes_are_not_missed():
    rng, columns = RNG(4), {}
    for i in range(10):
        a, b = rng.normal(size=(2, 1_000))
        columns |= {f"x{i}": a, f"y{i}": 0.3 * a**2 + b}  # .071 nats
    assert 0.03 < of_pairs(columns)["mi"].mean() < 0.075


def test_intervals_of_independent_columns_begin_at_0():
    rng = RNG(5)
    found = deminat.pairwise(pl.DataFrame(rng.normal(size=(100, 20)))).table
    weak = found.filter(pl.col("p_value") > 0.05)
    assert len(weak) > 150
    assert (weak["low"] == 0).all()


@pytest.mark.parametrize("kind", ["counts", "words", "genotypes"])
def test_rare_values_make_no_small_p_values(kind):
    rng = RNG(6)
    draws = {
        "counts": lambda i: rng.poisson([1, 0.5, 2, 0.2][i % 4], 1_000),
        "words": lambda _: np.array(list("abcdefgh"))[
            rng.choice(8, 300, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01])
        ],
        "genotypes": lambda i: rng.binomial(2, [0.02, 0.1, 0.3, 0.005][i % 4], 500),
    }
    found = deminat.pairwise(pl.DataFrame({f"c{i}": draws[kind](i) for i in range(40)})).table
    p_values = found["p_value"].to_numpy()
    assert p_values.min() > 1e-7
    assert (p_values < 1e-3).mean() < 6e-3


def test_a_refined_pair_keeps_its_p_value():
    rng = RNG(7)
    u = rng.normal(size=300)
    noise = {f"n{i}": rng.normal(size=300) for i in range(8)}
    frame = pl.DataFrame({"u": u, "label": np.where(u > 0.5, "a", np.where(u > -0.5, "b", "c"))})
    frame = frame.with_columns(**noise)
    plain = deminat.pairwise(frame).table.row(0, named=True)
    refined = deminat.pairwise(frame, refine=1, preset="quick").table.row(0, named=True)
    assert (plain["x"], plain["y"]) == (refined["x"], refined["y"]) == ("u", "label")
    assert (plain["method"], refined["method"]) == ("ranks", "quick")
    assert refined["p_value"] == plain["p_value"] < 1e-10
