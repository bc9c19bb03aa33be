"""What holds for all tests."""

import os

# Commands would start a process for each core, in each of the processes that test.
os.environ.setdefault("DEMINAT_JOBS", "1")
