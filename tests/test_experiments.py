"""The paper's experiments: their cells, rows, ratios, tables, figures, and the command."""

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from common import write_idx
from deminat import KSG, MLPCritic
from deminat.cli import app
from deminat.data.transforms import Identity
from deminat.errors import DataError, TrainingError
from deminat.estimators.neural import Estimator
from deminat.estimators.registry import estimator_for
from deminat.runtime.environment import environment
from deminat.runtime.rowstore import SqliteStore, key_of
from deminat.runtime.sweep import Sweep, filter_cells
from deminat.studies.paper.claims import claims
from deminat.studies.paper.consistency import (
    ConsistencyStudy,
    _pairs,
    _training,
    consistency_setting,
    consistency_tables,
    ratios,
    run_consistency,
)
from deminat.studies.paper.encoder import TRAINED
from deminat.studies.paper.experiments import EXPERIMENTS, read_rows, run_paper
from deminat.studies.paper.figures import (
    COLOURS,
    draw_consistency,
    draw_gaussian,
    draw_longrun,
    draw_notebook,
    method_rank,
)
from deminat.studies.paper.gaussian import (
    _TRAINED,
    HELD_OUT,
    GaussianStudy,
    gaussian_tables,
    run_gaussian,
)
from deminat.studies.paper.infomax import InfoMaxStudy
from deminat.studies.paper.longrun import LongRunStudy, longrun_tables, run_longrun
from deminat.studies.paper.notebook import NotebookStudy, notebook_tables, run_notebook
from deminat.studies.paper.tables import Table, latex, markdown, spread
from deminat.training.callbacks import History

TINY = GaussianStudy(settings=(("normal", 20, 32_000),), reps=1, scale=0.01)


def test_the_gaussian_study_is_the_papers():
    cells = GaussianStudy().cells()
    assert len({key_of(cell) for cell in cells}) == len(cells)
    tables = {(c["kind"], c["d"], c["n"]) for c in cells}
    assert len(tables) == 13
    assert ("cubic", 100, 80_000) not in tables
    figure = {(kind, d, 160_000) for kind in ("normal", "cubic") for d in (20, 50, 100)}
    assert figure <= tables
    assert {c["draw"] for c in cells} == set(range(10))
    assert {c["truth"] for c in cells if c["d"] == 20} == {2, 5, 10, 15, 20, 30}
    assert {c["truth"] for c in cells if c["d"] > 20} == {2, 10, 20, 30, 40, 60}


@pytest.mark.parametrize(
    ("training", "methods"),
    [
        ("demi(0.5)", ["demi", "ccmi", "smile(tau=1)", "smile(tau=5)", "smile(tau=inf)"]),
        ("demi(0.25)", ["demi(alpha=0.25)"]),
        ("smile(all pairs)", [f"smile(tau={tau}, all pairs)" for tau in (1, 5, "inf")]),
        ("mine", ["mine"]),
        ("dv", ["dv"]),
        ("mine(rate=0.001)", ["mine(rate=0.001)"]),
        ("gaussian", ["gaussian"]),
    ],
)
def test_one_training_gives_all_its_readouts(training, methods):
    (cell,) = filter_cells(TINY.cells(), [f"training={training}", "truth=2"])
    rows = run_gaussian(cell)
    assert [row["method"] for row in rows] == methods
    for row in rows:
        assert row["error"] == pytest.approx(row["truth"] - row["estimate"])
        assert cell.items() <= row.items()
    json.dumps(rows)


def test_rows_of_a_cell_are_the_same_wherever_it_is_run():
    (cell,) = filter_cells(TINY.cells(), ["training=demi(0.5)", "truth=2"])
    torch.manual_seed(1)
    once = run_gaussian(cell)
    torch.manual_seed(2)
    second = run_gaussian(cell)
    assert [r["estimate"] for r in once] == [r["estimate"] for r in second]


@pytest.mark.usefixtures("bfloat16")
def test_rows_name_their_precision_which_hardly_changes_estimates():
    cells = replace(TINY, precision="bfloat16").cells()
    assert {cell["training"] for cell in cells} == {*_TRAINED, "gm"}
    (low,) = filter_cells(cells, ["training=infonce", "truth=2"])
    before = torch.get_float32_matmul_precision()
    (row,) = run_gaussian(low)
    assert torch.get_float32_matmul_precision() == before
    assert (row["method"], row["precision"]) == ("infonce", "bfloat16")
    (full,) = run_gaussian({key: low[key] for key in low if key != "precision"})
    assert 0 < abs(row["estimate"] - full["estimate"]) < 0.05
    with pytest.raises(DataError, match="float32 or bfloat16"):
        GaussianStudy(precision="float16")


@pytest.mark.usefixtures("bfloat16")
def test_rows_of_both_precisions_are_imported(tmp_path):
    experiment = EXPERIMENTS["gaussian"]
    only = ["training=demi(0.25)", "truth=2"]
    full = filter_cells(TINY.cells(), only)
    low = filter_cells(replace(TINY, precision="bfloat16").cells(), only)
    run_paper("gaussian", experiment, Sweep(full, run_gaussian), tmp_path)
    both = run_paper("gaussian", experiment, Sweep(low, run_gaussian), tmp_path)
    assert {row.get("precision") for row in both} == {None, "bfloat16"}
    (table,) = gaussian_tables(both)
    assert [name for name, _ in table.lines] == ["demi(alpha=0.25)", "demi(alpha=0.25)(bfloat16)"]
    for file in tmp_path.glob("*.sqlite*"):
        file.unlink()
    for cells in (low, full):
        assert len(run_paper("gaussian", experiment, Sweep(cells, None), tmp_path)) == 2


def test_the_settings_are_those_of_the_paper():
    halved: tuple[float, ...] = (0.3, 0.65)
    for training, negatives, halve_at in [
        ("demi", 1, halved),
        ("smile", 1, halved),
        ("mine", 1, halved),
        ("smile-all-pairs", 63, ()),  # as its authors train it
        ("dv", 63, ()),
        ("infonce", 63, ()),
    ]:
        estimator = estimator_for(training, "paper")
        settings = estimator.training
        assert (settings.batch, settings.negatives, settings.epochs) == (64, negatives, 20)
        assert settings.in_batch
        assert (settings.learning_rate, settings.halve_at) == (5e-4, halve_at)
        assert estimator.scaling is Identity
        assert settings.stopping is None is settings.clip is settings.average
        assert not settings.cosine
        assert settings.weight_decay == 0
        assert estimator.critic is MLPCritic
        assert not estimator.correct
    sizes = [tuple(w.shape) for w in MLPCritic((20,), (20,)).parameters() if w.ndim == 2]
    assert sizes == [(256, 40), (256, 256), (1, 256)]
    assert HELD_OUT == 10_240


def test_the_notebook_reports_the_loss_of_its_last_epoch():
    cells = NotebookStudy(reps=1, scale=0.004).cells()
    for variant in ("notebook", "drawn"):
        (cell,) = filter_cells(cells, [f"variant={variant}", "truth=5"])
        (row,) = run_notebook(cell)
        assert cell.items() <= row.items()
        assert 0.1 < row["loss"] / (0.693 * 10) < 1  # a sum over the ten steps of an epoch
        assert (row["printed"], row["released"]) == (261.7, 4.576)
    loss, estimates = notebook_tables([row])
    assert loss.lines[0] == ("printed", ("261.7",))
    assert estimates.lines[0] == ("released checkpoint", ("4.576",))
    assert len(draw_notebook([row]).axes) == 2


def test_every_method_has_its_colour():
    read = [o.name for readouts in [*_TRAINED.values(), *TRAINED.values()] for o in readouts]
    others = ["gm", "auto", "gaussian", KSG().name, "supervised"]
    places = {name: method_rank(name) for name in [*read, *others]}
    assert len(set(places.values())) == len(places)
    assert set(places) <= set(COLOURS)


def test_long_runs_read_fresh_pairs_before_each_step():
    (cell,) = LongRunStudy(truths=(2.0,), d=2, batch=32, steps=60, every=5, layers=(2,)).cells()
    rows = run_longrun(cell)
    assert [row["method"] for row in rows] == [
        *("demi", "smile(tau=1)", "smile(tau=5)", "smile(tau=inf)")
    ]
    demi, *_, plain = rows
    assert demi["step"] == list(range(0, 60, 5))
    assert len(demi["estimate"]) == 12
    assert abs(demi["estimate"][0]) < 0.2  # nothing is known before the first step
    assert demi["estimate"][-1] > 0.1
    assert plain["estimate"][0] == pytest.approx(0, abs=0.2)


def test_a_long_run_finds_what_there_is():
    (cell,) = LongRunStudy(truths=(1.0,), d=2, batch=16, steps=1_500, layers=(3,)).cells()
    demi = run_longrun(cell)[0]
    assert np.mean(demi["estimate"][-60:]) == pytest.approx(1.0, abs=0.15)


@pytest.fixture
def tiny_mnist(tmp_path, monkeypatch):
    """A set of 80 and 70 noisy images in the publisher's form, found by the environment."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    for split, n in (("train", 80), ("t10k", 70)):
        write_idx(folder / f"{split}-images-idx3-ubyte", rng.integers(0, 256, (n, 28, 28)))
        write_idx(folder / f"{split}-labels-idx1-ubyte", rng.integers(0, 10, n))
    monkeypatch.setenv("DEMINAT_DATA", str(folder.parent))


def consistency_cells(**changed):
    study = ConsistencyStudy(rows=(3, 28), trainings=("demi(0.5)",), epochs=2, check=False)
    return replace(study, **changed).cells()


@pytest.mark.usefixtures("tiny_mnist")
@pytest.mark.parametrize("test", ["monotonicity", "processing", "additivity"])
def test_consistency_runs_on_images(test):
    cell = filter_cells(consistency_cells(), [f"test={test}", "t=3"])[0]
    rows = run_consistency(cell)
    methods = ["demi", "smile(tau=1)", "smile(tau=5)", "smile(tau=inf)"]
    assert [row["method"] for row in rows] == methods
    assert all(math.isfinite(row["estimate"]) for row in rows)


@pytest.mark.usefixtures("tiny_mnist")
def test_infonce_reads_at_most_its_ceiling():
    cells = consistency_cells(trainings=("infonce",), contrast=3)
    (row,) = run_consistency(filter_cells(cells, ["test=monotonicity", "t=28"])[0])
    assert row["method"] == "infonce"
    assert row["estimate"] <= math.log(4) + 1e-6


@pytest.mark.usefixtures("tiny_mnist", "bfloat16")
def test_images_in_low_precision():
    only = ["test=monotonicity", "t=28"]
    (full,) = filter_cells(consistency_cells(epochs=10), only)
    (low,) = filter_cells(consistency_cells(epochs=10, precision="bfloat16"), only)
    before = torch.get_float32_matmul_precision()
    rows = [run_consistency(cell)[0] for cell in (full, low)]
    assert torch.get_float32_matmul_precision() == before
    assert 0 < abs(rows[0]["estimate"] - rows[1]["estimate"]) < 0.1
    assert consistency_setting(low) == consistency_setting(full)  # they may stand side by side
    (table,) = consistency_tables([{**row, "ratio": 1.0} for row in rows])
    assert [name for name, _ in table.lines] == ["demi", "demi(bfloat16)"]
    with pytest.raises(DataError, match="float32 or bfloat16"):
        ConsistencyStudy(precision="float16")


def test_missing_images_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("DEMINAT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="DEMINAT_DATA"):
        run_consistency(consistency_cells()[0])


def test_the_command_asks_for_missing_images_once(tmp_path, monkeypatch):
    monkeypatch.setenv("DEMINAT_DATA", str(tmp_path / "none"))
    result = called("consistency", "--only", "training=demi*", "--jobs", 1, "--out", tmp_path)
    assert isinstance(result.exception, TrainingError)
    message = str(result.exception)
    assert message.startswith("all 27 cells failed: no ")
    assert "DEMINAT_DATA" in message
    assert not list(tmp_path.glob("none*"))  # nothing is downloaded


def test_ratios_divide_by_what_they_should():
    same = {"method": "demi", "training": "demi(0.5)", "epochs": 1, "contrast": 1, "images": 100}
    same |= {"draw": 0, "check": True, "standard_error": 0.1}
    rows = [
        {**same, "test": "monotonicity", "t": 28, "estimate": 8.0},
        {**same, "test": "monotonicity", "t": 3, "estimate": 2.0},
        {**same, "test": "processing", "t": 3, "estimate": 2.2},
        {**same, "test": "additivity", "t": 3, "estimate": 3.8},
        {**same, "test": "additivity", "t": 9, "estimate": 3.8},
        {**same, "test": "processing", "t": 3, "contrast": 2, "estimate": 3.8},
        {**same, "test": "processing", "t": 3, "precision": "bfloat16", "estimate": 3.8},
    ]
    found = [r["ratio"] for r in ratios(rows)]
    assert found[:4] == pytest.approx([1.0, 0.25, 1.1, 1.9])
    assert found[4:] == [None] * 3  # nothing to divide by yet
    errors = [r["ratio_error"] for r in ratios(rows)]
    few, more = 0.1 / 8 * math.hypot(1, 0.25), 0.1 / 2 * math.hypot(1, 1.1)
    assert errors[:3] == pytest.approx([0, few, more])
    assert errors[4:] == [None] * 3
    noise = {**same, "test": "monotonicity", "t": 3, "estimate": 0.1}
    assert ratios([noise, {**noise, "test": "additivity"}])[1]["ratio"] is None


def test_infonce_is_called_by_what_limits_it():
    row = {"method": "infonce", "training": "infonce", "contrast": 3, "epochs": 1, "images": 100}
    row |= {"draw": 0, "check": True, "standard_error": 0.1, "estimate": 1.0, "t": 28}
    once = ratios([{**row, "test": "monotonicity"}])
    assert [r["method"] for r in once] == ["infonce(k=3)"]
    assert ratios(once) == once  # also when it comes back from a file
    assert method_rank("infonce(k=3)") == method_rank("infonce")


def test_tables_have_means_and_spreads():
    rows = [
        {"method": "demi", "truth": 10.0, "error": 1.0},
        {"method": "demi", "truth": 10.0, "error": 2.0},
        {"method": "mine", "truth": 2.0, "error": -1.0},
    ]
    table = spread(rows, "errors", "truth", "error")
    assert table.columns == ("2", "10")
    assert dict(table.lines) == {"demi": ("", "1.50 ± 0.71"), "mine": ("-1.00", "")}


def test_tables_are_markdown_and_latex():
    table = Table("100% & more", "method", ("2",), (("a_b", ("1.00 ± 0.10",)),))
    assert "| a_b | 1.00 ± 0.10 |" in markdown([table])
    assert markdown([table]).startswith("### 100% & more\n\n| method | 2 |\n| --- | --- |\n")
    assert r"\caption{100\% \& more}" in latex([table])
    assert r"a\_b & 1.00 $\pm$ 0.10 \\" in latex([table])
    assert r"\begin{tabular}{lr}" in latex([table])


def test_errors_beyond_any_truth_do_not_hide_the_others():
    cell = {"kind": "normal", "d": 20, "n": 100, "truth": 10.0}
    near, far = {**cell, "method": "demi", "error": 1.0}, {**cell, "method": "mine", "error": 2500}
    (ax,) = draw_gaussian([near, far]).axes
    assert ax.get_ylim()[1] < 15
    assert [text.get_text() for text in ax.texts] == ["mine reads -2,490 of 10"]
    (ax,) = draw_gaussian([far]).axes
    assert ax.get_ylim()[1] < 15
    high = {**far, "error": -30.0}
    (ax,) = draw_gaussian([near, high]).axes
    assert ax.get_ylim()[0] > -5
    assert [text.get_text() for text in ax.texts] == ["mine reads 40 of 10"]
    (ax,) = draw_gaussian([near]).axes
    assert not ax.texts


def test_what_reads_the_same_is_drawn_once():
    row = {"kind": "normal", "d": 50, "n": 100, "truth": 10.0, "error": 1.0}
    twins = ["ccmi", "demi(alpha=0.25)"]
    names = ["infonce", "smile(tau=inf)", "demi"]
    for methods, drawn in [(twins, twins[::-1]), ([*names, *twins], names[::-1])]:
        figure = draw_gaussian([{**row, "method": method} for method in methods])
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == drawn


def test_a_table_that_the_paper_has_not_is_left_blank():
    row = {"kind": "normal", "d": 50, "n": 100, "truth": 10.0, "method": "demi", "error": 1.0}
    panels = draw_gaussian([row, {**row, "kind": "cubic"}, {**row, "d": 100}]).axes
    assert [bool(ax.get_title()) for ax in panels] == [True, True, True, False]
    assert [bool(ax.get_xlabel()) for ax in panels] == [False, True, True, False]


def test_figures_show_what_there_is():
    curve = {"method": "demi", "truth": 10.0, "step": [0, 1, 2], "estimate": [1.0, 2.0, 9.0]}
    figure = draw_longrun([curve, {**curve, "method": "smile(tau=1)"}])
    assert [ax.get_title() for ax in figure.axes] == ["demi, 10 nats", "smile(tau=1), 10 nats"]
    same = {"method": "demi", "ratio": 1.9, "ratio_error": 0.25}
    points = [{**same, "test": "additivity", "t": t} for t in (3, 6)]
    (ax,) = draw_consistency(points).axes
    assert ax.get_legend_handles_labels()[1] == ["demi"]
    assert ax.get_xticks().tolist() == [3, 6]
    (bars,) = ax.containers
    assert np.ptp(bars[2][0].get_segments()[0][:, 1]) == pytest.approx(0.5)


def test_curves_are_drawn_raw_and_smoothed_and_their_ends_tabulated():
    steps = list(range(0, 4_000, 20))
    curve = {"method": "demi", "truth": 10.0, "step": steps, "estimate": [s / 400 for s in steps]}
    (ax,) = draw_longrun([curve]).axes
    truth, raw, smooth = [np.asarray(line.get_xydata()) for line in ax.lines]
    assert truth[:, 1].tolist() == [10, 10]
    assert raw[:, 0].tolist() == steps
    # Windows of 4 points, whole ones alone: of a straight line that line.
    assert len(smooth) == len(raw) - 3
    np.testing.assert_allclose(smooth[:, 1], smooth[:, 0] / 400)
    (table,) = longrun_tables([curve])
    assert table.lines == (("demi", (f"{np.mean(curve['estimate'][-20:]):.2f}",)),)


def test_tables_of_consistency_stand_as_the_figures_do():
    row = {"method": "demi", "t": 3, "ratio": 1.0}
    tables = consistency_tables([{**row, "test": t} for t in ("additivity", "monotonicity")])
    assert [table.title.partition(":")[0] for table in tables] == ["monotonicity", "additivity"]


def test_the_sides_of_each_consistency_test():
    images = np.arange(4 * 28 * 28, dtype=np.float32).reshape(4, 28, 28) + 1
    rng = np.random.default_rng(0)

    def sides(test, t):
        return _pairs({"test": test, "t": t}, images, rng)

    x, y = sides("monotonicity", 5)
    assert x.shape == y.shape == (4, 1, 28, 28)
    assert (y[:, 0, :5] == images[:, :5]).all()
    assert (y[:, 0, 5:] == 0).all()
    x, y = sides("processing", 5)
    assert (x == images[:, None]).all()
    assert (y[:, 1, :2] == images[:, :2]).all()
    assert (y[:, 1, 2:] == 0).all()
    x, y = sides("additivity", 28)
    assert (x == y).all()
    assert (x[:, 0] == images).all()
    assert not (x[:, 1] == images).all(axis=(1, 2)).any()  # always another image
    assert sorted(x[:, 1, 0, 0]) == sorted(images[:, 0, 0])


def test_an_epoch_is_a_pass_over_the_images():
    cells = ConsistencyStudy(epochs=5, contrast=3).cells()
    for training, negatives in (("demi*", 1), ("infonce", 3)):
        settings = _training(filter_cells(cells, [f"training={training}"])[0])
        assert (settings.batch, settings.epochs, settings.negatives) == (64, 5, negatives)
        assert settings.halve_at == ()


def test_rows_of_other_settings_are_not_shown_together():
    longrun = EXPERIMENTS["longrun"]
    few, many = (LongRunStudy(steps=steps).cells() for steps in (200, 400))
    assert longrun.alike([*few, *many], many) == many


def test_each_setting_has_a_table_of_its_own():
    cells = [InfoMaxStudy(trainings=("mine",), negatives=k).cells()[0] for k in (0, 5)]
    ends = {"epoch": 100, "fc": 0.6, "output": 0.5, "estimate": 1.0, "method": "mine"}
    rows = [{**cell, **ends, "conv": conv} for cell, conv in zip(cells, (0.8, 0.5), strict=True)]
    tables = EXPERIMENTS["infomax"].all_tables(rows)
    assert [table.lines[0][1][0] for table in tables] == ["80.00", "50.00"]
    assert "with all others as unpaired samples" in tables[0].title
    assert "with 5 of the others as unpaired samples" in tables[1].title


def claimed(words, kind="cubic", **errors):
    """Return what is said of a claim by rows of one point."""
    point = {"kind": kind, "d": 20, "n": 32_000, "truth": 14.0, "draw": 0}
    rows = [{**point, "method": m, "error": e} for m, e in errors.items()]
    alphas = {"low": "demi(alpha=0.25)", "high": "demi(alpha=0.75)", "smile": "smile(tau=5)"}
    rows = [{**row, "method": alphas.get(row["method"], row["method"])} for row in rows]
    found, *_ = [claim for claim in claims(rows) if words in claim.text]
    return found


@pytest.mark.parametrize(
    ("words", "errors", "verdict"),
    [
        ("InfoNCE saturates", {"infonce": 14 - 4.1}, "agrees"),
        ("InfoNCE saturates", {"infonce": 14 - 3.9}, "does not agree"),
        ("InfoNCE saturates", {"demi": 1.0}, "not run"),
        ("smile(tau=5) overestimates", {"smile": 2.0, "demi": 3.0, "kind": "normal"}, "agrees"),
        ("smile(tau=5) overestimates", {"smile": 2.0, "demi": 3.0}, "not run"),
        (
            "smile(tau=5) overestimates",
            {"smile": -1.0, "demi": -2.0, "kind": "normal"},
            "does not agree",
        ),
        ("DEMI is best", {"demi": 1.0, "mine": -0.4, "gm": 9.0}, "agrees"),
        ("DEMI is best", {"demi": 1.0, "mine": -0.2}, "does not agree"),
        ("DEMI is best, or", {"demi": 3.0, "mine": 9.0, "smile": -0.2}, "does not agree"),
        ("DEMI is best of all but", {"demi": 3.0, "mine": 9.0, "smile": -0.2}, "agrees"),
        ("alpha does not matter", {"demi": 1.0, "low": 1.3, "high": 0.7}, "agrees"),
        ("alpha does not matter", {"demi": 1.0, "low": 1.5, "high": 0.7}, "does not agree"),
        ("GM fails on cubic", {"demi": 1.0, "gm": -3.0}, "agrees"),
        ("GM is best on Gaussians", {"demi": 1.0, "gm": -0.5}, "not run"),
    ],
)
def test_claims_are_judged_by_the_rows(words, errors, verdict):
    assert claimed(words, **errors).verdict == verdict


def test_claims_of_several_points_are_counted():
    rows = [
        {"kind": "normal", "d": 20, "n": 32_000, "truth": t, "method": m, "error": e, "draw": d}
        for t, gm in ((2.0, 0.1), (6.0, 0.9))
        for m, e, d in (("demi", 0.5, 0), ("gm", gm + 0.1, 0), ("gm", gm - 0.1, 1))
    ]
    (found,) = [claim for claim in claims(rows) if "GM is best" in claim.text]
    assert found.verdict == "partly"
    assert found.figures == "1 of 2 points; its errors there are +0.10 to +0.90"


def called(*arguments):
    return CliRunner().invoke(app, ["paper", *map(str, arguments)])


def test_the_command_writes_rows_tables_and_figures_and_goes_on(tmp_path):
    part = "--only", "d=20", "--only", "n=160", "--only", "truth=2", "--only", "training=gaussian"
    options = "--scale", 0.001, "--jobs", 1, "--out", tmp_path
    first = called("gaussian", *part, *options, "--reps", 1)
    assert first.exit_code == 0, first.output
    names = {path.name for path in tmp_path.iterdir()}
    wanted = {
        f"gaussian.{suffix}" for suffix in ["sqlite", "csv", "parquet", "md", "tex", "png", "svg"]
    }
    assert wanted <= names
    before = pl.read_csv(tmp_path / "gaussian.csv")
    assert called("gaussian", *part, *options, "--reps", 2).exit_code == 0
    after = pl.read_csv(tmp_path / "gaussian.csv")
    assert len(after) == 2 * len(before)
    kept = after.filter(pl.col("draw") == 0)
    assert kept.equals(before)  # seconds included: it was not run again
    assert pl.read_parquet(tmp_path / "gaussian.parquet").equals(after)


def test_rows_of_a_clone_are_imported(tmp_path):
    cells = LongRunStudy(truths=(2.0, 3.0), d=2, steps=20, every=5).cells()
    experiment = EXPERIMENTS["longrun"]
    first = run_paper("longrun", experiment, Sweep(cells, run_longrun), tmp_path)
    before = (tmp_path / "longrun.csv").read_text()
    (tmp_path / "longrun.sqlite").unlink()
    imported = Sweep(cells, None)  # nothing is left to run
    second = run_paper("longrun", experiment, imported, tmp_path)
    assert second == first
    assert (tmp_path / "longrun.csv").read_text() == before


def test_rows_of_gaussians_are_imported(tmp_path):
    experiment = EXPERIMENTS["gaussian"]
    cells = filter_cells(TINY.cells(), ["training=gaussian"])
    first = run_paper("gaussian", experiment, Sweep(cells, run_gaussian), tmp_path)
    (tmp_path / "gaussian.sqlite").unlink()
    assert run_paper("gaussian", experiment, Sweep(cells, None), tmp_path) == first


def test_rows_that_only_a_file_has_are_imported(tmp_path):
    """As after a pull, or where the import was killed."""
    experiment = EXPERIMENTS["gaussian"]
    cells = filter_cells(TINY.cells(), ["training=gaussian"])
    both = run_paper("gaussian", experiment, Sweep(cells, run_gaussian), tmp_path)
    (tmp_path / "gaussian.sqlite").unlink()
    with SqliteStore.writing(tmp_path / "gaussian.sqlite") as store:
        store.add(cells[0], [row for row in both if row["truth"] == cells[0]["truth"]])
    assert run_paper("gaussian", experiment, Sweep(cells, None), tmp_path) == both
    assert read_rows(tmp_path / "gaussian.csv") == both


def test_a_file_of_something_else_is_not_imported(tmp_path):
    (tmp_path / "gaussian.csv").write_text("a,b\n1,2\n")
    sweep = Sweep(TINY.cells(), run_gaussian)
    with pytest.raises(DataError, match="is not of this experiment: move it away"):
        run_paper("gaussian", EXPERIMENTS["gaussian"], sweep, tmp_path)


def test_an_interruption_in_a_second_setting_leaves_the_first(tmp_path):
    def interrupted(cell):
        raise KeyboardInterrupt

    few, many = (LongRunStudy(truths=(2.0,), d=2, steps=n, every=5).cells() for n in (20, 40))
    experiment = EXPERIMENTS["longrun"]
    run_paper("longrun", experiment, Sweep(few, run_longrun), tmp_path)
    before = (tmp_path / "longrun.csv").read_text()
    with pytest.raises(KeyboardInterrupt):
        run_paper("longrun", experiment, Sweep(many, interrupted), tmp_path)
    assert (tmp_path / "longrun.csv").read_text() == before


def test_a_training_that_began_anew_is_not_the_papers(monkeypatch):
    def restarted(self, sample, progress=None):
        self.history_ = History(10, 10, 0.1, (), restarts=1)
        return self

    monkeypatch.setattr(Estimator, "fit_sample", restarted)
    (cell,) = filter_cells(TINY.cells(), ["training=demi(0.5)", "truth=2"])
    with pytest.raises(TrainingError, match="the loss was not finite"):
        run_gaussian(cell)


def test_tables_name_what_made_the_rows(tmp_path):
    cells = filter_cells(TINY.cells(), ["training=gaussian", "truth=2"])
    run_paper("gaussian", EXPERIMENTS["gaussian"], Sweep(cells, run_gaussian), tmp_path)
    origin = (tmp_path / "gaussian.md").read_text().splitlines()[-1]
    assert origin == "Made by deminat {version} with torch {torch} on {machine}.".format(
        **environment()
    )


def test_the_command_prints_rows_for_a_pipe(tmp_path):
    part = "--only", "truth=2", "--only", "training=gaussian", "--only", "d=20"
    printed = called(
        "gaussian", *part, "--scale", 0.001, "--reps", 1, "--jobs", 1, "--out", tmp_path, "--json"
    )
    rows = json.loads(printed.stdout)
    assert {row["method"] for row in rows} == {"gaussian"}
    assert all(row["version"] and row["machine"] for row in rows)


def test_an_interrupted_sweep_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(*args, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr("deminat.studies.paper.experiments.run_paper", interrupted)
    result = called("longrun", "--out", tmp_path)
    assert "interrupted; finished work is saved: run the same command to resume" in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_sweep_that_is_ended_says_how_to_go_on(tmp_path, number, code):
    argv = [sys.executable, "-m", "deminat", "paper", "longrun", "--jobs", "1", "--out", tmp_path]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()
        while not (tmp_path / "longrun.sqlite").exists():  # it is at work
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        said += process.stderr.read()
    assert process.returncode == code
    assert "interrupted; finished work is saved: run the same command to resume" in said


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_command_that_is_killed_leaves_what_an_uninterrupted_one_does(tmp_path, kills):
    argv = [sys.executable, "-m", "deminat", "paper", "gaussian", "--only", "training=gaussian"]
    argv += ["--scale", "0.001", "--reps", f"{3 * kills}", "--jobs", "1", "--out"]
    rng, midway = np.random.default_rng(kills), 0
    for _ in range(kills):
        with subprocess.Popen([*argv, tmp_path / "killed"], stderr=subprocess.DEVNULL) as process:
            before = cells_at(tmp_path / "killed")
            while cells_at(tmp_path / "killed") == before and process.poll() is None:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 1))  # into cells, tables or figures
            process.kill()
        midway += process.returncode == -signal.SIGKILL
    assert midway == kills
    subprocess.run([*argv, tmp_path / "killed"], check=True, stderr=subprocess.DEVNULL)
    study = GaussianStudy(trainings=("gaussian",), scale=0.001, reps=3 * kills)
    sweep = Sweep(study.cells(), run_gaussian)
    run_paper("gaussian", EXPERIMENTS["gaussian"], sweep, tmp_path / "whole")
    killed, whole = (pl.read_csv(tmp_path / f / "gaussian.csv") for f in ("killed", "whole"))
    assert killed.drop("seconds").equals(whole.drop("seconds"))


def cells_at(folder):
    """Return how many cells a sweep has finished."""
    try:
        with SqliteStore.reading(folder / "gaussian.sqlite") as store:
            return len(store.rows())
    except DataError:  # none yet
        return 0


def test_curves_are_written_point_by_point(tmp_path):
    cells = LongRunStudy(truths=(2.0,), d=2, steps=20, every=5, layers=(2,)).cells()
    run_paper("longrun", EXPERIMENTS["longrun"], Sweep(cells, run_longrun), tmp_path)
    frame = pl.read_csv(tmp_path / "longrun.csv")
    assert len(frame) == 4 * 4
    assert frame["step"].to_list()[:4] == [0, 5, 10, 15]


ALL_OF_INFOMAX = (
    "infomax --dataset cifar100 --objective smile(tau=5) --objective demi --objective mine "
    "--epochs 3 --critic concat --units 8 --negatives 5 --batch 32 --precision bfloat16 "
    "--probe-every 1 --no-check --reps 2 --scale 0.5"
)


@pytest.mark.parametrize(
    ("command", "study"),
    [
        *((name, experiment.study) for name, experiment in EXPERIMENTS.items()),
        ("notebook --reps 2 --scale 0.5", NotebookStudy(reps=2, scale=0.5)),
        (
            "gaussian --precision bfloat16 --reps 2 --scale 0.5",
            GaussianStudy(precision="bfloat16", reps=2, scale=0.5),
        ),
        ("longrun --reps 2 --scale 0.5", LongRunStudy(reps=2, scale=0.5)),
        (
            "consistency --epochs 5 --contrast 3 --precision bfloat16 --reps 2 --scale 0.5",
            ConsistencyStudy(epochs=5, contrast=3, precision="bfloat16", reps=2, scale=0.5),
        ),
        (
            ALL_OF_INFOMAX,
            InfoMaxStudy(
                dataset="cifar100",
                trainings=("demi", "mine"),
                epochs=3,
                critic="concat",
                units=8,
                negatives=5,
                batch=32,
                probe_every=1,
                precision="bfloat16",
                reps=2,
                scale=0.5,
                check=False,
            ),
        ),
    ],
)
def test_options_are_settings_of_the_study_and_default_to_its_own(
    command, study, tmp_path, monkeypatch
):
    run = []

    def stop(name, experiment, sweep, *_, **__):
        run.append((name, experiment.study, sweep.cells))
        return []

    monkeypatch.setattr("deminat.studies.paper.experiments.run_paper", stop)
    result = called(*command.split(), "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert run == [(command.split()[0], study, study.cells())]


@pytest.mark.parametrize("scale", [0.0, 1.01, math.nan])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_study_needs_a_share_of_its_data(name, scale):
    with pytest.raises(DataError, match=f"scale must be above 0 and at most 1, got {scale:g}"):
        replace(EXPERIMENTS[name].study, scale=scale)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gaussian", "--only", "d=21"], "no cell has d = 21; there are 20, 50, 100"),
        (["gaussian", "--scale", 0], "scale must be above 0 and at most 1"),
    ],
)
def test_what_cannot_be_run_is_explained(arguments, message, tmp_path):
    result = called(*arguments, "--out", tmp_path)
    assert message in str(result.exception)
    assert not list(Path(tmp_path).iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "No such command 'nothing'"),
        (["gaussian", "--epochs", 3], "No such option: --epochs"),
        (["gaussian", "--reps", 0], "Invalid value for '--reps'"),
    ],
)
def test_what_the_command_does_not_know(arguments, message, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    result = called(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_several_processes_of_torchrun_do_not_run_the_same_sweep(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = called("longrun", "--out", tmp_path)
    assert "torchrun is for infomax" in str(result.exception)
