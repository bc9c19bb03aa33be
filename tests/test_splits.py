"""Rows train, select or report: never two of these, and labels are never split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deminat import DataError
from deminat.data.splits import folds, others, shares, split_off

SEEDS = st.integers(0, 2**32 - 1)

many = settings(derandomize=True, deadline=None, max_examples=60)


def rng(seed=0):
    return np.random.default_rng(seed)


@many
@given(n=st.integers(2, 200), count=st.integers(2, 20), seed=SEEDS)
def test_every_row_is_in_one_fold_and_sizes_differ_by_one_at_most(n, count, seed):
    count = min(n, count)
    parts = folds(n, count, rng(seed))
    assert len(parts) == count
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@many
@given(labels=st.lists(st.integers(0, 30), min_size=40, max_size=200), seed=SEEDS)
def test_labels_are_never_split(labels, seed):
    labels = np.array([*range(10), *labels])
    parts = folds(len(labels), 5, rng(seed), labels)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    for label in np.unique(labels):
        assert sum(label in labels[part] for part in parts) == 1


def test_folds_of_doubled_rows_are_balanced():
    parts = folds(1000, 5, rng(), np.repeat(np.arange(500), 2))
    assert [len(part) for part in parts] == [200] * 5


def test_any_integers_serve_as_labels():
    parts = folds(8, 2, rng(), np.array([-5, 10**12, 7, 7, -5, 10**12, 9, 9]))
    assert sorted(map(len, parts)) == [4, 4]


def test_one_seed_gives_one_split():
    same, repeated, other = (folds(100, 5, rng(s)) for s in (0, 0, 1))
    assert all(map(np.array_equal, same, repeated))
    assert not all(map(np.array_equal, same, other))


def test_folds_are_random_and_rows_within_them_in_order():
    part = folds(1000, 2, rng())[0]
    assert (np.diff(part) > 0).all()
    assert 180 < (part < 500).sum() < 320  # hypergeometric, s.d. 11: 6 standard deviations


def test_fewer_observations_than_folds_are_an_error():
    with pytest.raises(DataError, match="3 groups or different rows"):
        folds(3, 5, rng())
    with pytest.raises(DataError, match="2 groups or different rows"):
        folds(100, 5, rng(), np.arange(100) % 2)


@pytest.mark.parametrize("count", [1, 0, -3])
def test_fewer_than_two_folds_are_an_error(count):
    with pytest.raises(ValueError, match="at least 2"):
        folds(10, count, rng())


@pytest.mark.parametrize("fraction", [1 / 2, 1 / 6, 0.1])
def test_split_off_holds_out_about_the_fraction(fraction):
    fit, held = split_off(1200, fraction, rng())
    assert np.array_equal(np.sort(np.concatenate([fit, held])), np.arange(1200))
    assert len(held) == round(1200 * fraction)
    assert (np.diff(fit) > 0).all()


def test_split_off_does_not_split_labels():
    labels = np.arange(300) % 100
    fit, held = split_off(300, 1 / 6, rng(), labels)
    assert not set(labels[fit]) & set(labels[held])


@pytest.mark.parametrize("fraction", [0.4, 0.7])
def test_split_off_holds_out_other_fractions_too(fraction):
    _, held = split_off(1000, fraction, rng())
    assert len(held) == pytest.approx(1000 * fraction, rel=0.05)


@pytest.mark.parametrize("counts", [(90, *[1] * 10), (60, *[1] * 40), (2, 1, 2, 1)], ids=str)
def test_no_fold_has_a_label_alone_while_there_are_enough(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    count = min(5, len(counts) // 2)
    for seed in range(9):
        parts = folds(len(labels), count, rng(seed), labels)
        assert min(len(set(labels[part])) for part in parts) >= 2
        assert sorted(np.concatenate(parts)) == list(range(len(labels)))


@pytest.mark.parametrize(("distinct", "advice"), [(6, "use folds=3"), (3, "collect more")])
def test_too_few_labels_are_refused_with_a_way_out(distinct, advice):
    with pytest.raises(DataError, match=f"{distinct} groups .* too few for 5 folds.*{advice}"):
        folds(30, 5, rng(), np.arange(30) % distinct)


def test_rows_in_time_are_cut_into_blocks():
    times = rng().permutation(100)
    parts = folds(100, 4, rng(), times=times)
    assert [sorted(times[part]) for part in parts] == [
        list(range(i, i + 25)) for i in (0, 25, 50, 75)
    ]
    rest = others(100, parts[1], times, gap=5)
    assert sorted(times[rest]) == [*range(20), *range(55, 100)]


def test_a_block_is_split_off_with_a_gap():
    times = rng().permutation(120)
    fit, held = split_off(120, 1 / 6, rng(), times=times, gap=3)
    first, last = times[held].min(), times[held].max()
    assert last - first + 1 == len(held) == 20
    near = set(range(first - 3, last + 4))
    assert set(times[fit]) == set(range(120)) - near


def test_two_labels_at_least_are_held_out_where_there_are_some():
    labels = np.repeat(np.arange(5), 30)
    for seed in range(9):
        _, held = split_off(150, 0.05, rng(seed), labels)
        assert len(set(labels[held])) == 2


@pytest.mark.parametrize("labels", [None, np.arange(200) // 5])
def test_shares_are_disjoint_and_whole(labels):
    parts = shares(200, (0.4, 0.3, 0.3), rng(), labels)
    assert sorted(np.concatenate(parts)) == list(range(200))
    assert [len(part) for part in parts] == [80, 60, 60]
    if labels is not None:
        kinds = [set(labels[part]) for part in parts]
        assert not kinds[0] & kinds[1] | kinds[1] & kinds[2] | kinds[0] & kinds[2]


def test_shares_in_time_follow_each_other():
    times = rng().permutation(50)
    parts = shares(50, (0.5, 0.5), rng(), times=times)
    assert [sorted(times[part]) for part in parts] == [list(range(25)), list(range(25, 50))]


def test_too_few_observations_cannot_be_shared():
    with pytest.raises(DataError, match="2 groups or different rows cannot be cut into 3 parts"):
        shares(10, (0.4, 0.3, 0.3), rng(), np.arange(10) % 2)
