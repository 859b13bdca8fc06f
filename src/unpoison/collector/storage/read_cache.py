"""What was read a moment ago need not be read again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection

from unpoison.collector.clock import Clock
from unpoison.collector.storage.database import Database

SECONDS = 1.0
MOST = 10_000
Result = TypeVar("Result")


class Recent:
    """Reads by name, kept for a second; transactions that depend on them look again.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> from unpoison.collector.storage.operator_tokens import operator_hashes
    >>> with scratch_database() as database:
    ...     asyncio.run(Recent(database, Clock()).get("operators", operator_hashes))
    []
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock
        self.known: dict[str, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, name: str, function: Callable[[Connection], Result]) -> Result:
        """What a function reads, now or less than a second ago; all who ask share one reading."""
        now = self.clock.steady()
        until, reading = self.known.get(name, (0.0, None))
        if reading is None or now >= until or _failed(reading):
            if len(self.known) >= MOST:
                self.known.clear()
            reading = asyncio.create_task(self.read(function))
            self.known[name] = (now + SECONDS, reading)
        result: Result = await asyncio.shield(reading)
        return result

    async def read(self, function: Callable[[Connection], Result]) -> Result:
        """What a function reads now, in a thread of its own."""
        return await asyncio.to_thread(self._read, function)

    def _read(self, function: Callable[[Connection], Result]) -> Result:
        with self.database.reading() as connection:
            return function(connection)

    def forget(self) -> None:
        """Something has changed."""
        self.known.clear()


def _failed(reading: asyncio.Task[Any]) -> bool:
    return reading.done() and (reading.cancelled() or reading.exception() is not None)
