"""What holds for all tests."""

import os
import signal

import pytest

# Commands would start a process for each core, in each of the processes that test.
os.environ.setdefault("DEMINAT_JOBS", "1")

# A run in the background of some shells ignores Ctrl-C, and so would the commands that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def bfloat16():
    """Skip where the processor announces units for bfloat16 that end the process."""
    from deminat.runtime.process import multiplies_bfloat16

    if not multiplies_bfloat16():
        pytest.skip("this processor cannot multiply in bfloat16")
