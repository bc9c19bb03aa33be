"""Columns that matter, alone or together, in pipelines of scikit-learn."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.feature_selection import mutual_info_regression
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from deminat import MISelector
from deminat.inference import joint_pairs as module
from deminat.inference.all_pairs import Column
from deminat.inference.dependent_rows import Dependence, single_test
from deminat.inference.joint_pairs import joint_pairs
from deminat.studies.bench import BENCHES


def together(n=1_500, seed=0):
    """Return columns of which the first two matter only together, and the third alone."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    return x, 2 * np.sign(x[:, 0] * x[:, 1]) + x[:, 2] + 0.3 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return MISelector(3).fit(*together())


def test_columns_that_matter_only_together_are_found(fitted):
    assert fitted.get_support().tolist() == [True, True, True, False, False]
    assert (fitted.alone_[:2] < 0.02).all()
    assert (fitted.lost_[:2] > 0.2).all()


def test_one_by_one_they_would_be_missed():
    by_one = mutual_info_regression(*together(), random_state=0)
    assert np.argmax(by_one) == 2
    assert by_one[:2].max() < 0.05


def test_columns_that_say_the_same_are_not_missed():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    x = np.column_stack([x[:, 0], x[:, 0], x[:, 1]])
    selector = MISelector(2).fit(x, x[:, 0] + 0.5 * rng.normal(size=400))
    assert selector.get_support().tolist() == [True, True, False]


def test_it_is_part_of_a_pipeline():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    y = frame["b"] + 0.1 * rng.normal(size=200)
    pipeline = make_pipeline(MISelector(1), LinearRegression()).set_output(transform="pandas")
    assert pipeline.fit(frame, y).score(frame, y) > 0.9
    selector = pipeline[0]
    assert list(selector.get_feature_names_out()) == ["b"]
    assert list(selector.transform(frame).columns) == ["b"]
    assert clone(selector).get_params() == selector.get_params()


@pytest.mark.parametrize("kind", ["text", "whole", "told"])
def test_classes_are_taken_for_classes(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    middle = np.abs(x[:, 1]) < 0.7  # in between: no order of classes helps
    y = {
        "text": np.where(middle, "in", "out"),
        "whole": np.where(middle, 1, np.where(x[:, 1] > 0, 0, 2)),
        "told": middle.astype(float),
    }[kind]
    selector = MISelector(1, discrete_target=True if kind == "told" else "auto").fit(x, y)
    assert selector.get_support().tolist() == [False, True]


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_not_kept(seed):
    x = np.random.default_rng(seed).normal(size=(400, 6))
    selector = MISelector().fit(x, x[:, 2] > 0)
    assert np.flatnonzero(selector.get_support()).tolist() == [2]
    assert selector.scores_[2] > 10 * selector.errors_[2]


def test_nothing_that_tells_nothing_is_kept_but_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    selector = MISelector(3).fit(x, x[:, 0] + rng.normal(size=200))
    assert selector.get_support()[0]
    assert MISelector(3).fit(x[:, :1], rng.normal(size=200)).get_support().tolist() == [True]
    with pytest.raises(ValueError, match="at least 1"):
        MISelector(0).fit(x, x[:, 0])


def found_pairs(x, y, labels=(), y_is_label=False, **options):
    columns = [Column(f"c{j}", column, j in labels) for j, column in enumerate(np.transpose(x))]
    return joint_pairs(columns, Column("y", np.asarray(y, dtype=float), y_is_label), **options)


def places(pairs):
    return [(pair.first, pair.second) for pair in pairs]


# Pairs that matter together


def test_a_pair_is_found_among_200_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 200))
    y = x[:, 3] * x[:, 170] + rng.standard_t(2, size=500)
    assert places(found_pairs(x, y)) == [(3, 170)]


def test_a_pair_is_found_for_classes_and_of_labels():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, size=(600, 20)).astype(float)
    parity = (x[:, 2] + x[:, 5]) % 2
    assert places(found_pairs(x, parity, labels=range(20), y_is_label=True)) == [(2, 5)]
    shades = (x[:, 2] + x[:, 5]) % 4
    assert places(found_pairs(x, shades, labels=range(20), y_is_label=True)) == [(2, 5)]


def test_tables_of_noise_have_no_pair():
    """At a level of .05, 40 tables have more than 7 false ones with probability below 1e-3."""
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_t(1, size=(100, 20)), rng.standard_t(1, size=100)
        false += bool(found_pairs(x, y, seed=seed))
    assert false <= 7


@pytest.mark.parametrize("seed", range(4))
def test_noise_beside_an_informative_column_is_in_no_pair(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 30))
    assert found_pairs(x, x[:, 0] ** 2 + 0.1 * rng.normal(size=400), informative=[0]) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_copy_adds_nothing_to_its_original(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(800, 6))
    x[:, 1:4] = x[:, :1] + 0.5 * rng.normal(size=(800, 3))
    pairs = found_pairs(x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=800))
    assert not [pair for pair in places(pairs) if 0 in pair]
    with pytest.MonkeyPatch.context() as patch:  # this is what the regressions are for
        patch.setattr(module, "_mean_p_value", lambda *_: 0.0)
        pairs = found_pairs(x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=800))
        assert [pair for pair in places(pairs) if 0 in pair]


def test_steps_of_both_columns_at_one_place_are_no_pair(monkeypatch):
    """Cosines alone round off the steps, and what they leave of both is correlated."""
    tables = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 4_000, 3])
        x = rng.normal(size=(4_000, 6))
        x[:, 1:] = np.sign(x[:, :1] - 0.3) + 0.5 * x[:, 1:]
        tables.append((x, np.sign(x[:, 0] - 0.3) * (1 + 0.2 * rng.random(4_000))))

    def false():
        return [pair for x, y in tables for pair in places(found_pairs(x, y)) if pair[0] == 0]

    assert not false()
    monkeypatch.setattr(module, "_BIN", 4_000)
    assert false()


def test_a_column_and_its_copy_are_no_pair():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4))
    x = np.column_stack([x, x[:, 0], -x[:, 1], np.exp(x[:, 0])])
    assert found_pairs(x, x[:, 0] ** 2 + 0.1 * rng.normal(size=500)) == []
    column = Column("c", x[:, 0])
    copied, _ = module._features(column, 3, rng)
    regression = module._Regression.of(column, np.arange(500), 0)
    assert all((regression.residuals(feature) == 0).all() for feature in copied.T)


def test_blocks_and_missing_values_change_no_pair(monkeypatch):
    x, y = together(800)
    assert places(found_pairs(x, y)) == [(0, 1)]
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    assert places(found_pairs(x, y)) == [(0, 1)]
    x[np.random.default_rng(0).random(x.shape) < 0.2] = np.nan
    assert places(found_pairs(x, y)) == [(0, 1)]
    x[:, 1] = np.nan
    assert found_pairs(x, y) == []


# Redundant columns


def test_methods_differ_on_copies():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1_000, 3))
    x = np.repeat(z, 3, axis=1) + 0.2 * rng.normal(size=(1_000, 9))
    x = np.hstack([x, rng.normal(size=(1_000, 3))])
    y = 1.4 * z[:, 0] + z[:, 1] + z[:, 2] + 0.3 * rng.normal(size=1_000)
    sources = {}
    for method in ("relevance", "mrmr", "jmi"):
        selector = MISelector(3, method=method).fit(x, y)
        sources[method] = set(np.flatnonzero(selector.get_support()) // 3)
        assert sorted(selector.ranking_) == list(range(1, 13))
        assert selector.ranking_[9:].min() > 3
    assert sources["relevance"] == {0}
    assert sources["mrmr"] == {0, 1, 2}
    assert len(sources["jmi"]) >= 2


@pytest.mark.parametrize("method", ["mrmr", "jmi"])
def test_each_method_selects_whole_pairs(method):
    x, y = together()
    assert MISelector(3, method=method).fit(x, y).get_support().tolist() == [1, 1, 1, 0, 0]
    x = np.column_stack([x, x[:, 0]])  # a copy has nothing to add
    selector = MISelector(3, method=method).fit(x, y)
    selected = set(np.flatnonzero(selector.get_support()))
    assert selected in ({0, 1, 2}, {5, 1, 2})


# Tables


def test_a_frame_may_hold_text_dates_and_missing_values():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 4))
    holes = np.where(rng.random(400) < 0.3, np.nan, z[:, 1])
    frame = pd.DataFrame(
        {
            "text": np.where(z[:, 0] > 0, "up", np.where(z[:, 0] > -1, "mid", "low")),
            "holes": holes,
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta((99 * z[:, 2]).round(), unit="D"),
            "noise": z[:, 3],
            "name": [f"row {i}" for i in range(400)],
            "same": 1.0,
        }
    )
    y = z[:, 0] ** 2 + z[:, 1] + z[:, 2] + 0.3 * rng.normal(size=400)
    with pytest.warns(UserWarning, match="never selected: name"):
        selector = MISelector().fit(frame, y)
    assert list(selector.get_feature_names_out()) == ["text", "holes", "date"]
    assert (selector.q_values_[:3] < 1e-6).all()
    assert selector.p_values_[4] == selector.p_values_[5] == 1
    frame = pl.DataFrame({"text": frame["text"].tolist(), "holes": holes, "number": z[:, 2]})
    selector = MISelector().set_output(transform="polars").fit(frame, pl.Series(y))
    assert selector.transform(frame).schema == frame.schema
    assert MISelector(1).fit(pd.DataFrame(z), z[:, 2]).get_feature_names_out().tolist() == ["x2"]
    objects = np.array([["a", 1.5], ["b", None]] * 100, dtype=object)
    assert MISelector().fit(objects, ["s", "t"] * 100).get_support().tolist() == [True, False]


@pytest.mark.parametrize("name", ["y", "x"])
def test_ties_of_a_column_and_of_the_target_are_broken_apart(name):
    """Eight independent pairs of binary columns are all below .05 with probability 4e-11."""
    p_values = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({name: rng.integers(0, 2, size=200)})
        y = pd.Series(rng.integers(0, 2, size=200), name="y")
        p_values.append(MISelector().fit(frame, y).p_values_[0])
    assert max(p_values) > 0.05


def test_p_values_of_noise_are_uniform():
    """Of 400, between 4 and 40 are below .05 but for a probability of 1e-4."""
    rng = np.random.default_rng(0)
    x = rng.standard_t(1, size=(300, 400))
    selector = MISelector().fit(x, rng.standard_t(1, size=300))
    assert 4 <= (selector.p_values_ <= 0.05).sum() <= 40
    assert (selector.q_values_ >= selector.p_values_).all()


# Dependent rows


def grouped_table(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), 4)
    x, y = rng.normal(size=(60, 8))[groups], rng.normal(size=60)[groups]
    x, y = x + 0.3 * rng.normal(size=x.shape), y + 0.3 * rng.normal(size=y.shape)
    return x, y, groups


def test_groups_are_moved_together():
    x, y, groups = grouped_table(0)
    assert (MISelector().fit(x, y).q_values_ <= 0.05).sum() >= 4  # rows are not independent
    assert (MISelector().fit(x, y, groups=groups).q_values_ > 0.05).all()
    y = y + x[:, 2] + 3 * np.sign(x[:, 5] * x[:, 6])
    selector = MISelector().fit(x, y, groups=[f"subject {g}" for g in groups])
    assert set(np.flatnonzero(selector.get_support())) <= {2, 5, 6}
    assert [pair.columns for pair in selector.pairs_] == [(5, 6)]
    pipeline = make_pipeline(MISelector(2, pairs=False), LinearRegression())
    assert pipeline.fit(x, y, miselector__groups=groups)[0].get_support(indices=True).tolist()


def test_series_are_shifted():
    rng = np.random.default_rng(1)
    x = lfilter([1], [1, -0.9], rng.normal(size=(2_000, 8)), axis=0)
    y = lfilter([1], [1, -0.9], rng.normal(size=2_000))
    assert (MISelector().fit(x, y).q_values_ <= 0.05).sum() >= 4
    assert (MISelector().fit(x, y, order=True).q_values_ > 0.05).all()
    shuffled = rng.permutation(2_000)
    y = y + 2 * x[:, 2] + 5 * np.sign(x[:, 5] * x[:, 6])
    selector = MISelector().fit(x[shuffled], y[shuffled], order=shuffled)
    assert np.flatnonzero(selector.get_support()).tolist() == [2, 5, 6]


def test_the_p_value_of_groups_has_its_level():
    """Of 60 p-values of independent columns, 10 or more are below .05 with probability 1e-3."""
    found = []
    for seed in range(60):
        x, y, groups = grouped_table(seed)
        rows = Dependence(labels=groups)
        found.append(single_test(x[:, 0], y, rows, permutations=199, seed=seed))
    assert (np.array(found) <= 0.05).sum() < 10


# The recipe


def test_the_best_columns_may_be_refined(monkeypatch):
    seen = []

    def estimate(x, y, **options):
        seen.append((tuple(x.columns), y.dtype == pl.Float64))
        return SimpleNamespace(mi=float(len(x.columns)) ** 2, standard_error=0.1)

    monkeypatch.setattr("deminat.selection.estimate", estimate)
    x, y = together()
    selector = MISelector(3, refine=2).fit(x, y)
    single, pair = ("column 2",), ("column 0", "column 1")
    assert {columns for columns, _ in seen} >= {pair, pair[:1], pair[1:]} or single in dict(seen)
    assert selector.scores_.max() == 3  # of a pair 4 nats, of its other column 1
    for target, is_number in ((False, True), (True, False)):
        seen.clear()
        MISelector(refine=1, discrete_target=target).fit(x, (x[:, 0] > 0).astype(int))
        assert [number for _, number in seen] == [is_number]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "best"}, "method must be one of relevance, mrmr, jmi"),
        ({"level": 0}, "level must be above 0"),
        ({"refine": -1}, "refine must be"),
        ({"discrete": "zip"}, "discrete must be"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    x, y = together(100)
    with pytest.raises(ValueError, match=message):
        MISelector(**arguments).fit(x, y)


def test_groups_and_order_exclude_each_other():
    x, y = together(100)
    with pytest.raises(ValueError, match="both given"):
        MISelector().fit(x, y, groups=np.arange(100), order=True)
    with pytest.raises(ValueError, match="20 are needed"):
        MISelector().fit(x[:19], y[:19])


def test_it_is_a_transformer_of_scikit_learn():
    few = "20 rows are needed"
    expected = {"check_n_features_in_after_fitting": few, "check_fit2d_1feature": few}
    check_estimator(MISelector(), expected_failed_checks=expected, on_skip=None, on_fail="raise")


# The bench


def test_the_bench_counts_hits_and_false_columns():
    bench = BENCHES["selection"]
    cells = [c for c in bench.cells([0]) if (c["table"], c["n"]) == ("pairs-30", 500)]
    rows = [{**cell, **bench.run(cell)} for cell in cells if cell["target"] == "number"]
    hits = {row["method"]: row["hits"] for row in rows}
    assert hits["relevance"] > hits["scikit-learn"]
    assert all(row["effects"] == 6 and row["false"] <= 6 for row in rows)
    assert not [line for line in bench.verdict(rows) if "MISS" in line and "processor" not in line]
    worse = [{**row, "hits": 6 * (row["method"] == "scikit-learn"), "false": 0} for row in rows]
    assert sum("MISS" in line and "processor" not in line for line in bench.verdict(worse)) == 6
