"""What holds for all tests."""

import os
import signal

# Commands would start a process for each core, in each of the processes that test.
os.environ.setdefault("DEMINAT_JOBS", "1")

# A run in the background of some shells ignores Ctrl-C, and so would the commands that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
