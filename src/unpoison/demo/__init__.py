"""`make demo`: what the library does, on one screen, and a collector that runs the protocol."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
