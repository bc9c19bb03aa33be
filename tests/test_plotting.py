"""Figures are drawn, labelled with their unit, and touch nothing global."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from deminat import MIResult
from deminat.plotting import plot_methods, plot_pointwise, save_comparison

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
    (points,) = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert points.get_xdata() == pytest.approx([1 / np.log(2), 0.8 / np.log(2)])


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
