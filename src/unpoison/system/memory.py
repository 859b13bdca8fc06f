"""Memory that the process has freed, given back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from typing import Any


def give_back_memory() -> None:
    """Collect garbage, and return free memory to the system where the C library can do that.

    glibc keeps what a thread has freed for later use: after a burst of large objects a process
    would keep its largest size for good.

    >>> give_back_memory()
    """
    gc.collect()
    trim = _trimming_function()
    if trim is not None:
        trim(0)


@cache
def _trimming_function() -> Any:
    """`malloc_trim` of glibc; other C libraries have no such function, or need none."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
