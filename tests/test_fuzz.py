"""Whatever comes in, an answer or one line comes out; see `fuzzing`."""

import pytest

from fuzzing import fuzz


@pytest.mark.parametrize("part", range(6))
def test_malformed_input_is_refused_or_answered(part):
    fates, faults = fuzz(50, 50 * part)
    assert not faults
    assert sum(fates.values()) == 50


@pytest.mark.slow
def test_five_thousand_malformed_inputs():
    fates, faults = fuzz(5000)
    assert not faults
    assert min(sum(n for (_, f), n in fates.items() if f == fate) for fate in ("answer", "refused"))
