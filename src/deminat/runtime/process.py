"""Settings of a process: one thread, memory that is not returned, products in bfloat16.

A large layer has gradients of tens of megabytes, which are freed after each step and needed in the
next. By default the C library returns such blocks to the system, which clears every page of a new
one on first use: a fifth of the time of a step of the paper's convolutional critic.
"""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

import torch

__all__ = ["keep_freed_memory", "multiplies_bfloat16", "one_thread"]

_LOCK = threading.RLock()
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # as in malloc.h
_NEVER = 2**31 - 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: for small networks faster than several, and repeatable.

    All threads of a process share this setting and the seeds, so they enter one after another.
    """
    with _LOCK:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Tell the C library of this process not to return freed memory to the system."""
    with suppress(OSError, AttributeError, TypeError):  # only glibc has mallopt
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)


@cache
def multiplies_bfloat16() -> bool:
    """Tell whether products in bfloat16 work here.

    Some virtual machines announce instructions that crash the process, so another process tries.
    """
    code = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.addmm(a, a, a)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
