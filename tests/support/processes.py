"""Which processes run, by parent or by process group, as `/proc` tells."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
HAS_PROC = (PROC / "self" / "stat").exists()


class ProcessStat(NamedTuple):
    """What tests need of a line of `/proc/PID/stat`."""

    pid: int
    state: str
    parent: int
    group: int


def children_of(pid: int) -> list[int]:
    return [process.pid for process in _processes() if process.parent == pid]


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    return any(process.pid == pid for process in _processes())


def group_members(group: int) -> list[int]:
    return [process.pid for process in _processes() if process.group == group]


def _processes() -> list[ProcessStat]:
    """All processes but zombies."""
    processes = []
    for file in PROC.glob("[0-9]*/stat"):
        try:
            # The name in the second field may hold spaces and parentheses.
            state, parent, group = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if state != "Z":
            processes.append(ProcessStat(int(file.parent.name), state, int(parent), int(group)))
    return processes


def resident_bytes(pid: int) -> int:
    """How much memory a process holds at this moment."""
    lines = (PROC / str(pid) / "status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return 1024 * int(kilobytes)
