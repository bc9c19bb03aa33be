"""The rank test of single columns: its law, ties, labels, groups and power."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import gamma, kstest

import deminat
from deminat.inference import rank_test as module
from deminat.inference.rank_test import (
    COSINES,
    cosines,
    harmonic,
    label_blocks,
    number_blocks,
    permuted_harmonics,
    rank_p_values,
    rank_test,
    ranks,
)
from deminat.studies import rank_law

RNG = np.random.default_rng
LEVEL = 0.05


def test_cosines_of_ranks_are_uncorrelated():
    for n in (20, 61, 200):
        found = cosines(n)
        assert found.shape == (n, min(COSINES, n // 2))
        np.testing.assert_allclose(found.T @ found / n, np.eye(found.shape[1]), atol=1e-12)


def test_ties_are_broken_at_random():
    column = np.repeat([2.0, 1.0, 3.0], [3, 4, 1])
    found = np.array([ranks(column, RNG(seed)) for seed in range(200)])
    assert (np.sort(found, axis=1) == np.arange(8)).all()
    assert set(found[:, 0]) == {4, 5, 6}
    assert set(found[:, 3]) == {0, 1, 2, 3}
    assert (found[:, 7] == 7).all()


def test_log_h_is_the_weighted_mean_of_inverse_p_values():
    n, squares = 24, RNG(0).chisquare(1, size=(12, 12))
    cuts, m = [1, 2, 3, 4, 6, 8, 12], 23
    total = weight = 0.0
    for j in cuts:
        for k in cuts:
            variance = 2 * j * k * (m - j) * (m - k) / ((m - 1) * (m + 2))
            shape = (j * k) ** 2 / variance
            p = gamma.sf(squares[:j, :k].sum() * m / n, shape, scale=j * k / shape)
            w = 1 / min(j, k) / max(j, k) ** 0.5
            total, weight = total + w / p, weight + w
    assert harmonic(squares, n) == pytest.approx(np.log(total / weight))
    blocks = number_blocks(np.arange(n), RNG(0)), number_blocks(RNG(1).normal(size=n), RNG(0))
    (alone,) = permuted_harmonics(*blocks, [np.arange(n)])
    product = (blocks[0].features.T @ blocks[1].features) ** 2 / n
    assert alone == pytest.approx(float(harmonic(product, n)))


def test_sums_of_squares_have_the_mean_and_the_variance_of_random_rotations():
    n, j, k, rng = 30, 8, 3, RNG(0)
    grid = cosines(n)
    sums = np.array(
        [((grid[:, :j].T @ rng.permutation(grid[:, :k])) ** 2).sum() for _ in range(4000)]
    )
    sums *= (n - 1) / n / n
    m = n - 1
    assert sums.mean() == pytest.approx(j * k, rel=0.02)
    assert sums.var() == pytest.approx(2 * j * k * (m - j) * (m - k) / ((m - 1) * (m + 2)), rel=0.1)


@pytest.mark.parametrize("n", [20, 35, 120, 700])
def test_p_values_have_the_level_of_fresh_draws(n):
    draws = rank_law.simulated(n, 20_000, seed=5)
    p = rank_p_values(draws, n)
    for level in (0.5, 0.2, 0.05, 0.01):
        # Four standard errors, and 2% of the level for the table and what is between its lines.
        allowed = 4 * np.sqrt(level * (1 - level) / len(p)) + 0.02 * level
        assert (p <= level).mean() == pytest.approx(level, abs=allowed)


def test_beyond_the_table_p_values_fall_and_are_never_zero():
    far = np.array([8.0, 12.0, 50.0, 300.0])
    p = rank_p_values(far, 1_000)
    assert (np.diff(p) < 0).all()
    assert 0 < p[-1] < 1e-100


def test_the_table_is_the_one_that_the_study_writes(tmp_path):
    rank_law.write_law(tmp_path / "law.csv", draws=2_000)
    own = Path(module.__file__).with_name("rank_law.csv")
    paths = tmp_path / "law.csv", own
    fresh, stored = (list(csv.reader(path.read_text().splitlines())) for path in paths)
    assert fresh[0] == stored[0]
    assert [row[0] for row in fresh] == [row[0] for row in stored]
    at = stored[0].index("0.2")
    for a, b in zip(fresh[1:], stored[1:], strict=True):
        assert float(a[at]) == pytest.approx(float(b[at]), abs=0.15)


@pytest.mark.parametrize(
    "kind", ["normal", "cauchy", "coin", "counts", "zeros", "label", "label-number", "groups"]
)
def test_independent_columns_are_rejected_as_often_as_said(kind):
    n, runs, p = 60, 400, []
    for seed in range(runs):
        rng, groups = RNG([seed, 9]), None
        x, y = rng.normal(size=(2, n))
        if kind == "cauchy":
            x = rng.standard_cauchy(n)
        elif kind == "coin":
            x = rng.integers(2, size=n)
        elif kind == "counts":
            x, y = rng.poisson(2, size=(2, n))
        elif kind == "zeros":
            x = np.maximum(x, 0)
        elif kind.startswith("label"):
            x = np.array(["a", "b", "c", "d"])[rng.integers(4, size=n)]
            y = y if kind.endswith("number") else np.array(["u", "v", "w"])[rng.integers(3, size=n)]
        elif kind == "groups":
            groups = np.arange(n) // 3
            x, y = (rng.normal(size=20)[groups] + 0.1 * a for a in (x, y))
        p.append(deminat.independence_test(x, y, groups=groups, permutations=99, seed=seed).p_value)
    assert kstest(np.array(p) - 0.005, "uniform").pvalue > 1e-3
    assert np.mean(np.array(p) <= LEVEL) <= 0.09  # one of 5,000 tests at 5% has more


SHAPES = {
    "line": lambda x, e: x + e,
    "parabola": lambda x, e: x**2 + 0.5 * e,
    "circle": lambda x, e: np.sqrt(np.maximum(1 - x**2 / 4, 0)) * np.sign(e) + 0.1 * e,
    "fast sine": lambda x, e: np.sin(6 * np.pi * x) + 0.3 * e,
    "spread": lambda x, e: x * e,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_dependence_of_many_shapes_is_found(shape):
    found = []
    for seed in range(40):
        rng = RNG(seed)
        x, e = rng.uniform(-2, 2, 150), rng.normal(size=150)
        found.append(rank_test(x, SHAPES[shape](x, e), rng)[0] <= LEVEL)
    assert np.mean(found) >= 0.9


def test_codes_of_labels_do_not_matter():
    rng = RNG(3)
    x = rng.integers(6, size=300)
    y = np.where(rng.random(300) < 0.3, x, rng.integers(6, size=300))
    words = np.array(list("qwerty"))
    results = [
        deminat.independence_test(words[x], words[p[y]])
        for p in (np.arange(6), rng.permutation(6), rng.permutation(6))
    ]
    assert all(r.p_value <= 0.002 for r in results)
    assert all(r.compared == "999 permutations" for r in results)


def test_indicators_of_a_label_are_one_block():
    blocks = label_blocks(np.array([0.0, 1, 2, 1, 0, 2, 2] * 6), RNG(0))
    assert blocks.ends[-1] - blocks.starts[-1] == 2
    last = blocks.features[:, blocks.starts[-1] :]
    np.testing.assert_allclose(last.T @ last / len(last), np.eye(2), atol=1e-12)


def test_the_estimate_has_the_same_p_value_as_the_test():
    x, e = RNG(0).normal(size=(2, 300))
    y = x**2 + e
    test = deminat.independence_test(x, y)
    assert test.unit == "log H"
    assert "ranks" in str(test)
    assert deminat.estimate(x, y, preset="quick").p_value == test.p_value
