"""Benches: rows are resumed, verdicts can fail, and the cells are what the claims say."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from deminat import ConvCritic, MIResult, estimate, tasks
from deminat.cli import app
from deminat.errors import DataError
from deminat.estimators.flows import FlowRatio
from deminat.estimators.registry import estimator_for
from deminat.infomax import Encoder
from deminat.runtime.environment import environment
from deminat.studies.bench import (
    BENCHES,
    infomax_step,
    known_tasks,
    mixed_conditional,
    run_bench,
    trust,
    with_filter,
)
from deminat.studies.bench.given import SHAPES
from deminat.studies.bench.known_tasks import _ALLOWED, _BMI_LIMITS
from deminat.studies.bench.paper_cells import TIMED
from deminat.studies.bench.runner import Bench
from deminat.studies.bench.speed import _shifted
from deminat.studies.paper.consistency import _training
from deminat.studies.paper.gaussian import run_gaussian


def square(cell):
    return {"square": cell["seed"] ** 2}


TOY = Bench(
    "squares", lambda seeds: [{"seed": s} for s in seeds], square, lambda rows: [], runs=2, jobs=1
)


def test_rows_are_written_as_they_come_and_continued(tmp_path):
    out = tmp_path / "new" / "rows.csv"
    lengths = []

    def progress(share):
        lengths.append(len(out.read_text().splitlines()) if out.exists() else 0)
        if share == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bench(TOY, range(3), out, jobs=1, progress=progress)
    assert lengths == [0, 2, 3, 4]  # a header, and one row after the other
    rows = list(run_bench(TOY, range(4), out, jobs=1))
    assert [row["square"] for row in rows] == [0, 1, 4, 9]
    assert len(out.read_text().splitlines()) == 5
    second = list(run_bench(TOY, range(4), out, jobs=1))
    assert [row["seed"] for row in second] == [0, 1, 2, 3]
    assert len(out.read_text().splitlines()) == 5


NAMED = Bench(
    "names",
    lambda seeds: [{"task": t, "seed": s, "share": 2.0} for t in ("inner", "outer") for s in seeds],
    square,
    lambda rows: [],
    runs=2,
    jobs=1,
)


def test_names_and_numbers_come_back_from_disk_as_they_were(tmp_path):
    out = tmp_path / "rows.csv"
    first = list(run_bench(NAMED, range(2), out, jobs=1))
    broken = replace(NAMED, run=None)  # nothing is left to run
    second = list(run_bench(broken, range(2), out, jobs=1))
    assert second == first
    kinds = [str, int, float, int, float, int, str, str, str]
    assert [type(v) for v in second[0].values()] == kinds


def test_rows_of_floats_are_still_read(tmp_path):
    out = tmp_path / "rows.csv"
    out.write_text("seed,square,seconds\n0.0,0.0,1.5\n1,1.0,2\n")
    rows = list(run_bench(TOY, range(3), out, jobs=1))
    assert [row["square"] for row in rows] == [0, 1, 4]
    assert len(out.read_text().splitlines()) == 4


def test_a_new_column_widens_the_file(tmp_path):
    out = tmp_path / "rows.csv"
    list(run_bench(TOY, range(1), out, jobs=1))
    wide = replace(TOY, run=lambda cell: {"square": cell["seed"] ** 2, "sign": "plus"})
    rows = list(run_bench(wide, range(2), out, jobs=1))
    assert out.read_text().splitlines()[0] == "seed,square,seconds,jobs,version,torch,machine,sign"
    assert [row.get("sign") for row in rows] == [None, "plus"]
    assert list(run_bench(wide, range(2), out, jobs=1)) == rows
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "rows.csv.lock"}


def test_seconds_are_those_that_a_run_gives_or_those_it_took(tmp_path):
    own = replace(TOY, run=lambda cell: {"seconds": 12.345, "after": 1})
    (row,) = run_bench(own, [0], None, jobs=1)
    expected = {"seed": 0, "seconds": 12.35, "after": 1, "jobs": 1}
    assert row == expected | environment()  # rounded as 12.345 is stored
    (row,) = run_bench(TOY, [0], None, jobs=1)
    assert 0 <= row["seconds"] < 60


def test_a_bench_is_narrowed_by_any_of_one_key_and_all_keys():
    def left(*only):
        return [(c["task"], c["seed"]) for c in with_filter(NAMED, only).cells(range(3))]

    assert len(left()) == 6
    assert left("task=in*") == [("inner", 0), ("inner", 1), ("inner", 2)]
    assert left("task=*er", "seed=[02]") == [("inner", 0), ("inner", 2), ("outer", 0), ("outer", 2)]
    assert left("seed=0", "seed=2", "task=outer", "share=2") == [("outer", 0), ("outer", 2)]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("seed", "--only takes key=value, such as seed=0; got seed"),
        ("sead=1", "no cell has sead; there are task, seed, share"),
        ("task=iner", "no cell has task = iner; there are inner, outer"),
        ("seed=7", "no cell has seed = 7; there are 0, 1"),
    ],
)
def test_what_narrows_to_nothing_is_explained(only, message):
    with pytest.raises(DataError, match=message):
        with_filter(NAMED, [only]).cells(range(2))


RULED = {"estimate": 10.0, "standard_error": 0.1, "truth": 10.0, "oracle": 10.0, "seconds": 9.0}
RULED |= {"seed": 0, "preset": "auto", "task": "some", "jobs": 1}
JUDGED = {"family": "some", "half": "choose", "source": "some", "n": 5_000, "oracle_error": 0.1}
JUDGED |= {**RULED, "low": 9.9, "high": 10.1, "cpu": 5.0}
ROWS = {
    "speed": ({"limit_ms": 0.8, "deminat_ms": 1.0, "plain_ms": 2.5}, {"deminat_ms": 5.0}),
    "infomax": (
        {"units": 256, "limit_ms": 8.0, "deminat_ms": 9.0, "images_per_second": 7.0},
        {"deminat_ms": 17.0},
    ),
    "cells": ({"training": "mine", "limit_ms": 0.8, "cell_ms": 1.0}, {"cell_ms": 2.0}),
    "waiting": ({"sign": 0.5, "answer": 8.0, "load": 2.0}, {"answer": 20.0}),
    "cap": ({"estimate": 7.0, "batch": 16}, {"estimate": 2.0}),
    "alpha": ({"estimate": 2.0, "standard_error": 0.1, "seed": 0}, {"estimate": 3.0}),
    "independent": ({"estimate": 0.001}, {"estimate": 0.5}),
    "bmi": (RULED, {"estimate": 9.0}),
    "highmi": (RULED, {"estimate": 5.0}),
    "mixed": ({**RULED, "case": "some"}, {"estimate": 9.9}),
    "conditional": ({**RULED, "case": "some"}, {"estimate": 9.9}),
    "wild": (JUDGED, {"estimate": 9.0}),
    "plasmode": (JUDGED, {"estimate": 8.0}),
    "power": (
        {"simulation": "linear", "columns": 1, "samples": 9, "power": 0.95, "milliseconds": 1.0}
        | {"n": 100, "seed": 0},
        {"power": 0.5},
    ),
    "given": (
        {"method": "deminat", "family": "chain", "n": 2_000, "runs": 100, "rejected": 5}
        | {"cpu": 0.05, "seed": 0},
        {"rejected": 20},
    ),
    "pairs": (
        {"kind": "error", "n": 1_000, "error": 0.04, "ksg": 0.05, "own_cpu": 0.001, "ksg_cpu": 0.1},
        {"error": 0.2},
    ),
    "selection": (
        {"table": "single", "target": "number", "n": 500, "effects": 6}
        | {"method": "mrmr", "hits": 6, "false": 0, "cpu": 0.1},
        {"hits": 1},
    ),
    "trust": ({"case": "some", "n": 200, "runs": 500, "rejected": 25}, {"rejected": 80}),
}


def rows_of(name, **changed):
    row = {**ROWS[name][0], **changed}
    if name == "cells":
        return [{**row, "at_once": n} for n in (1, 2)]
    if name == "alpha":
        return [{**ROWS[name][0], "alpha": 0.5}, {**row, "alpha": 0.9}]
    if name == "bmi":
        return [{**row, "n": n} for n in _BMI_LIMITS]
    if name == "selection":
        return [row, {**ROWS[name][0], "method": "scikit-learn", "hits": 3}]
    if name == "trust":
        return [{**row, "promise": promise} for promise in ("level", "copies", "groups", "bound")]
    if name == "given":
        peer = {**ROWS[name][0], "method": "rcit"}
        return [{**r, "dependence": d} for r in (row, peer) for d in SHAPES]
    if name == "highmi":
        return [{**row, "n": 32_000, "family": family} for family in _ALLOWED]
    return [row]


def test_tables_of_pairs_are_judged_too():
    good = [
        {"kind": "null", "n": 1_000, "found": 0},
        {"kind": "time", "task": "2000-columns", "n": 1_000, "whole": 20.0, "gigabytes": 1.0},
    ]
    bad = [{**row, "found": 3, "whole": 3_000.0} for row in good]
    assert [line[:4] for line in BENCHES["pairs"].verdict(good)] == ["ok  "] * 3
    assert [line[:4] for line in BENCHES["pairs"].verdict(bad)] == ["MISS"] * 3


def test_a_cell_of_pairs_is_measured():
    cells = BENCHES["pairs"].cells([0])
    assert {cell["kind"] for cell in cells} == {"error", "null", "time"}
    row = BENCHES["pairs"].run({**cells[0], "n": 200})
    assert 0 <= row["error"] < 0.5
    assert row["own_cpu"] < row["ksg_cpu"] * 50


def test_power_is_measured_on_the_samples_of_a_folder(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(5, 50, 1))
    np.savez(tmp_path / "50_1.npz", linear_x=x, linear_y=x)
    cell = {"simulation": "linear", "n": 50, "columns": 1, "seed": 0}
    monkeypatch.delenv("DEMINAT_HYPPO", raising=False)
    with pytest.raises(DataError, match="hyppo_samples"):
        BENCHES["power"].run(cell)
    monkeypatch.setenv("DEMINAT_HYPPO", str(tmp_path))
    assert BENCHES["power"].run(cell)["power"] == 1


@pytest.mark.parametrize("name", BENCHES)
def test_every_verdict_can_hold_and_can_fail(name):
    good, bad = (
        BENCHES[name].verdict(rows_of(name)),
        BENCHES[name].verdict(rows_of(name, **ROWS[name][1])),
    )
    assert all(line.startswith("ok") for line in good)
    assert any(line.startswith("MISS") for line in bad)


def test_every_bench_is_named_in_the_help():
    words = CliRunner().invoke(app, ["bench", "--help"], terminal_width=200).output
    assert all(re.search(rf"\b{name}\b", words) for name in BENCHES)


def test_two_cells_at_a_time_may_be_a_little_slower():
    alone, both = ({**ROWS["cells"][0], "at_once": n} for n in (1, 2))
    good = BENCHES["cells"].verdict([alone, {**both, "cell_ms": 1.1}])
    bad = BENCHES["cells"].verdict([alone, {**both, "cell_ms": 1.2, "limit_ms": 1.0}])
    assert [line[:4] for line in good + bad] == ["ok  ", "ok  ", "ok  ", "MISS"]
    assert "20% longer (at most 15%); matrix products alone 25%" in bad[1]


def test_the_steps_of_timed_cells_are_those_of_their_training():
    for training, timed in TIMED.items():
        if timed.run is not run_gaussian:
            continue
        settings = estimator_for({"demi(0.5)": "demi"}.get(training, training), "paper").training
        assert settings.epochs * (timed.cell["n"] // settings.batch) == timed.steps
        pairs = settings.batch if training == "gm" else settings.batch * (settings.negatives + 1)
        assert {rows for rows, _, _ in timed.layers[1:]} == {pairs}
    assert TIMED["longrun"].cell["steps"] == TIMED["longrun"].steps
    images = TIMED["consistency"]
    settings = _training(images.cell)
    assert settings.epochs * (images.cell["images"] // settings.batch) == images.steps


def test_the_layers_of_the_limit_of_flows_and_images_are_theirs():
    weights = [w for w in FlowRatio(20, 20).parameters() if w.dim() == 2]
    assert sorted(w.shape[::-1] for w in weights) == sorted(s[1:] for s in TIMED["gm"].layers)
    weights = [w for w in ConvCritic((1, 28, 28), (1, 28, 28)).parameters() if w.dim() == 2]
    assert [w.shape[::-1] for w in weights] == [s[1:] for s in TIMED["consistency"].layers]


@pytest.mark.parametrize("name", ["longrun", "consistency"])
def test_a_timed_cell_can_be_run(name):
    timed = TIMED[name]
    less = {"steps": 20} if name == "longrun" else {"epochs": 1, "images": 128}
    rows = timed.run({**timed.cell, **less, "draw": 0})
    assert rows[0]["seconds"] > 0


def test_the_plain_loop_pairs_each_row_with_the_next():
    y = torch.randn(7, 3)
    assert torch.equal(_shifted(y), y.roll(-1, 0))


def test_the_layers_of_the_image_limit_are_those_of_the_model():
    (cell, *_) = BENCHES["infomax"].cells([0])
    row = BENCHES["infomax"].run({**cell, "units": 16, "steps": 1})
    assert row["images_per_second"] == pytest.approx(64e3 / row["deminat_ms"])
    encoder = Encoder()
    weights = [tuple(m.weight.shape) for m in encoder.modules() if isinstance(m, nn.Conv2d)]
    assert weights == [(o, i, 4, 4) for i, o, _ in infomax_step._CONVOLUTIONS]
    assert [encoder.hidden[0].weight.shape, encoder.last.weight.shape] == [(1024, 4096), (64, 1024)]


def test_cells_are_numbers_or_names_and_differ():
    for bench in BENCHES.values():
        cells = bench.cells(range(3))
        assert len({tuple(cell.items()) for cell in cells}) == len(cells)
        assert all(isinstance(v, int | float | str) for cell in cells for v in cell.values())


# Known tasks


def misses(name, rows):
    """What the lines that do not hold speak of."""
    lines = [line for line in BENCHES[name].verdict(rows) if line.startswith("MISS")]
    return [line.removeprefix("MISS ").split(":")[0] for line in lines]


@pytest.mark.parametrize(
    ("n", "changed", "missed"),
    [
        (1_000, {"estimate": 9.94}, []),
        (1_000, {"estimate": 9.92}, ["auto, n=1000"]),
        (5_000, {"estimate": 9.96}, ["auto, n=5000"]),
        (10_000, {"estimate": 9.97}, ["auto, n=10000"]),
        (10_000, {"estimate": 9.89}, ["auto, n=10000", "worst task at n=10000"]),
        (10_000, {"seconds": 21.0}, ["mean time of a task at n=10000"]),
        (10_000, {"seconds": 39.0, "jobs": 2}, []),
        (1_000, {"seconds": 21.0}, []),
        (1_000, {"estimate": 10.9}, ["auto, n=1000", "overshoot"]),
        (1_000, {"estimate": 10.7}, ["auto, n=1000"]),
        (10_000, {"estimate": 99.0, "preset": "paper"}, []),
    ],
)
def test_bmi_misses_what_it_should(n, changed, missed):
    assert misses("bmi", [{**RULED, "n": n, **changed}]) == missed


def test_bmi_averages_absolute_errors_over_tasks_and_errors_over_seeds():
    row = {**RULED, "n": 10_000}
    rows = [{**row, "estimate": 10.2}, {**row, "estimate": 9.8, "seed": 1}]
    assert misses("bmi", rows) == ["auto, n=10000"]
    (line,) = [line for line in BENCHES["bmi"].verdict(rows) if "mean absolute" in line]
    assert "0.2000 nats" in line
    assert "2 rows" in line


def test_the_papers_preset_has_no_limit():
    (line,) = BENCHES["bmi"].verdict([{**RULED, "n": 1_000, "preset": "paper", "estimate": 9.0}])
    assert (
        line == "     paper, n=1000: mean absolute error 1.0000 nats, worst some by -1.0000, 1 rows"
    )


@pytest.mark.parametrize(
    ("family", "truth", "held", "missed"),
    [
        ("gaussian", 10.0, 9.71, 9.69),
        ("cubic", 2.0, 1.91, 1.89),
        ("tre", 80.0, 77.7, 77.5),
        ("offgaussian", 20.0, 18.1, 17.9),
        ("mixing", 2.0, 1.71, 1.69),
        ("independent", 0.0, 0.019, -0.021),
    ],
)
def test_families_have_their_limits(family, truth, held, missed):
    row = {**RULED, "n": 32_000, "family": family, "truth": truth}
    assert misses("highmi", [{**row, "estimate": held}]) == []
    assert misses("highmi", [{**row, "estimate": missed}]) == [family]
    averaged = [{**row, "estimate": held}, {**row, "estimate": truth, "seed": 1}]
    assert misses("highmi", averaged) == []


def test_one_row_that_overshoots_is_found():
    row = {**RULED, "n": 32_000, "family": "mixing"}
    rows = [{**row, "seed": s, "estimate": 9.9} for s in range(5)]
    rows.append({**row, "seed": 5, "estimate": 10.81})
    assert misses("highmi", rows) == ["overshoot"]
    assert "seed 5, 10.810 for 10.000 nats" in BENCHES["highmi"].verdict(rows)[-1]


def test_the_cells_are_known_tasks():
    families = {(c["family"], c["task"], c["n"]) for c in BENCHES["highmi"].cells([0])}
    counts = {f: sum(family == f for family, *_ in families) for f in _ALLOWED}
    assert counts == {
        "gaussian": 16,
        "cubic": 16,
        "tre": 4,
        "offgaussian": 12,
        "mixing": 18,
        "independent": 6,
    }
    assert len(BENCHES["bmi"].cells([0])) == 40 * 3 * 2
    # A mixture finds its truth by sampling: a second each, so only the others are all made.
    for name in {name for _, name, _ in families if "mixture" not in name or "10d" in name}:
        assert tasks.get(name).name == name


def test_a_row_has_the_truth_and_the_oracle(monkeypatch):
    seen = []

    def estimate(x, y, **options):
        seen.append((x, options))
        return MIResult(2.0, 0.5, len(x), "demi", np.full(len(x), 2.0))

    monkeypatch.setattr(known_tasks, "estimate", estimate)
    cell = {"task": "gaussian-1d-0nats", "n": 1_000, "seed": 3, "preset": "auto"}
    row, _, _ = (BENCHES["bmi"].run({**cell, "seed": seed}) for seed in (3, 3, 4))
    assert list(row) == ["estimate", "standard_error", "truth", "oracle", "seconds"]
    assert (row["estimate"], row["truth"], row["oracle"]) == (2.0, 0.0, 0.0)
    (x, options), (same, _), (other, _) = seen
    assert options == {"preset": "auto", "seed": 3, "n_jobs": 1}
    assert np.array_equal(x, same)
    assert not np.array_equal(x, other)


# Mixed and conditional


@pytest.mark.parametrize("case", ["category-category", "mixed"])
def test_labels_are_given_as_categories(case, monkeypatch):
    seen = []

    def estimate(x, y, **options):
        seen.append((x, y))
        return MIResult(2.0, 0.5, len(x), "demi", np.full(len(x), 2.0))

    monkeypatch.setattr(mixed_conditional, "estimate", estimate)
    row = BENCHES["mixed"].run({"case": case, "n": 1_000, "seed": 3})
    ((x, y),) = seen
    task = tasks.mixed_tasks()[case]
    for side, labels in ((x, task.labels_x), (y, task.labels_y)):
        assert tuple(i for i, kind in enumerate(side.dtypes) if kind == pl.Enum) == labels
    assert abs(row["oracle"] - row["truth"]) < 0.3


def test_a_conditional_row_has_its_exact_value(monkeypatch):
    def by_covariance(x, y, given, **options):
        weight = np.linalg.lstsq(given, np.hstack([x, y]), rcond=None)[0]
        rest = np.hstack([x, y]) - given @ weight
        mi = estimate(rest[:, : x.shape[1]], rest[:, x.shape[1] :], method="gaussian").mi
        return MIResult(mi, 0.5, len(x), "gaussian", np.full(len(x), mi))

    monkeypatch.setattr(mixed_conditional, "estimate", by_covariance)
    for cell in BENCHES["conditional"].cells([0]):
        row = BENCHES["conditional"].run(cell)
        assert abs(row["estimate"] - row["truth"]) < 0.05


# Trust


def promised(promise, **row):
    return BENCHES["trust"].verdict(
        [{"promise": promise, "case": "some", "n": 1, "runs": 100, **row}]
    )


@pytest.mark.parametrize(
    ("promise", "good", "bad"),
    [
        ("level", {"rejected": 5}, {"rejected": 0}),
        ("level", {"rejected": 5}, {"rejected": 9}),
        ("copies", {"rejected": 5}, {"rejected": 12}),
        ("groups", {"rejected": 5}, {"rejected": 12}),
        ("series", {"rejected": 10, "warned": 100}, {"rejected": 11, "warned": 100}),
        ("series", {"rejected": 10, "warned": 100}, {"rejected": 10, "warned": 99}),
        ("power", {"rejected": 95}, {"rejected": 94}),
        ("columns", {"rejected": 7}, {"rejected": 8}),
        ("bound", {"rejected": 5}, {"rejected": 6}),
        ("interval", {"rejected": 10, "alarmed": 5}, {"rejected": 11, "alarmed": 5}),
        ("interval", {"rejected": 10, "alarmed": 5}, {"rejected": 10, "alarmed": 6}),
        ("outside", {"rejected": 20, "warned": 19}, {"rejected": 20, "warned": 18}),
        ("time", {"ratio": 1.9}, {"ratio": 2.1}),
    ],
)
def test_promises_hold_or_are_broken(promise, good, bad):
    assert all(line.startswith("ok") for line in promised(promise, **good))
    assert any(line.startswith("MISS") for line in promised(promise, **bad))


def test_batches_of_a_promise_are_added_up():
    rows = [
        {"promise": "level", "case": "coin", "n": 200, "runs": 50, "rejected": k, "batch": k}
        for k in (0, 5)
    ]
    (line,) = BENCHES["trust"].verdict(rows)
    assert line.startswith("ok   level, coin, n=200: 5.0% false alarms")
    assert line.endswith("100 runs")


@pytest.mark.parametrize(
    "promise", ["level", "columns", "copies", "groups", "series", "power", "bound"]
)
def test_every_promise_can_be_run(promise, monkeypatch):
    few = replace(trust._PROMISES[promise], batches=1, runs=2)
    monkeypatch.setitem(trust._PROMISES, promise, few)
    cells = with_filter(BENCHES["trust"], [f"promise={promise}"]).cells([0])
    row = BENCHES["trust"].run({**cells[0], "n": 200})
    assert row["runs"] == 2
    assert 0 <= row["rejected"] <= 2


def test_false_warnings_are_named():
    row = {"rejected": 0, "alarmed": 2, "codes": "copies copies range"}
    assert promised("interval", **row)[-1].endswith("100 runs: copies 2, range 1")


def test_runs_of_batches_differ():
    (first, second, *_) = with_filter(BENCHES["trust"], ["promise=power"]).cells([0])
    draws = {float(rng.normal()) for cell in (first, second) for rng in trust._streams(cell)}
    assert len(draws) == 100
