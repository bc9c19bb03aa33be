"""Tasks off the public benchmark and tasks of real columns: oracles, cells and verdicts.

A random check allows Z = 4.5 standard errors, which fresh seeds exceed in 7e-6 of cases: in .2% for
the 300 checks together. The seeds are fixed, so a check that passes passes for good. The truths of
mixtures and clusters are means of 200,000 draws, ten times those of a check.
"""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from deminat.studies.bench import BENCHES, plasmode, wild
from deminat.studies.bench.wild import HALVES
from deminat.tasks.plasmode import fitted_classes, fitted_mixture, kernel_pair
from deminat.tasks.tables import labels, presence
from deminat.tasks.wild import wild_cases

Z = 4.5
N = 20_000
WIDE, N_WIDE = 8, 4_000  # tasks of more columns are checked with fewer rows
SMALL = 2.0  # nats, above which the ratio of unpaired rows is carried by too few of them
RARE = {"presence-0.01"}  # one unpaired row in 10,000 is nonzero on both sides
DATA = Path(__file__).parents[2] / "shared/data"

CASES = wild_cases()
# The same task under several codings is checked once.
MAKERS = {case.make: name for name, case in CASES.items()}
NAMES = list(MAKERS.values())


def z_score(values, truth):
    error = values.std(ddof=1) / np.sqrt(len(values))
    # A log ratio that is constant has no spread, only rounding.
    return float((values.mean() - truth) / max(error, 1e-12))


def failures(task, n, rare=False):
    """What is wrong with the oracle of a task, by 2n pairs."""
    x, y = task.sample(2 * n, seed=1)
    joint, product = task.log_ratio(x, y), task.log_ratio(x[:n], y[n:])
    scores = {"mean of the log ratio": z_score(joint, task.mi)}
    if task.mi < SMALL:
        # 1/(1+r) on pairs and r/(1+r) on unpaired rows have one mean, and neither has a tail.
        scores["best classifier"] = z_score(expit(-joint[:n]) - expit(product), 0)
    if task.mi < SMALL and not rare:
        scores["mean ratio of unpaired rows"] = z_score(np.exp(product), 1)
    return [name for name, z in scores.items() if not abs(z) < Z]


# Tasks


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_of_a_wild_task_is_right(name):
    task = CASES[name].task
    n = N if task.dim_x + task.dim_y <= WIDE else N_WIDE
    assert failures(task, n // 2, name in RARE) == []


@pytest.mark.parametrize("name", ["student-1d-dof2", "variance-0.5", "counts", "classes-3"])
def test_a_wrong_oracle_is_found(name):
    task = CASES[name].task
    assert "mean of the log ratio" in failures(replace(task, mi=task.mi + 0.04), N // 2)
    shifted = replace(task, mi=task.mi + 0.1, score=lambda x, y: task.score(x, y) + 0.1)
    assert "mean ratio of unpaired rows" in failures(shifted, N)
    assert "best classifier" in failures(shifted, N)


@pytest.mark.parametrize("name", NAMES)
def test_samples_have_the_shape_that_the_task_says(name):
    task = CASES[name].task
    x, y = task.sample(7, seed=3)
    assert (x.shape, y.shape) == ((7, task.dim_x), (7, task.dim_y))
    assert np.array_equal(x, task.sample(7, seed=3)[0])
    assert np.isfinite(task.log_ratio(x, y)).all()


def test_truths_sizes_and_columns_are_spread():
    tasks = [case.task for case in CASES.values()]
    truths, sizes = [t.mi for t in tasks], [case.n for case in CASES.values()]
    assert 0.05 < min(truths) < 0.06
    assert max(truths) == 10
    assert {t.dim_x for t in tasks} >= {1, 2, 3, 5, 10, 32, 200, 500}
    assert (min(sizes), max(sizes)) == (500, 50_000)
    assert sum(2_000 <= n <= 10_000 for n in sizes) > 0.8 * len(sizes)


def test_presence_is_the_fault_that_was_found():
    """x = b|N| and y = b|N| with one rare b: the information is the entropy of b."""
    task = presence(0.01)
    x, y = task.sample(20_000, seed=0)
    assert np.array_equal(x > 0, y > 0)
    assert task.mi == pytest.approx(-0.01 * np.log(0.01) - 0.99 * np.log(0.99))


# Forms


def test_codings_of_labels_say_the_same():
    forms = {form: CASES[f"labels-30-{form}"] for form in ("ordered", "permuted", "floats", "text")}
    x, y = forms["ordered"].task.sample(3_000, seed=0)
    shown = {form: case.shown(x, y) for form, case in forms.items()}
    for side, codes in enumerate((x, y)):
        places = [np.unique(shown[form][side], return_inverse=True)[1] for form in forms]
        for place in places:  # one code for each label, and one label for each code
            assert len(set(zip(place.tolist(), codes[:, 0].tolist(), strict=True))) == 30
    permuted, floats, text = (shown[form][0] for form in ("permuted", "floats", "text"))
    assert set(permuted.tolist()) == set(range(30))
    assert not np.array_equal(permuted, shown["ordered"][0])
    assert (permuted.dtype.kind, floats.dtype.kind, text.dtype.kind) == ("i", "f", "U")


def test_only_the_side_of_labels_is_coded():
    case = CASES["classes-10-category"]
    x, y = case.task.sample(50, seed=0)
    shown_x, shown_y = case.shown(x, y)
    assert isinstance(shown_x.schema["kind"], pl.Enum)
    assert shown_x["kind"].to_list() == [f"kind {code:.0f}" for code in x[:, 0]]
    assert shown_y is y


def test_images_show_a_spot_where_the_latent_columns_are():
    case = CASES["spots-1"]
    x, y = case.shown(*case.task.sample(20, seed=0))
    assert x.shape == y.shape == (20, 1, 16, 16)
    assert 0.8 < x.max(axis=(1, 2, 3)).min() <= x.max() <= 1
    assert case.task.mi == 1


def test_a_wrong_table_is_found():
    """A table's own draws and scores agree for any table, so compare with a count of its cells."""
    task = labels(3, 0.7, 0.1)
    x, y = task.sample(200_000, seed=0)
    joint = np.histogram2d(x[:, 0], y[:, 0], bins=3)[0] / len(x)
    ratio = np.log(joint / (joint.sum(1, keepdims=True) * joint.sum(0)))
    codes = x[:, 0].astype(int), y[:, 0].astype(int)
    np.testing.assert_allclose(task.log_ratio(x, y), ratio[codes], atol=0.05)


# Cells of the wild


def test_halves_are_two_equal_parts_of_all_families():
    families = {case.family for case in CASES.values()}
    chosen, reported = (
        {f for f, h in HALVES.items() if h == half} for half in ("choose", "report")
    )
    assert chosen | reported == families == set(HALVES)
    assert not chosen & reported
    assert len(chosen) == len(reported) >= 7
    assert {"embedding-tanh", "student", "labels"} <= chosen
    # These reported once.
    assert {"embedding-wave", "clusters", "images", "t-copula", "answers"} <= chosen
    assert {"angles", "steps", "label-number"} <= reported


def test_both_halves_have_the_same_difficulty_before_any_estimate():
    for key in (lambda case: case.task.mi, lambda case: case.n):
        means = [
            np.mean([key(c) for c in CASES.values() if HALVES[c.family] == half])
            for half in ("choose", "report")
        ]
        assert max(means) < 1.6 * min(means)


def test_there_are_enough_cells_of_each_preset():
    cells = BENCHES["wild"].cells([0])
    default = [cell for cell in cells if cell["preset"] == "auto"]
    assert len(default) == len(CASES) >= 48
    assert len({cell["family"] for cell in default}) >= 14
    assert [{**cell, "preset": "quick"} for cell in default] == cells[len(default) :]
    assert all(cell["half"] == HALVES[cell["family"]] for cell in cells)


def ran(name, n):
    (cell,) = [
        c for c in BENCHES["wild"].cells([0]) if c["task"] == name and c["preset"] == "quick"
    ]
    cell["n"] = n
    return cell | BENCHES["wild"].run(cell)


def test_a_cell_runs_from_end_to_end():
    row = ran("student-1d-dof2", 60)
    task = CASES["student-1d-dof2"].task
    assert row["truth"] == task.mi
    assert abs(row["oracle"] - row["truth"]) < Z * row["oracle_error"]
    assert row["low"] <= row["estimate"] <= row["high"]
    assert row["cpu"] > 0
    assert {type(row[key]) for key in ("ksg", "sklearn", "standard_error")} == {float}
    assert {type(row[key]) for key in ("warnings", "recipe")} == {str}
    assert BENCHES["wild"].verdict([row])


def test_labels_in_words_give_an_estimate_or_say_why_not():
    row = ran("labels-30-text", 100)
    assert row["ksg"] is row["sklearn"] is None
    assert row["estimate"] is not None or "string" in row["warnings"]
    assert len(BENCHES["wild"].verdict([row])) >= 1


def test_an_estimate_that_is_refused_is_a_row(monkeypatch):
    def refuse(*sides, **options):
        raise wild.DataError("no such data")

    monkeypatch.setattr(wild, "estimate", refuse)
    found = wild._estimate((None, None), {"preset": "auto", "seed": 0})
    assert found["estimate"] is found["low"] is found["cpu"] is None
    assert found["warnings"] == "no such data"


def test_other_estimators_see_few_columns_of_numbers_only():
    x = np.random.default_rng(0).normal(size=(60, 11))
    assert isinstance(wild._ksg(x[:, :2], x[:, 2]), float)
    assert wild._ksg(x, x[:, 0]) is wild._ksg(x[:, 0].astype(str), x[:, 0]) is None
    assert wild._ksg(np.zeros((10_001, 1)), np.zeros((10_001, 1))) is None
    assert wild._sklearn(x[:, :2], x[:, 2], False, False) is None
    half = (x[:, 0] > 0).astype(int)
    same = wild._sklearn(half, 5.0 + 2 * half, True, True)
    assert same == pytest.approx(np.log(2), abs=0.05)


# Verdicts

ROW = {
    "family": "student",
    "half": "choose",
    "task": "some",
    "n": 5_000,
    "seed": 0,
    "preset": "auto",
    "truth": 2.0,
    "oracle": 2.01,
    "oracle_error": 0.02,
    "estimate": 2.0,
    "low": 1.95,
    "high": 2.05,
    "cpu": 5.0,
    "ksg": 1.5,
    "source": "sachs",
}


def misses(name, *rows):
    lines = [line for line in BENCHES[name].verdict(rows) if line.startswith("MISS")]
    return [line.removeprefix("MISS ").split(":")[0] for line in lines]


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"estimate": 2.03}, []),
        ({"estimate": 2.07}, ["choose"]),
        ({"estimate": 2.17}, ["choose", "worst cell", "overshoot"]),
        ({"estimate": 2.15}, ["choose"]),
        ({"estimate": 1.60}, ["choose", "worst cell"]),
        ({"low": 2.01}, ["interval, student"]),
        ({"low": 2.01, "n": 999}, []),
        ({"low": 1.0}, ["width"]),
        ({"oracle_error": 0.0}, []),
        ({"cpu": 31.0}, ["time"]),
        ({"estimate": None}, ["refused"]),
        ({"estimate": 9.0, "preset": "quick"}, []),
        ({"low": None, "high": None}, []),
        ({"warnings": "unvalidated normaliser"}, ["false alarms"]),
        ({"warnings": "normaliser", "estimate": 2.2}, ["choose", "worst cell", "overshoot"]),
    ],
)
def test_wild_misses_what_it_should(changed, missed):
    assert misses("wild", {**ROW, **changed}) == missed
    kept = {key: value for key, value in changed.items() if value is not None}
    absent = {key for key, value in changed.items() if value is None}
    from_csv = {key: value for key, value in {**ROW, **kept}.items() if key not in absent}
    assert misses("wild", from_csv) == missed


def test_one_row_that_overshoots_is_found_and_named():
    rows = [{**ROW, "seed": seed} for seed in range(60)]
    rows.append({**ROW, "seed": 60, "task": "other", "estimate": 2.2})
    assert misses("wild", *rows) == ["worst cell", "overshoot"]
    (line,) = [line for line in BENCHES["wild"].verdict(rows) if "overshoot" in line]
    assert "1 of 61 rows" in line
    assert "highest other, seed 60, 2.200 for 2.000 nats" in line


def test_errors_are_relative_above_one_nat_and_compared_on_the_same_rows():
    rows = [
        {**ROW, "estimate": 2.02},
        {**ROW, "half": "report", "truth": 0.1, "oracle": 0.1, "estimate": 0.13, "ksg": None},
    ]
    lines = [line for line in BENCHES["wild"].verdict(rows) if "|error|" in line]
    assert [line[5:].split(":")[0] for line in lines] == ["choose", "report", "both halves"]
    assert "0.0100 (at" in lines[0]
    assert "0.0300 (at" in lines[1]
    assert "0.0200 (at" in lines[2]
    assert "0.0100 where ksg has 0.2500, 1 rows" in lines[2]


def test_the_worst_cell_is_that_of_a_mean_over_seeds():
    noisy = [{**ROW, "task": "noisy", "estimate": 2 + e, "seed": e} for e in (-1, 1)]
    steady = [{**ROW, "task": "steady", "estimate": 1.9, "seed": seed} for seed in (0, 1)]
    (line,) = [line for line in BENCHES["wild"].verdict(noisy + steady) if "worst cell" in line]
    assert "steady" in line


# Plasmodes


def real_rows(*names):
    columns = plasmode._columns("sachs")
    return np.stack([columns[name][::20] for name in names], axis=1)


def test_the_oracle_of_a_pair_of_kernels_is_right():
    task = kernel_pair("pair", real_rows("raf", "mek"), 0.1)
    assert failures(task, 3_000) == []
    assert failures(replace(task, mi=task.mi + 0.08), 3_000) == ["mean of the log ratio"]


def test_kernels_are_those_of_the_rows():
    """Around two far rows x and y say the same bit."""
    task = kernel_pair("two", np.array([[0.0, 5.0], [5.0, 0.0]]), 0.1)
    assert task.mi == pytest.approx(np.log(2), abs=1e-6)
    x, y = task.sample(200, seed=0)
    np.testing.assert_allclose(task.log_ratio(x, y), np.log(2), atol=1e-9)


def test_the_oracle_of_a_fitted_mixture_is_right():
    x, y = np.split(real_rows("raf", "plc", "mek", "pip2"), 2, axis=1)
    task = fitted_mixture("groups", x, y, components=3)
    assert (task.dim_x, task.dim_y) == (2, 2)
    assert failures(task, 5_000) == []


def test_the_oracle_of_fitted_classes_is_right():
    rows = real_rows("raf", "mek", "plc")
    task = fitted_classes("classes", (rows[:, 2] > 0.3).astype(np.int64), rows[:, :2], components=2)
    assert failures(task, 5_000) == []
    assert 0 < task.mi < np.log(2)


def test_sources_without_a_file_are_left_out_with_a_message(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("DEMINAT_DATA", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        cells = [c for c in BENCHES["plasmode"].cells([0]) if c["preset"] == "auto"]
        BENCHES["plasmode"].cells([0])
    assert {cell["source"] for cell in cells} == {"sachs"}
    assert sum(cell["family"] == "pairs" for cell in cells) == 55
    assert len(caplog.messages) == 3
    assert "s1_data.mat" in caplog.text


@pytest.mark.skipif(not (DATA / "small").is_dir(), reason="needs ../shared/data")
def test_sources_have_finite_columns_of_unit_variance(monkeypatch):
    monkeypatch.setenv("DEMINAT_DATA", str(DATA))
    for source in ("sachs", "spikes", "pulsar", "penguins"):
        columns = dict(plasmode._columns.__wrapped__(source))
        classes = columns.pop("class", np.zeros(1))
        rows = np.stack(list(columns.values()), axis=1)
        assert np.isfinite(rows).all()
        np.testing.assert_allclose(rows.std(axis=0), 1)
        assert set(classes) <= {0, 1, 2}
        named = {name for case in plasmode._cases(source).values() for name in names_in(case)}
        assert named <= set(columns)


def names_in(case):
    """The columns that a case is made of."""
    sides = [arg for arg in case.make.args[1:] if not isinstance(arg, int)]
    return [name for side in sides for name in ([side] if isinstance(side, str) else side)]


def test_a_cell_of_proteins_runs_from_end_to_end():
    cells = BENCHES["plasmode"].cells([0])
    (cell,) = [c for c in cells if c["task"] == "sachs-raf-mek" and c["preset"] == "quick"]
    row = BENCHES["plasmode"].run({**cell, "n": 60})
    assert row["truth"] == pytest.approx(0.813, abs=0.001)
    assert abs(row["oracle"] - row["truth"]) < Z * row["oracle_error"]
    assert isinstance(row["ksg"], float)


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"ksg": 2.012}, ["sachs, some"]),
        ({"ksg": None}, []),
        ({"ksg": None, "estimate": 1.8, "low": 1.7}, ["sachs, some", "worst"]),
        ({"low": 2.005}, ["interval"]),
        ({"high": 2.005}, ["interval"]),
        ({"estimate": None}, ["refused"]),
        ({"cpu": 31.0}, ["time"]),
    ],
)
def test_plasmode_misses_what_it_should(changed, missed):
    assert misses("plasmode", {**ROW, "family": "some", **changed}) == missed
