"""A lock file that one process at a time can hold, and that is free again however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE = 0o600
"""File mode: readable and writable by the owner only."""
PID_DIGITS = 20
"""The most digits of a process id that are read back."""


class LockHeld(Exception):
    """Another process holds the lock; `holder` is its process id, as it wrote it down."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


@contextmanager
def process_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made if it is missing; LockHeld if another holds it.

    The system drops the lock with the process, even a killed one. Child processes that are started
    meanwhile do not hold it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, process_lock(Path(folder, "lock")):
    ...     try:
    ...         with process_lock(Path(folder, "lock")):
    ...             pass
    ...     except LockHeld as fault:
    ...         fault.holder == str(os.getpid())
    True
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        if not _lock(file):
            holder = os.read(file, PID_DIGITS).decode(errors="replace").strip()
            raise LockHeld(holder or "unknown")
        # The file stays when the lock is released: were it removed, a process that has it open
        # already would lock a file that nobody else can see.
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        yield
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """Take the lock of an open file without waiting; returns whether it was free."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return _lock_on_windows(file)
    try:
        # Of the open file, not of the process as with `lockf`: a second server within one process
        # is refused too.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_on_windows(file: int) -> bool:  # pragma: no cover - Windows
    import msvcrt

    try:
        # A byte behind the process id: on Windows a locked part cannot be read by others.
        os.lseek(file, PID_DIGITS, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return False
    finally:
        os.lseek(file, 0, os.SEEK_SET)
    return True
