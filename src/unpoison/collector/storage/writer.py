"""The writer: one thread that commits the requests of many clients in few transactions.

A commit costs an fsync, whether it holds one request or hundreds. So requests that arrive within a
few milliseconds share a transaction, and none is answered before its transaction is committed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault
from unpoison.collector.storage.database import Database, log_reason
from unpoison.collector.storage.write_probe import WriteProbe

log = logging.getLogger("unpoison.collector")
TIMEOUT_SECONDS = 15.0
"""After this long without an answer the database counts as hanging, and callers get a 503.

Longer than any wait for a lock (3 s for SQLite, 10 s for PostgreSQL), so that a locked database is
reported as locked."""
PROBE_SECONDS = 5.0
"""How long a probe is taken for granted: load balancers ask every few seconds, and often several
of them do."""
Result = TypeVar("Result")


class BatchFunction(Protocol):
    """Handles many requests of one kind in one transaction."""

    def __call__(self, connection: Connection, requests: Sequence[Any], now: int, /) -> list[Any]:
        """Return one result for each request, in their order."""


@dataclass(frozen=True)
class Batching:
    """Limits by which requests are gathered into transactions.

    >>> Batching().size
    512
    """

    size: int = 512
    """Requests after which a transaction begins at once."""
    delay: float = 0.01
    """Seconds that the first request waits for others: ten of them, at 1,000 a second."""
    most_waiting: int = 20_000
    """Queued requests beyond which new ones are refused.

    About ten seconds' work at the measured rate (`unpoison bench collector`): with a longer queue,
    requests would be stored after their clients have been told that they were not."""


@dataclass(frozen=True)
class _QueuedCall:
    apply: BatchFunction
    requests: Sequence[Any]
    results: asyncio.Future[list[Any]]


Call = tuple[BatchFunction, Sequence[Any]]
"""A function, and the requests of one caller that it is to handle."""
Commit = Callable[[Sequence[Call]], list[list[Any]]]
"""Commits several calls in one transaction; returns the results of each, in their order."""
Observe = Callable[[int, float], None]
"""Hears of each transaction: how many requests it held, and how many seconds it took."""
Lock = Callable[[Connection, Sequence[Any]], None]
"""Takes the locks that all requests of a transaction need, before the first is handled."""


class Writer:
    """Queue of requests, and the one thread that writes them to the database.

    One thread is enough: SQLite allows one writer, and on PostgreSQL the campaign's locks would
    make several wait for each other.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def count() -> int:
    ...     with temporary_database() as database:
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
        commit: Commit | None = None,
    ) -> None:
        self.database = database
        self.clock = clock or Clock()
        self.batching = batching or Batching()
        self.observe: Observe = observe or (lambda requests, seconds: None)
        self.lock: Lock = lock or (lambda connection, requests: None)
        self.commit = commit or self._commit
        """Where batches are committed: here, unless another process does it for this one."""
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self.queue: asyncio.Queue[_QueuedCall] = asyncio.Queue()
        self.waiting = 0
        """Requests that are queued or being committed."""
        self.failing = False
        """Whether the last transaction failed for want of a database."""
        self.stuck = False
        """Whether the thread was still in the database when the writer stopped."""
        self.probe = WriteProbe(self.batching.size)
        self.probing = asyncio.Lock()
        self.probe_due = -math.inf
        """When the next probe is due, by the steady clock; after a failure it is due at once."""
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Writer:
        self.task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Commit what is queued, then stop; a database that hangs is given up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self.queue.join()
        self.stuck = not await self._is_idle()
        if self.task is not None:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task
        self.thread.shutdown(wait=not self.stuck)

    async def _is_idle(self) -> bool:
        """Whether the thread has returned from the database and takes work."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._in_thread(bool, True)
        except TimeoutError:
            return False

    async def apply(self, apply: BatchFunction, requests: Sequence[Any]) -> list[Any]:
        """Queue requests for the next transaction; returns their results once it is committed."""
        # One call alone may be larger than the whole queue: it would never find room otherwise.
        if self.waiting and self.waiting + len(requests) > self.batching.most_waiting:
            raise Fault("unavailable", "Too many requests are waiting to be stored: try later.")
        queued = _QueuedCall(apply, requests, asyncio.get_running_loop().create_future())
        self.waiting += len(requests)
        self.queue.put_nowait(queued)
        return await _in_time(queued.results)

    async def call(self, function: Callable[[Connection], Result]) -> Result:
        """Run a function in a transaction of its own; returns its result once committed."""
        return await _in_time(self._in_thread(self._call, function))

    async def truncate_log(self) -> None:
        """Empty SQLite's write-ahead log, between two transactions."""
        await _in_time(self._in_thread(self.database.truncate_log))

    async def is_writable(self) -> bool:
        """Whether a batch could be written: a write of its size must have succeeded just now."""
        try:
            await self.call(bool)
            await _in_time(self._in_thread(self.commit, []))
            async with self.probing:
                if self.failing or self.clock.steady() >= self.probe_due:
                    # Taken back first: what a killed server left would be in the way of a probe
                    # on a disk that is nearly full.
                    await self.call(self.probe.clear)
                    await self.call(self.probe.fill)
                    await self.call(self.probe.clear)
                    self.failing = False
                    self.probe_due = self.clock.steady() + PROBE_SECONDS
        except Fault:
            return False
        return True

    def _call(self, function: Callable[[Connection], Result]) -> Result:
        try:
            with self.database.writing() as connection:
                result = function(connection)
        except Fault as fault:
            self.failing = self.failing or fault.code == "unavailable"
            raise
        return result

    async def _run(self) -> None:
        while True:
            batch = await self._next_batch()
            started = self.clock.steady()
            await self._commit_and_reply(batch)
            size = sum(len(queued.requests) for queued in batch)
            self.waiting -= size
            self.observe(size, self.clock.steady() - started)
            for _ in batch:
                self.queue.task_done()

    async def _next_batch(self) -> list[_QueuedCall]:
        """The calls for the next transaction, after a short wait for others to arrive."""
        batch = [await self.queue.get()]
        size = len(batch[0].requests)
        if size + self.queue.qsize() < self.batching.size:
            await asyncio.sleep(self.batching.delay)
        while size < self.batching.size and not self.queue.empty():
            batch.append(self.queue.get_nowait())
            size += len(batch[-1].requests)
        return batch

    async def _commit_and_reply(self, batch: list[_QueuedCall]) -> None:
        try:
            calls = [(queued.apply, queued.requests) for queued in batch]
            batch_results = await self._in_thread(self.commit, calls)
            self.failing = False
        except Exception as fault:
            self.failing = True
            log.error("transaction failed", extra={"fault": log_reason(fault)})
            for queued in batch:
                if not queued.results.done():
                    queued.results.set_exception(fault)
            return
        for queued, results in zip(batch, batch_results, strict=True):
            # Done already if the caller has disconnected meanwhile.
            if not queued.results.done():
                queued.results.set_result(results)

    def _in_thread(
        self, function: Callable[..., Result], *arguments: Any
    ) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self.thread, function, *arguments)

    def _commit(self, calls: Sequence[Call]) -> list[list[Any]]:
        """Handle all requests of one kind together, each kind in the order of its first call."""
        if not calls:
            return []
        results: dict[int, list[Any]] = {}
        now = self.clock.now()
        with self.database.writing() as connection:
            # All locks first, in the one order that `lock` keeps. Were each kind of request to
            # lock when its turn comes, two servers could wait for one another.
            self.lock(connection, [request for _, requests in calls for request in requests])
            for function in dict.fromkeys(apply for apply, _ in calls):
                indices = [i for i, (apply, _) in enumerate(calls) if apply is function]
                requests = [request for i in indices for request in calls[i][1]]
                remaining = iter(function(connection, requests, now))
                for i in indices:
                    results[i] = [next(remaining) for _ in calls[i][1]]
        return [results[i] for i in range(len(calls))]


async def _in_time(future: asyncio.Future[Result]) -> Result:
    """The result of a transaction; one that takes too long goes on, but nobody waits for it."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await asyncio.shield(future)
    except TimeoutError:
        # Whatever it raises later is looked at here, else asyncio logs it as never retrieved.
        future.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise Fault("unavailable") from None
