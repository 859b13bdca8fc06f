"""How many cores there are to use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Those that this process may run on, where the system tells; else all of the machine.

    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
