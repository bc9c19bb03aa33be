"""Causal discovery by the test given z: a known graph is found by the PC of each library."""

import warnings

import numpy as np
import pytest

from deminat import independence_test
from deminat.plugins import causal_learn, pgmpy, tigramite

NAMES = "ABCDE"
ARROWS = {"AC", "BC", "CD", "DE"}  # all of them follow from independences
LEVEL = 0.01


def graph(n=2_000, seed=0):
    """Return columns of A to E, whose causes act nonlinearly."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c, d, e = 0.5 * rng.normal(size=(3, n))
    c += np.sin(1.5 * a) + 0.6 * b
    d += np.tanh(1.5 * c)
    e += d**2 + 0.5 * d
    return np.column_stack([a, b, c, d, e])


def triples(n=300):
    """Return x, a y that z explains, and z."""
    x, y, z = np.random.default_rng(0).normal(size=(3, n))
    return np.column_stack([x + z, y + z, z])


def test_pc_of_causal_learn_finds_the_graph():
    search = pytest.importorskip("causallearn.search.ConstraintBased.PC")
    found = search.pc(graph(), LEVEL, causal_learn.register(), show_progress=False).G.graph
    into = {
        NAMES[i] + NAMES[j] for i, j in zip(*np.where((found == -1) & (found.T == 1)), strict=True)
    }
    assert into == ARROWS
    assert (found != 0).sum() == 2 * len(ARROWS)


def test_pc_of_tigramite_finds_the_graph():
    pytest.importorskip("tigramite")
    from tigramite.data_processing import DataFrame
    from tigramite.pcmci import PCMCI

    test = tigramite.DeminatTest()
    search = PCMCI(DataFrame(graph()), cond_ind_test=test)
    found = search.run_pcalg(pc_alpha=LEVEL, mode="contemp_conds", tau_max=0)["graph"][:, :, 0]
    assert {NAMES[i] + NAMES[j] for i, j in zip(*np.where(found == "-->"), strict=True)} == ARROWS
    assert (found != "").sum() == 2 * len(ARROWS)


def test_pc_of_pgmpy_finds_the_graph():
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        search = pytest.importorskip("pgmpy.causal_discovery")
        frame = pandas.DataFrame(graph(), columns=list(NAMES))
        test = pgmpy.DeminatTest(frame)
        pc = search.PC("stable", test, significance_level=LEVEL, n_jobs=1, show_progress=False)
        found = pc.fit(frame).causal_graph_
    assert {"".join(edge) for edge in found.directed_edges} == ARROWS
    assert not found.undirected_edges


def test_p_values_are_those_of_the_test():
    rows = triples()
    x, y, z = rows.T
    expected = [independence_test(x, y, given=z).p_value, independence_test(x, y).p_value]
    assert expected[1] < 0.001 < expected[0]
    pandas = pytest.importorskip("pandas")
    test = pgmpy.DeminatTest(pandas.DataFrame(rows, columns=["x", "y", "z"]))
    for given, p in zip((["z"], []), expected, strict=True):
        assert test("x", "y", given, significance_level=0.01) == (p >= 0.01)
        assert test.p_value_ == p


def test_labels_of_a_frame_are_labels():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 600)
    x, y = np.array([0.0, 2.0, 1.0])[label] + rng.normal(size=(2, 600))
    names = np.array(["red", "green", "blue"])[label]
    test = pgmpy.DeminatTest(pandas.DataFrame({"x": x, "y": y, "colour": names}))
    assert not test("x", "y")
    assert test("x", "y", ["colour"])


def test_several_columns_and_answers_that_are_known():
    pytest.importorskip("causallearn")
    test = causal_learn.DeminatTest(triples())
    assert test([0, 1], 2) <= 0.001  # the smallest of 999 permutations
    assert test(0, 1, {2}) == test(1, 0, [2]) == test(np.int64(0), 1, (2,))
    assert len(test.pvalue_cache) == 2 + 3  # two answers, and what causal-learn keeps there


def test_the_statistic_and_the_p_value_of_tigramite_are_of_the_same_rows():
    pytest.importorskip("tigramite")
    rows = triples()
    x, y, z = (rows[:, [j]] for j in range(3))
    test = tigramite.DeminatTest()
    result = independence_test(x, y, given=z)
    assert test.run_test_raw(x, y, z) == (result.statistic, result.p_value)
    assert test.run_test_raw(x, y)[1] < 0.001


@pytest.mark.parametrize("make", [causal_learn.register, tigramite.DeminatTest])
def test_a_package_that_is_missing_is_named(make, monkeypatch):
    monkeypatch.setattr(causal_learn, "register_ci_test", None)
    monkeypatch.setattr(tigramite, "CondIndTest", object)
    with pytest.raises(ImportError, match=r"not installed: pip install 'deminat\[causal\]'"):
        make()
