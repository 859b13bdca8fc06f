"""What one process of a server with several does, and what it shares with the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from unpoison.collector.storage.change_signal import ChangeSignal
from unpoison.collector.storage.forwarded_writes import WriteAddress


@dataclass(frozen=True)
class WorkerRole:
    """The role of a worker: whether it answers, writes, and does the periodic jobs.

    On PostgreSQL every worker answers and writes. An SQLite file has one writer: the first worker
    commits for all, and the others answer.

    >>> alone, first = WorkerRole(), WorkerRole(0, writer=WriteAddress("writer.sock", b"a key"))
    >>> (alone.answers, alone.forwards, alone.leads), (first.answers, first.forwards, first.leads)
    ((True, False, True), (False, False, True))
    """

    index: int = 0
    folder: Path | None = None
    """A private folder of the workers; None for a server of one process."""
    writer: WriteAddress | None = None
    """Where the first worker commits for the others; None where each commits for itself."""
    changes: ChangeSignal = field(default_factory=ChangeSignal, compare=False)

    @property
    def leads(self) -> bool:
        """Whether it does what one process does for all: estimates, alarms, retention."""
        return self.index == 0

    @property
    def answers(self) -> bool:
        """Whether it answers devices and operators."""
        return self.writer is None or not self.leads

    @property
    def forwards(self) -> bool:
        """Whether another process commits its batches."""
        return self.writer is not None and not self.leads
