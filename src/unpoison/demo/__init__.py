"""`make demo`: all methods on one poisoned collection, then a collector with devices over HTTP."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Print a line at once, also where output is buffered."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
