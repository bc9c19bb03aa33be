"""Adjacent rows that are similar cause a warning; others do not."""

import numpy as np
import pytest
from scipy.signal import lfilter

from deminat.data.dependence import correlation_time, gap_between, serial_warnings
from deminat.data.sample import RowOptions, as_sample


def slow_series(n, seed, rho=0.95):
    steps = np.random.default_rng(seed).normal(size=(n + 500, 1))
    return lfilter([1], [1, -rho], steps, axis=0)[500:]


def test_a_correlation_time_is_that_of_the_process():
    a = slow_series(200_000, 0, rho=0.9)[:, 0]
    assert correlation_time(a - a.mean()) == pytest.approx(19, rel=0.15)  # (1 + rho) / (1 - rho)
    b = np.random.default_rng(0).normal(size=20_000)
    assert correlation_time(b - b.mean()) == pytest.approx(1, abs=0.2)
    assert correlation_time(np.zeros(50)) == 1
    swing = np.cos(np.pi / 2 * np.arange(5_000)) + 0.1 * b[:5_000]
    assert correlation_time(swing - swing.mean()) > 500


@pytest.mark.parametrize("n", [300, 2_000])
@pytest.mark.parametrize("seed", range(10))
def test_two_slow_series_always_cause_a_warning(n, seed):
    (caution,) = serial_warnings(slow_series(n, seed), slow_series(n, seed + 100))
    assert caution.code == "autocorrelated"


def test_one_slow_side_causes_no_warning():
    rng = np.random.default_rng(0)
    assert serial_warnings(slow_series(1_000, 0), rng.normal(size=(1_000, 1))) == ()


def test_false_alarms_are_rare():
    rng = np.random.default_rng(0)
    pairs = ((rng.normal(size=(200, 5)), rng.standard_cauchy((200, 5))) for _ in range(300))
    assert sum(bool(serial_warnings(x, y)) for x, y in pairs) == 0


def test_gaps_grow_with_correlation_time_but_leave_most_rows():
    rng = np.random.default_rng(0)
    gap, warnings = gap_between(rng.normal(size=(2_000, 1)), rng.normal(size=(2_000, 1)))
    assert gap <= 3
    assert warnings == ()
    slow, warnings = gap_between(slow_series(50_000, 0), rng.normal(size=(50_000, 1)))
    assert 80 < slow < 180
    assert warnings == ()
    gap, (caution,) = gap_between(slow_series(500, 0), slow_series(500, 1))
    assert (gap, caution.code) == (25, "short_series")


def test_few_rows_are_rarely_called_slow():
    warned = 0
    for seed in range(200):
        x, y = np.random.default_rng(seed).normal(size=(2, 30, 1))
        warned += bool(gap_between(x, y)[1])
    assert warned <= 20


def test_order_or_groups_stop_the_warning_and_copies_do_not_cause_it():
    x, y = slow_series(400, 0), slow_series(400, 1)
    codes = lambda sample: [w.code for w in sample.warnings]  # noqa: E731
    assert codes(as_sample(x, y)) == ["autocorrelated"]
    assert codes(as_sample(x, y, RowOptions(order=False))) == []
    assert codes(as_sample(x, y, RowOptions(order=True))) == ["short_series"]
    assert codes(as_sample(x, y, RowOptions(groups=np.arange(400) // 50))) == []
    rng = np.random.default_rng(0)
    twice = [np.repeat(rng.normal(size=300), 2) for _ in range(2)]
    assert codes(as_sample(*twice)) == ["duplicates"]
