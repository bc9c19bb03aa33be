"""Figures are drawn, labelled with their unit, and touch nothing global."""

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from deminat import MIResult
from deminat.report.plots import (
    plot_errors,
    plot_methods,
    plot_pointwise,
    plot_shares,
    save_comparison,
    save_errors,
    save_heat_map,
    save_network,
    save_shares,
)

RNG = np.random.default_rng(0)
RESULTS = [
    MIResult(m, 0.05, 50, name, RNG.normal(m, 1, 50))
    for m, name in ((1.0, "demi"), (0.8, "ksg(k=3)"))
]


def test_methods_are_named_and_the_axis_has_its_unit():
    ax = Figure().subplots()
    plot_methods(ax, RESULTS, unit="bits")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["demi", "ksg(k=3)"]
    assert "bits" in ax.get_xlabel()
    points = [float(line.get_xdata()[0]) for line in ax.get_lines() if line.get_marker() == "o"]
    assert points == pytest.approx([1 / np.log(2), 0.8 / np.log(2)])


def test_intervals_are_drawn_where_there_are_some():
    ax = Figure().subplots()
    plot_methods(ax, [replace(RESULTS[0], interval=(0.9, 1.4)), RESULTS[1]])
    ends = [bars.get_segments()[0][:, 0].tolist() for bars in ax.collections]
    assert ends == [pytest.approx([0.9, 1.4]), pytest.approx([0.7, 0.9])]
    assert "95% intervals" in ax.get_xlabel()


def test_colours_are_symmetric_about_zero():
    ax = Figure().subplots()
    plot_pointwise(ax, RNG.normal(size=50), RNG.normal(size=50), RESULTS[0])
    low, high = ax.collections[0].get_clim()
    assert low == -high


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_comparison_is_saved_without_pyplot(tmp_path, suffix):
    before = "matplotlib.pyplot" in sys.modules
    path = tmp_path / f"figure.{suffix}"
    save_comparison(path, RNG.normal(size=50), RNG.normal(size=50), RESULTS, ("x", "y"))
    assert path.stat().st_size > 5_000
    assert ("matplotlib.pyplot" in sys.modules) == before


def bench_row(task, truth, estimate, **more):
    row = {"task": task, "n": 1_000, "preset": "auto", "truth": truth, "estimate": estimate}
    return {**row, "oracle": truth, "family": "some", **more}


def points(ax):
    """The points of every colour, by its label."""
    return {c.get_label(): c.get_offsets().data for c in ax.collections}


def test_errors_stand_at_their_task():
    ax = Figure().subplots()
    rows = [bench_row("a", 1.0, 1.5), bench_row("b", 2.0, 1.0), bench_row("b", 2.0, 0.5)]
    plot_errors(ax, [*rows, bench_row("a", 1.0, 0.75, preset="paper")], ["b", "a"])
    drawn = points(ax)
    assert drawn["preset auto"][:, 0] == pytest.approx([0.5, -1.0, -1.5])
    assert np.round(drawn["preset auto"][:, 1]).tolist() == [1, 0, 0]
    assert drawn["preset paper"][:, 0] == pytest.approx([-0.25])
    assert drawn["true log ratio of the same pairs"][:, 0] == pytest.approx([0, 0, 0, 0])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["b", "a"]


def test_shares_are_of_the_truth_and_nothing_has_no_share():
    ax, empty = Figure().subplots(1, 2)
    plot_shares(ax, [bench_row("cubic-2d-2nats", 2.0, 1.0), bench_row("cubic-5d-4nats", 4.0, 5.0)])
    drawn = points(ax)
    assert drawn["cubic-2d, 1,000 pairs"] == pytest.approx(np.array([[2, 0.5]]), rel=0.02)
    assert drawn["cubic-5d, 1,000 pairs"] == pytest.approx(np.array([[4, 1.25]]), rel=0.02)
    assert "nats" in ax.get_xlabel()
    plot_shares(empty, [bench_row("gaussian-1d-0nats", 0.0, 0.01)])
    assert points(empty)["gaussian-1d, 1,000 pairs"][0, 1] == 0.01
    assert "nats" in empty.get_ylabel()


def test_several_kinds_of_tasks_are_told_apart():
    ax = Figure().subplots()
    tasks = "student-9d-3nats-dof3", "mixture-9d-3nats-a-component", "spiral-9d-1e-05nats"
    plot_shares(ax, [bench_row(task, 3.0, 3.0) for task in tasks])
    assert list(points(ax)) == ["student-dof3", "mixture", "spiral"]


@pytest.mark.parametrize("save", [save_errors, save_shares])
def test_figures_of_benches_are_saved(tmp_path, save):
    rows = [bench_row("gaussian-1d-2nats", 2.0, 1.9, n=n) for n in (1_000, 5_000)]
    rows += [bench_row("gaussian-1d-0nats", 0.0, 0.0, family=f) for f in ("others", "more")]
    save(tmp_path / "figure.png", rows)
    assert (tmp_path / "figure.png").stat().st_size > 5_000


@pytest.fixture
def saved(monkeypatch):
    """Figures that were to be saved, laid out as they would be."""
    figures = []

    def kept(figure, path, **how):
        figure.draw_without_rendering()
        figures.append(figure)

    monkeypatch.setattr(Figure, "savefig", kept)
    return figures


def genes(count):
    """Names of columns, all different."""
    return [f"gene_{i}" for i in range(count)]


def overlapping(texts):
    """How many texts cover a part of the next."""
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return sum(a.overlaps(b) for a, b in pairwise(boxes))


@pytest.mark.parametrize("shape", [(2, 2), (11, 11), (112, 1), (1, 112), (60, 60), (900, 3)])
def test_a_heat_map_is_as_large_as_its_lines_and_columns(saved, shape):
    lines, columns = map(genes, shape)
    save_heat_map("", (lines, columns), RNG.gamma(1, 0.2, shape))
    (figure,) = saved
    width, height = figure.get_size_inches()
    assert 2 <= min(width, height) <= max(width, height) <= 40
    if max(shape) > 5 * min(shape):
        assert max(width, height) > 3 * min(width, height)
        assert min(width, height) < 6
    ax = figure.axes[0]
    named = [label.get_text() for label in ax.get_yticklabels()]
    assert named == (lines if shape[0] <= 400 else lines[:: len(lines) // len(named)])
    for axis in (ax.xaxis, ax.yaxis):
        assert overlapping(axis.get_ticklabels()) == 0
        assert all(label.get_fontsize() >= 4 for label in axis.get_ticklabels())


def test_a_network_shows_only_columns_in_a_pair_and_counts_the_others(saved):
    names = [*genes(112), "target"]
    save_network("", names, [("gene_5", "target", 0.4), ("gene_7", "target", 0.1)], "pairs")
    (ax,) = saved[0].axes
    assert [text.get_text() for text in ax.texts] == ["gene_5", "gene_7", "target"]
    assert saved[0].get_suptitle() == "pairs\n110 of 113 columns are in none"


def test_a_network_of_none_and_of_all(saved):
    save_network("", ["a", "b"], [], "pairs")
    save_network("", ["a", "b"], [("a", "b", 0.1)], "pairs")
    none, every = saved
    assert none.get_suptitle() == "pairs\n2 of 2 columns are in none"
    assert [text.get_text() for text in none.axes[0].texts] == ["there are none"]
    assert every.get_suptitle() == "pairs"


def test_many_names_around_a_network_are_apart_and_inside(saved):
    edges = [(name, "target", 0.1) for name in genes(112)]
    save_network("", [*genes(112), "target"], edges, "pairs")
    (figure,) = saved
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert all(figure.bbox.x0 <= b.x0 and b.x1 <= figure.bbox.x1 for b in boxes)
    title = figure.texts[0].get_window_extent()
    assert not any(title.overlaps(box) for box in boxes)
    anchors = np.array(
        [t.get_transform().transform(t.get_position()) for t in figure.axes[0].texts]
    )
    apart = np.linalg.norm(np.diff(anchors, axis=0), axis=1)
    points = figure.axes[0].texts[0].get_fontsize() * figure.dpi / 72
    assert apart.min() >= points
