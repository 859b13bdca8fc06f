"""A load generator: requests at a steady rate over persistent connections, on this machine only.

Latency is counted from the moment at which a request was due, so that a slow answer is not hidden
by requests that were never sent.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

CONNECTIONS = 256
"""Connections at once: at 1000 requests a second each may take a quarter of a second."""
LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 30.0
"""Seconds that an answer is waited for, far more than any latency that would be good enough. They
are also the latency of a request without an answer."""
SLOWEST_RATE = 20.0
"""Requests a second: a server that answers fewer is not waited for to the end."""
BROKEN = 0
"""The status of a request that got no answer."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of requests, in their order: statuses, answers and latencies; seconds in all."""

    statuses: list[int]
    answers: list[bytes]
    latencies: list[float]
    seconds: float

    @property
    def good(self) -> int:
        """The number of requests that were answered with status 200."""
        return sum(status == 200 for status in self.statuses)

    def percentile(self, per_cent: float) -> float:
        """The latency that so many per cent of the requests stay under."""
        return float(np.percentile(self.latencies, per_cent))


def post(path: str, body: Any) -> bytes:
    """The bytes of a POST request with a JSON body."""
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def fire(
    port: int,
    requests: Sequence[bytes],
    rate: float | None = None,
    connections: int = CONNECTIONS,
) -> Outcome:
    """Send all requests, at so many a second or as fast as answers come."""
    return asyncio.run(_fire(port, requests, rate, connections))


async def _fire(
    port: int, requests: Sequence[bytes], rate: float | None, connections: int
) -> Outcome:
    pending = [_Request(index, data) for index, data in enumerate(requests)]
    time_limit = ANSWER_SECONDS + (len(requests) / rate if rate else len(requests) / SLOWEST_RATE)
    waiting = iter(pending)
    started = time.perf_counter()
    workers = [_worker(port, waiting, started, rate) for _ in range(connections)]
    with suppress(TimeoutError):
        async with asyncio.timeout(time_limit):
            await asyncio.gather(*workers)
    seconds = time.perf_counter() - started
    return Outcome(
        [request.status for request in pending],
        [request.answer for request in pending],
        [request.latency for request in pending],
        seconds,
    )


@dataclass
class _Request:
    """A request, and what came of it."""

    index: int
    data: bytes
    status: int = BROKEN
    answer: bytes = b""
    latency: float = ANSWER_SECONDS


async def _worker(
    port: int, waiting: Iterator[_Request], started: float, rate: float | None
) -> None:
    """Take requests one by one when they are due; a connection that breaks is made anew."""
    connection: _Connection | None = None
    for request in waiting:
        now = time.perf_counter()
        due = now if rate is None else started + request.index / rate
        if due > now:
            await asyncio.sleep(due - now)
        try:
            connection = connection or await _Connection.open(port)
            async with asyncio.timeout(ANSWER_SECONDS):
                request.status, request.answer = await connection.send(request.data)
            request.latency = time.perf_counter() - due
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            if connection is not None:
                connection.writer.close()
            connection = None
    if connection is not None:
        connection.writer.close()


@dataclass(frozen=True)
class _Connection:
    """A bare HTTP/1.1 connection, to leave most of the processor to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int) -> _Connection:
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await self.reader.readexactly(length)
