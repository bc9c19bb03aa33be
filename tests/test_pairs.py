"""Unpaired partners are never joint pairs, whatever n, k, labels and seed."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deminat import DataError
from deminat.data.pairs import batches, partners

SEEDS = st.integers(0, 2**32 - 1)

many = settings(derandomize=True, deadline=None, max_examples=60)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@st.composite
def sizes(draw):
    n = draw(st.integers(2, 60))
    return n, draw(st.integers(1, n - 1))


@st.composite
def labels_of_two_kinds_or_more(draw):
    kinds = draw(st.lists(st.integers(0, 8), min_size=2, max_size=60))
    return torch.tensor([*kinds, 9])


@many
@given(sizes(), SEEDS)
def test_no_row_is_its_own_partner_and_its_partners_differ(size, seed):
    n, k = size
    others = partners(n, k, generator(seed))
    assert others.shape == (n, k)
    assert not (others == torch.arange(n)[:, None]).any()
    assert all(len(set(row)) == k for row in others.tolist())


@many
@given(sizes(), SEEDS)
def test_every_row_serves_once_in_each_column(size, seed):
    n, k = size
    others = partners(n, k, generator(seed))
    assert torch.equal(others.sort(dim=0).values, torch.arange(n)[:, None].expand(n, k))


@many
@given(labels_of_two_kinds_or_more(), st.integers(1, 3), SEEDS)
def test_no_partner_shares_a_label(labels, k, seed):
    n = len(labels)
    others = partners(n, min(k, n - 1), generator(seed), labels)
    assert not (labels[others] == labels[:, None]).any()
    assert others.min() >= 0
    assert others.max() < n


def shares(labels, allowed, draws=2000):
    """How often each of the rows allowed to row 0 is its partner."""
    source = generator(1)
    rows = [int(partners(len(labels), 1, source, labels)[0]) for _ in range(draws)]
    counts = np.bincount(rows, minlength=len(labels))
    assert counts[allowed].sum() == draws
    return counts[allowed] / draws


@pytest.mark.parametrize("labels", [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3], [0, 0, 0, 1, 1]], ids=str)
def test_every_allowed_partner_is_equally_likely(labels):
    labels = torch.tensor(labels)
    allowed = np.flatnonzero(labels.numpy() != 0)
    share, p = shares(labels, allowed), 1 / len(allowed)
    assert (abs(share - p) < 4 * (p * (1 - p) / 2000) ** 0.5).all()  # 4 standard errors


def test_one_seed_gives_one_set_of_partners():
    assert torch.equal(partners(50, 3, generator(0)), partners(50, 3, generator(0)))
    assert not torch.equal(partners(50, 3, generator(0)), partners(50, 3, generator(1)))


@pytest.mark.parametrize(("n", "k"), [(5, 5), (5, 0), (1, 1), (0, 1)])
def test_more_partners_than_other_rows_are_an_error(n, k):
    with pytest.raises(DataError, match="unpaired partners"):
        partners(n, k, generator())


def test_copies_of_one_observation_cannot_be_unpaired():
    with pytest.raises(DataError, match="of one group or copies of one"):
        partners(10, 1, generator(), torch.zeros(10))
    with pytest.raises(DataError, match="of one group or copies of one"):
        next(batches(10, 5, 1, generator(), labels=torch.zeros(10)))


@many
@given(st.integers(2, 60), st.integers(1, 60), SEEDS)
def test_the_batches_of_an_epoch_hold_every_row_once_at_most(n, size, seed):
    size = min(size, n)
    epoch = list(islice(batches(n, size, 1, generator(seed)), n // size))
    rows = torch.cat([batch.joint for batch in epoch])
    assert all(len(batch.joint) == size for batch in epoch)
    assert len(rows.unique()) == len(rows) == n // size * size


@many
@given(sizes(), SEEDS)
def test_no_batch_holds_a_joint_pair_among_the_unpaired(size, seed):
    n, k = size
    for batch in islice(batches(n, 4, k, generator(seed)), 5):
        assert batch.partners.shape == (len(batch.anchors), k)
        assert not (batch.partners == batch.anchors[:, None]).any()
        assert torch.equal(batch.anchors, batch.joint)


@many
@given(labels_of_two_kinds_or_more(), st.sampled_from([None, 0.3]), SEEDS)
def test_no_batch_pairs_rows_of_one_label(labels, alpha, seed):
    stream = batches(len(labels), 4, 2, generator(seed), labels=labels, alpha=alpha)
    for batch in islice(stream, 5):
        assert not (labels[batch.partners] == labels[batch.anchors][:, None]).any()


@many
@given(labels_of_two_kinds_or_more(), st.sampled_from([None, 0.3]), SEEDS)
def test_partners_from_the_batch_never_share_a_label(labels, alpha, seed):
    settings = {"labels": labels, "alpha": alpha, "in_batch": True}
    for batch in islice(batches(len(labels), 4, 1, generator(seed), **settings), 5):
        assert not (labels[batch.partners] == labels[batch.anchors][:, None]).any()


@many
@given(sizes(), SEEDS)
def test_partners_from_the_batch_are_the_next_rows_of_it(size, seed):
    n, k = size
    for batch in islice(batches(n, k + 1, k, generator(seed), in_batch=True), 5):
        rows = batch.joint.tolist()
        following = [[rows[(i + j) % len(rows)] for j in range(1, k + 1)] for i in range(len(rows))]
        assert batch.partners.tolist() == following


def test_a_batch_has_fewer_partners_than_rows():
    with pytest.raises(DataError, match="4 rows of a batch have 3 partners"):
        next(batches(10, 4, 4, generator(), in_batch=True))


def test_every_epoch_is_fresh():
    first, second = islice(batches(200, 200, 1, generator()), 2)
    assert not torch.equal(first.joint, second.joint)
    before, after = torch.empty(2, 200, dtype=torch.int64)
    before[first.joint], after[second.joint] = first.partners[:, 0], second.partners[:, 0]
    assert (before == after).float().mean() < 0.05  # by chance 1 in 199


def test_a_batch_larger_than_the_rows_is_all_rows():
    assert len(next(batches(5, 64, 1, generator())).joint) == 5


@many
@given(labels_of_two_kinds_or_more(), SEEDS)
def test_all_pairs_batches_hold_one_row_a_label(labels, seed):
    for batch in islice(batches(len(labels), 8, None, generator(seed), labels=labels), 5):
        held = labels[batch.joint]
        assert len(held.unique()) == len(held)
        assert batch.partners is None


def test_all_pairs_batches_without_labels_are_whole():
    epoch = list(islice(batches(24, 8, None, generator()), 3))
    assert torch.equal(torch.cat([b.joint for b in epoch]).sort().values, torch.arange(24))


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5, 0.9])
def test_drawn_examples_are_joint_with_probability_alpha(alpha):
    drawn = list(islice(batches(100, 50, 3, generator(), alpha=alpha), 200))
    joint = sum(len(batch.joint) for batch in drawn)
    assert all(len(b.joint) + len(b.anchors) == 2 * 50 for b in drawn)
    assert all(b.partners.shape == (len(b.anchors), 3) for b in drawn)
    examples = 200 * 100
    assert abs(joint / examples - alpha) < 4 * (alpha * (1 - alpha) / examples) ** 0.5


def test_drawn_examples_are_never_joint_pairs_in_disguise():
    for batch in islice(batches(30, 10, 2, generator(), alpha=0.3), 20):
        assert not (batch.partners == batch.anchors[:, None]).any()


def test_a_label_of_nearly_all_rows_needs_one_draw(monkeypatch):
    labels = torch.zeros(1000, dtype=torch.int64)
    labels[0] = 1
    draws, draw = [], torch.rand
    monkeypatch.setattr(torch, "rand", lambda *a, **k: draws.append(1) or draw(*a, **k))
    others = partners(1000, 1, generator(), labels)
    assert (others[1:] == 0).all()
    assert len(draws) == 1


def test_copies_of_one_observation_have_no_all_pairs_batches():
    with pytest.raises(DataError, match="of one group or copies of one"):
        next(batches(10, 5, None, generator(), labels=torch.zeros(10)))


def test_all_pairs_batches_always_hold_an_unpaired_pair():
    labels = torch.arange(1000).clamp(min=900)
    stream = batches(1000, 8, None, generator(), labels=labels)
    assert min(len(batch.joint) for batch in islice(stream, 300)) >= 2


def test_drawing_needs_explicit_partners():
    with pytest.raises(ValueError, match="explicit partners"):
        next(batches(10, 5, None, generator(), alpha=0.5))
