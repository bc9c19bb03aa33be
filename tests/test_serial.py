"""Rows that resemble their neighbours are told; others are not."""

import numpy as np
import pytest
from scipy.signal import lfilter

from deminat.data.dependence import correlation_time, gap_between, serial_warnings
from deminat.data.sample import as_sample


def wandering(n, seed, rho=0.95):
    steps = np.random.default_rng(seed).normal(size=(n + 500, 1))
    return lfilter([1], [1, -rho], steps, axis=0)[500:]


def test_a_correlation_time_is_that_of_the_process():
    a = wandering(200_000, 0, rho=0.9)[:, 0]
    assert correlation_time(a - a.mean()) == pytest.approx(19, rel=0.15)  # (1 + rho) / (1 - rho)
    b = np.random.default_rng(0).normal(size=20_000)
    assert correlation_time(b - b.mean()) == pytest.approx(1, abs=0.2)
    assert correlation_time(np.zeros(50)) == 1
    swing = np.cos(np.pi / 2 * np.arange(5_000)) + 0.1 * b[:5_000]
    assert correlation_time(swing - swing.mean()) > 500


@pytest.mark.parametrize("n", [300, 2_000])
@pytest.mark.parametrize("seed", range(10))
def test_two_wandering_series_are_always_told(n, seed):
    (told,) = serial_warnings(wandering(n, seed), wandering(n, seed + 100))
    assert told.code == "autocorrelated"


def test_one_wandering_side_is_no_harm():
    rng = np.random.default_rng(0)
    assert serial_warnings(wandering(1_000, 0), rng.normal(size=(1_000, 1))) == ()


def test_false_alarms_are_rare():
    rng = np.random.default_rng(0)
    pairs = ((rng.normal(size=(200, 5)), rng.standard_cauchy((200, 5))) for _ in range(300))
    assert sum(bool(serial_warnings(x, y)) for x, y in pairs) == 0


def test_gaps_grow_with_memory_but_leave_most_rows():
    rng = np.random.default_rng(0)
    gap, told = gap_between(rng.normal(size=(2_000, 1)), rng.normal(size=(2_000, 1)))
    assert gap <= 3
    assert told == ()
    slow, told = gap_between(wandering(50_000, 0), rng.normal(size=(50_000, 1)))
    assert 80 < slow < 180
    assert told == ()
    gap, (told,) = gap_between(wandering(500, 0), wandering(500, 1))
    assert (gap, told.code) == (25, "slow")


def test_few_rows_are_not_called_slow_by_chance():
    told = 0
    for seed in range(200):
        x, y = np.random.default_rng(seed).normal(size=(2, 30, 1))
        told += bool(gap_between(x, y)[1])
    assert told <= 20


def test_order_or_groups_silence_the_warning_and_copies_do_not_cause_it():
    x, y = wandering(400, 0), wandering(400, 1)
    codes = lambda sample: [w.code for w in sample.warnings]  # noqa: E731
    assert codes(as_sample(x, y)) == ["autocorrelated"]
    assert codes(as_sample(x, y, order=False)) == []
    assert codes(as_sample(x, y, order=True)) == ["slow"]
    assert codes(as_sample(x, y, groups=np.arange(400) // 50)) == []
    rng = np.random.default_rng(0)
    twice = [np.repeat(rng.normal(size=300), 2) for _ in range(2)]
    assert codes(as_sample(*twice)) == ["duplicates"]
