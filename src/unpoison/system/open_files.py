"""How many files and sockets this process may have open."""

from __future__ import annotations

import sys


def allow_open_files(wanted: int) -> int:
    """Raise the limit on open files to what is wanted, if it is lower; returns what is allowed.

    The system's hard limit stays: only an administrator may raise that.

    >>> allow_open_files(64) >= 64
    True
    """
    if sys.platform == "win32":
        # Sockets are no file descriptors there, and have no such limit.
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
