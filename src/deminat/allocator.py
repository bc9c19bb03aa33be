"""Memory that is freed stays with the process.

A large layer has gradients of tens of megabytes, which are freed after each step and wanted again
in the next. By default the C library gives such blocks back to the system, and every page of a new
one is cleared on first touch: a fifth of the time of a step of the paper's convolutional critic.
"""

import ctypes
from contextlib import suppress

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # as in malloc.h
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Tell the C library of this process, if it is one that listens, to keep what is freed."""
    with suppress(OSError, AttributeError, TypeError):  # other systems have no mallopt
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
