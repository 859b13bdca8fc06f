"""Processor time of a process and of those that it started, as Linux tells."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
USER_FIELD = 11
"""Of `/proc/PID/stat`, counted after the name: user time, and the system's behind it."""


def tree_seconds(pid: int) -> float | None:
    """User and system time of a process and its descendants; None where it cannot be read.

    >>> seconds = tree_seconds(os.getpid())
    >>> seconds is None or seconds > 0
    True
    """
    if not (PROC / "self" / "stat").exists():
        return None
    fields = {int(file.parent.name): _fields(file) for file in PROC.glob("[0-9]*/stat")}
    tree = {pid}
    for _ in fields:
        children = {child for child, values in fields.items() if values and int(values[1]) in tree}
        if children <= tree:
            break
        tree |= children
    ticks = sum(int(part) for member in tree for part in fields.get(member, [])[USER_FIELD:][:2])
    return ticks / os.sysconf("SC_CLK_TCK")


def _fields(file: Path) -> list[str]:
    """The fields after the name, which may itself hold spaces; none if the process has ended."""
    try:
        return file.read_text().rpartition(")")[2].split()
    except OSError:
        return []
