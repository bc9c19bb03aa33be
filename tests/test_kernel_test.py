"""The test of several columns a side: exact, strong, the same by both ways of moving rows."""

import numpy as np
import pytest
from scipy.stats import kstest

import deminat
from deminat.data.sample import RowOptions, as_sample
from deminat.inference.independence import _blocks, _kernel_statistics, _p_value, _pieces
from deminat.inference.kernel_test import moved_statistics, side_of, turned_statistics


def draw(kind, rng, n=40, d=2):
    sides = {
        "normal": lambda: rng.normal(size=(n, d)),
        "cauchy": lambda: rng.standard_cauchy((n, d)),
        "counts": lambda: rng.poisson(2, size=(n, d)).astype(float),
        "atoms": lambda: rng.normal(size=(n, d)) * rng.integers(0, 2, size=(n, d)),
    }
    return sides[kind](), sides[kind]()


def p_value(x, y, permutations=39, seed=0, **about):
    statistics = _kernel_statistics(
        as_sample(x, y, RowOptions(**about)), permutations, np.random.default_rng(seed)
    )
    return _p_value(float(statistics[0]), statistics[1:])


def grouped_sides(rng, sizes):
    of = np.repeat(np.arange(len(sizes)), sizes)
    shared, own = rng.normal(size=(2, len(sizes), 2)), rng.normal(size=(2, len(of), 2))
    return *(shared[:, of] + 0.3 * own), of


def assert_uniform(found, permutations):
    """A false alarm once in a thousand; p-values are multiples of 1 / (permutations + 1)."""
    spread = np.random.default_rng(0).random(len(found)) / (permutations + 1)
    assert kstest(np.array(found) - spread, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", ["normal", "cauchy", "counts", "atoms"])
def test_permutations_are_exact(kind):
    rng = np.random.default_rng(1)
    found = [p_value(*draw(kind, rng, n=18), seed=s) for s in range(80)]
    assert_uniform(found, 39)


def test_pieces_in_a_circle_are_exact():
    rng = np.random.default_rng(2)
    assert_uniform([p_value(*draw("normal", rng, n=40), seed=s) for s in range(100)], 39)


@pytest.mark.parametrize("sizes", [[3] * 20, [3] * 12, [1, 2, 3, 4] * 6])
def test_groups_are_exact(sizes):
    rng, found = np.random.default_rng(3), []
    for seed in range(80):
        x, y, groups = grouped_sides(rng, sizes)
        found.append(p_value(x, y, seed=seed, groups=groups))
    assert_uniform(found, 39)


def test_rows_of_groups_moved_one_by_one_would_not_do():
    rng = np.random.default_rng(4)
    small = 0
    for seed in range(25):
        x, y, _ = grouped_sides(rng, [5] * 12)
        small += p_value(x, y, seed=seed) <= 0.05
    assert small > 7


def test_moves_in_a_circle_have_the_statistics_of_permutations():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    sides = side_of(x, rng), side_of(x**2 + rng.normal(size=(120, 3))[:, :2], rng)
    pieces = np.arange(120).reshape(60, 2)
    moved = [np.roll(pieces, -shift, axis=0).ravel() for shift in range(1, 60)]
    mirrored = [np.roll(pieces[::-1], shift, axis=0).ravel() for shift in range(60)]
    by_order, by_transform = (
        moved_statistics(*sides, moved + mirrored),
        turned_statistics(*sides, 2),
    )
    np.testing.assert_allclose(by_transform[:60], by_order[:60], rtol=1e-4)
    np.testing.assert_allclose(np.sort(by_transform), np.sort(by_order), rtol=1e-4)


def test_pieces_hold_whole_groups_once():
    labels = np.repeat(np.arange(100), [4] * 45 + [2] * 55)
    blocks = _blocks(labels, len(labels), np.random.default_rng(0), 40)
    pieces = _pieces(blocks, 40, np.random.default_rng(1))
    assert pieces.shape == (45, 6)
    assert len(np.unique(pieces)) == pieces.size
    for part in (pieces[:, :4], pieces[:, 4:]):
        assert (labels[part] == labels[part[:, :1]]).all()


RELATIONS = {
    "line": lambda x, e: x + e,
    "square": lambda x, e: x**2 + e,
    "product": lambda x, e: np.c_[x[:, 0] * x[:, 1], x[:, 1] * x[:, 2], e[:, 2]] + 0.3 * e,
    "scale": lambda x, e: x * e,
    "one of many": lambda x, e: np.c_[np.sin(6 * x[:, 0]) + 0.4 * e[:, 0], e[:, 1:]],
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n", [150, 700])
def test_dependence_of_many_shapes_is_found(relation, n):
    x, e = np.random.default_rng(5).normal(size=(2, n, 3))
    result = deminat.independence_test(x, RELATIONS[relation](x, e), order=False)
    assert result.p_value < 0.01


def test_dependence_in_groups_is_found():
    rng = np.random.default_rng(6)
    for sizes in ([4] * 500, rng.integers(1, 30, size=60)):
        groups = np.repeat(np.arange(len(sizes)), sizes)
        x, e = rng.normal(size=(2, len(groups), 3))
        assert deminat.independence_test(x, x**2 + e, groups=groups).p_value < 0.01


def test_units_of_columns_do_not_matter():
    x, y = draw("normal", np.random.default_rng(7), n=60)
    first = deminat.independence_test(x, y, seed=1)
    assert deminat.independence_test(x * [1e-3, 1e200], y, seed=1).p_value == first.p_value
    assert deminat.independence_test(x, y, seed=1) == first


def test_more_permutations_give_smaller_p_values():
    x, e = np.random.default_rng(8).normal(size=(2, 300, 2))
    few, many = (
        deminat.independence_test(x, x + e, permutations=m, order=False).p_value for m in (99, 1999)
    )
    assert few == pytest.approx(0.01, abs=0.005)
    assert many <= 1 / 2000


def test_wide_rows_and_columns_of_one_value_are_tested():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(60, 1, 12, 12))
    x[:, :, 0] = 0
    assert deminat.independence_test(x, x[:, :, 3:5] + 0.1, permutations=99).p_value <= 0.01
    coins = rng.integers(0, 2, size=(2, 60, 2)).astype(float)
    assert 0 < deminat.independence_test(*coins, order=False, permutations=99).p_value <= 1


def test_rare_values_are_tested_too():
    x = np.zeros((1_001, 2))
    x[:3] = 1, 2
    y = np.random.default_rng(10).normal(size=(1_001, 2))
    assert 0 < deminat.independence_test(x, y, order=False).p_value <= 1
    nothing, other = (
        side_of(np.ones((40, 2)), np.random.default_rng(0)),
        side_of(y[:40], np.random.default_rng(1)),
    )
    assert np.ptp(moved_statistics(nothing, other, [np.arange(40)[::-1]])) == 0


def test_few_groups_cannot_have_a_small_p_value():
    x, e = np.random.default_rng(11).normal(size=(2, 120, 2))
    result = deminat.independence_test(x, x + 0.1 * e, groups=np.arange(120) % 3)
    assert result.p_value == pytest.approx(1 / 6, abs=0.05)
