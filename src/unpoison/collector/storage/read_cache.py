"""One-second cache of database reads, shared by concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection

from unpoison.collector.clock import Clock
from unpoison.collector.storage.change_signal import ChangeSignal
from unpoison.collector.storage.database import Database

LIFETIME_SECONDS = 1.0
"""How long a result is served. Thousands of requests a second then cost one read, and an
operator's change made on another server shows within a second."""
MOST_ENTRIES = 10_000
"""Bound on memory: names contain campaign ids, which anybody may invent."""
Result = TypeVar("Result")


class ReadCache:
    """Results of database reads by name, each kept for a second.

    Single-flight: callers who ask for a name that is being read wait for that reading instead of
    starting another. Results may be a second old, so write transactions read again what they
    depend on.

    >>> from unpoison.collector.storage.operator_tokens import stored_operators
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     asyncio.run(ReadCache(database, Clock()).get("operators", stored_operators))
    []
    """

    def __init__(
        self, database: Database, clock: Clock, changes: ChangeSignal | None = None
    ) -> None:
        self.database, self.clock = database, clock
        self.changes = changes or ChangeSignal()
        """Shared with the other processes of a server, whose changes drop entries here too."""
        self.mark = self.changes.mark()
        self.entries: dict[str, tuple[float, asyncio.Task[Any]]] = {}
        """Name to expiry and reading, which may still be under way."""

    async def get(self, name: str, read: Callable[[Connection], Result]) -> Result:
        """The cached result under `name`, or that of `read`, which concurrent callers share."""
        if self.changes.mark() != self.mark:
            self._drop()
        now = self.clock.steady()
        expires, reading = self.entries.get(name, (0.0, None))
        # A failed reading is not kept: the next caller tries again at once.
        if reading is None or now >= expires or _failed(reading):
            if len(self.entries) >= MOST_ENTRIES:
                self.entries.clear()
            reading = asyncio.create_task(self.read(read))
            self.entries[name] = (now + LIFETIME_SECONDS, reading)
        # Shielded: a caller who disconnects must not cancel the reading of the others.
        result: Result = await asyncio.shield(reading)
        return result

    async def read(self, read: Callable[[Connection], Result]) -> Result:
        """The result of `read` in a transaction of its own, past the cache."""
        return await asyncio.to_thread(self._read, read)

    def _read(self, read: Callable[[Connection], Result]) -> Result:
        with self.database.reading() as connection:
            return read(connection)

    def clear(self) -> None:
        """Drop all entries, after a change that callers must see at once."""
        self.changes.change()
        self._drop()

    def _drop(self) -> None:
        # Before the entries go: a change that comes in between is then noticed next time.
        self.mark = self.changes.mark()
        self.entries.clear()


def _failed(reading: asyncio.Task[Any]) -> bool:
    return reading.done() and (reading.cancelled() or reading.exception() is not None)
