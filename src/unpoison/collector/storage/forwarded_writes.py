"""Batches that one process commits for others, where a database allows one writer.

Processes that answer devices send whole batches to the process that writes, through a Unix socket
in a private folder; there the batches of all of them share transactions. What they send is
pickled: both sides are the same program and have proved to each other that they hold its key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from unpoison.collector.faults import Fault
from unpoison.collector.storage.writer import TIMEOUT_SECONDS, Call, Writer

log = logging.getLogger("unpoison.collector")
DRAIN_SECONDS = 10.0
"""Longest wait for the other processes to end: as long as they wait for their own requests."""
DRAIN_STEP_SECONDS = 0.05
"""Seconds between looks at whether they have ended, which nobody waits for but the supervisor."""


@dataclass(frozen=True)
class WriteAddress:
    """Where the writing process listens, and the key that the others must hold.

    >>> WriteAddress("writer.sock", b"a key")
    WriteAddress(path='writer.sock')
    """

    path: str
    key: bytes = field(repr=False)


class ForwardedCommit:
    """Commits batches in the writing process: a `Commit` for the writer of another process.

    >>> ForwardedCommit(WriteAddress("nobody.sock", b"a key"))([])
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: The collector cannot store anything now: try again later.
    """

    def __init__(self, address: WriteAddress) -> None:
        self.address = address
        self.connection: Connection | None = None

    def __call__(self, calls: Sequence[Call]) -> list[list[Any]]:
        """Send a batch and wait until it is committed."""
        try:
            connection = self.connection = self.connection or self._connected()
            connection.send(calls)
            # One that comes after all is not mistaken for the answer to a later batch: the
            # connection is given up.
            if not connection.poll(TIMEOUT_SECONDS):
                raise TimeoutError
            results, fault = connection.recv()
        except (OSError, EOFError, AuthenticationError) as cause:
            self.close()
            raise Fault("unavailable") from cause
        if fault is not None:
            raise fault
        return results  # type: ignore[no-any-return]

    def _connected(self) -> Connection:
        client: Connection = Client(self.address.path, "AF_UNIX", self.address.key)
        return client

    def close(self) -> None:
        """Give the connection up; the next batch makes another."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@asynccontextmanager
async def committing_for_others(writer: Writer, address: WriteAddress) -> AsyncIterator[None]:
    """Commit the batches of other processes during the block, which ends after they have.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.storage.rate_buckets import TokenRequest, take_tokens
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def forwarded(address: WriteAddress) -> list[float]:
    ...     request = TokenRequest("guess", b"address", most=1, seconds_per_token=30.0)
    ...     with temporary_database() as database, closing(ForwardedCommit(address)) as commit:
    ...         async with Writer(database) as writer, committing_for_others(writer, address):
    ...             async with Writer(database, commit=commit) as other:
    ...                 waits = await other.apply(take_tokens, [request] * 2)
    ...             commit.close()
    ...     return waits
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(forwarded(WriteAddress(f"{folder}/writer.sock", b"a key")))
    [0.0, 30.0]
    """
    # Of a writing process that was killed.
    Path(address.path).unlink(missing_ok=True)
    with closing(Listener(address.path, "AF_UNIX", authkey=address.key)) as listener:
        committer = _Committer(writer, asyncio.get_running_loop())
        Thread(target=committer.accept, args=(listener,), daemon=True).start()
        yield
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while committer.connections:
                    await asyncio.sleep(DRAIN_STEP_SECONDS)


class _Committer:
    """Threads that receive batches, and hand them to the writer on its event loop."""

    def __init__(self, writer: Writer, loop: asyncio.AbstractEventLoop) -> None:
        self.writer, self.loop = writer, loop
        self.lock = Lock()
        self.connections = 0

    def accept(self, listener: Listener) -> None:
        """Serve each process that connects in a thread of its own, until the listener closes."""
        while True:
            try:
                connection = listener.accept()
            except (EOFError, AuthenticationError):
                # A process that ended while it connected, or one that is none of ours.
                continue
            except OSError:
                return
            self._count(1)
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with closing(connection), suppress(EOFError, OSError):
            while True:
                connection.send(self._outcome(connection.recv()))
        self._count(-1)

    def _outcome(self, calls: Sequence[Call]) -> tuple[list[list[Any]] | None, Fault | None]:
        """Results and no fault, or a fault and no results."""
        try:
            committed = asyncio.run_coroutine_threadsafe(self._commit(calls), self.loop)
            return committed.result(), None
        except Fault as fault:
            return None, fault.without_trace()
        except Exception as fault:
            log.error("transaction failed", extra={"fault": type(fault).__name__})
            return None, Fault("internal")

    async def _commit(self, calls: Sequence[Call]) -> list[list[Any]]:
        return list(await asyncio.gather(*(self.writer.apply(*call) for call in calls)))

    def _count(self, step: int) -> None:
        with self.lock:
            self.connections += step
