"""The writer: many small writes, few transactions. Whoever is answered has been committed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, update

from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault
from unpoison.collector.storage.database import Database, reason
from unpoison.collector.storage.schema import campaigns

log = logging.getLogger("unpoison.collector")
PATIENCE = 15.0
"""Seconds after which a database that does not answer counts as gone."""
Result = TypeVar("Result")


class Apply(Protocol):
    """Does many requests of one kind in a transaction; results are in their order."""

    def __call__(self, connection: Connection, requests: Sequence[Any], now: int, /) -> list[Any]:
        """Return one result a request."""


@dataclass(frozen=True)
class Batching:
    """When a transaction begins: so many requests wait, or one has waited so long.

    >>> Batching().size
    512
    """

    size: int = 512
    delay: float = 0.01
    waiting: int = 20_000


@dataclass(frozen=True)
class _Work:
    apply: Apply
    requests: Sequence[Any]
    answer: asyncio.Future[list[Any]]


Observe = Callable[[int, float], None]
Lock = Callable[[Connection, Sequence[Any]], None]


class Writer:
    """One thread writes; requests that come meanwhile share the next transaction.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> async def count() -> int:
    ...     with scratch_database() as database:
    ...         async with Writer(database) as writer:
    ...             return await writer.call(lambda connection: 1 + 1)
    >>> asyncio.run(count())
    2
    """

    def __init__(
        self,
        database: Database,
        clock: Clock | None = None,
        batching: Batching | None = None,
        observe: Observe | None = None,
        lock: Lock | None = None,
    ) -> None:
        self.database = database
        self.clock = clock or Clock()
        self.batching = batching or Batching()
        self.observe: Observe = observe or (lambda requests, seconds: None)
        self.lock: Lock = lock or (lambda connection, requests: None)
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self.queue: asyncio.Queue[_Work] = asyncio.Queue()
        self.waiting = 0
        self.failing = False
        self.stuck = False
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Writer:
        self.task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Commit what waits, then stop; a database that hangs is not waited for without end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self.queue.join()
        self.stuck = not await self._idle()
        if self.task is not None:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task
        self.thread.shutdown(wait=not self.stuck)

    async def _idle(self) -> bool:
        """Whether the thread has come back from the database."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.get_running_loop().run_in_executor(self.thread, bool, True)
        except TimeoutError:
            return False

    async def apply(self, apply: Apply, requests: Sequence[Any]) -> list[Any]:
        """Results of requests, after they have been committed."""
        if self.waiting and self.waiting + len(requests) > self.batching.waiting:
            raise Fault("unavailable", "Too much is waiting to be stored: try again later.")
        work = _Work(apply, requests, asyncio.get_running_loop().create_future())
        self.waiting += len(requests)
        self.queue.put_nowait(work)
        return await _in_time(work.answer)

    async def call(self, function: Callable[[Connection], Result]) -> Result:
        """What a function of a transaction of its own gives."""
        loop = asyncio.get_running_loop()
        return await _in_time(loop.run_in_executor(self.thread, self._call, function))

    async def works(self) -> bool:
        """Whether the database can be written to: after a failure, a write has to succeed."""
        try:
            await self.call(_touch if self.failing else bool)
        except Fault:
            return False
        return True

    def _call(self, function: Callable[[Connection], Result]) -> Result:
        """A transaction of its own; whether it worked tells something about the next ones."""
        try:
            with self.database.writing() as connection:
                result = function(connection)
        except Fault as fault:
            self.failing = self.failing or fault.code == "unavailable"
            raise
        self.failing = self.failing and function is not _touch
        return result

    async def _run(self) -> None:
        while True:
            batch = await self._gathered()
            started = self.clock.steady()
            await self._answer(batch)
            size = sum(len(work.requests) for work in batch)
            self.waiting -= size
            self.observe(size, self.clock.steady() - started)
            for _ in batch:
                self.queue.task_done()

    async def _gathered(self) -> list[_Work]:
        """What waits, after giving others a moment to come."""
        batch = [await self.queue.get()]
        size = len(batch[0].requests)
        if size + self.queue.qsize() < self.batching.size:
            await asyncio.sleep(self.batching.delay)
        while size < self.batching.size and not self.queue.empty():
            batch.append(self.queue.get_nowait())
            size += len(batch[-1].requests)
        return batch

    async def _answer(self, batch: list[_Work]) -> None:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self.thread, self._commit, batch)
            self.failing = False
        except Exception as fault:
            self.failing = True
            log.error("transaction failed", extra={"fault": reason(fault)})
            for work in batch:
                if not work.answer.done():
                    work.answer.set_exception(fault)
            return
        for work, results in zip(batch, found, strict=True):
            if not work.answer.done():
                work.answer.set_result(results)

    def _commit(self, batch: list[_Work]) -> list[list[Any]]:
        """All requests of one kind together, each kind in the order of its first one."""
        found: dict[int, list[Any]] = {}
        now = self.clock.now()
        with self.database.writing() as connection:
            self.lock(connection, [each for work in batch for each in work.requests])
            for kind in dict.fromkeys(work.apply for work in batch):
                mine = [place for place, work in enumerate(batch) if work.apply is kind]
                requests = [each for place in mine for each in batch[place].requests]
                results = iter(kind(connection, requests, now))
                for place in mine:
                    found[place] = [next(results) for _ in batch[place].requests]
        return [found[place] for place in range(len(batch))]


def _touch(connection: Connection) -> None:
    """Write something that changes nothing."""
    connection.execute(update(campaigns).values(state=campaigns.c.state))


async def _in_time(answer: asyncio.Future[Result]) -> Result:
    """What a transaction gives. One that takes too long goes on, but nobody waits for it."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(answer)
    except TimeoutError:
        answer.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise Fault("unavailable") from None
