"""Malformed input ends in an answer or in one line of error; see `fuzzing`."""

import pytest

from fuzzing import fuzz


@pytest.mark.parametrize("part", range(6))
def test_malformed_input_is_refused_or_answered(part):
    outcomes, faults = fuzz(50, 50 * part)
    assert not faults
    assert sum(outcomes.values()) == 50


@pytest.mark.slow
def test_five_thousand_malformed_inputs():
    outcomes, faults = fuzz(5000)
    assert not faults
    assert min(
        sum(n for (_, found), n in outcomes.items() if found == o) for o in ("answer", "refused")
    )
