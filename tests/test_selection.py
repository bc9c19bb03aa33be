"""Columns that matter, alone or together, in pipelines of scikit-learn."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import mutual_info_regression
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from deminat import MISelector


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


def test_few_copies_of_the_columns_are_in_memory_at_once(monkeypatch):
    """Of 40 columns, the peak is far below the 40 copies that leave one column out each."""

    def measure(sample, **_):
        return SimpleNamespace(mi=0.0, pointwise=np.zeros(len(sample.x)))

    stub = SimpleNamespace(measure=measure)
    monkeypatch.setattr("deminat.selection.estimator_for", lambda *_: stub)
    x = np.random.default_rng(0).normal(size=(1_000, 40))
    tracemalloc.start()
    try:
        MISelector().fit(x, x[:, 0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 15 * x.nbytes
