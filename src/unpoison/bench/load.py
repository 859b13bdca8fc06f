"""A load generator: requests at a steady rate over kept connections, on this machine only.

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
LOOPBACK = "127.0.0.1"
GIVE_UP = 30.0
SLOWEST = 20.0
"""Requests a second: whoever answers fewer is not waited for to the end."""
BROKEN = 0
"""The status of a request that got no answer."""


@dataclass(frozen=True)
class Outcome:
    """What came of requests: their statuses and answers in order, and how long each took."""

    statuses: list[int]
    answers: list[bytes]
    latencies: list[float]
    seconds: float

    @property
    def good(self) -> int:
        """How many were answered well."""
        return sum(status == 200 for status in self.statuses)

    def percentile(self, share: float) -> float:
        """The latency that so many per cent stay under."""
        return float(np.percentile(self.latencies, share))


def post(path: str, body: Any) -> bytes:
    """A request as it goes over the line."""
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
    shots = [_Shot(at, request) for at, request in enumerate(requests)]
    bound = GIVE_UP + (len(requests) / rate if rate else len(requests) / SLOWEST)
    waiting = iter(shots)
    started = time.perf_counter()
    workers = [_worker(port, waiting, started, rate) for _ in range(connections)]
    with suppress(TimeoutError):
        async with asyncio.timeout(bound):
            await asyncio.gather(*workers)
    seconds = time.perf_counter() - started
    return Outcome(
        [shot.status for shot in shots],
        [shot.answer for shot in shots],
        [shot.latency for shot in shots],
        seconds,
    )


@dataclass
class _Shot:
    place: int
    request: bytes
    status: int = BROKEN
    answer: bytes = b""
    latency: float = GIVE_UP


async def _worker(port: int, waiting: Iterator[_Shot], started: float, rate: float | None) -> None:
    """Take requests one by one when they are due; a connection that breaks is made anew."""
    connection: _Connection | None = None
    for shot in waiting:
        now = time.perf_counter()
        due = now if rate is None else started + shot.place / rate
        if due > now:
            await asyncio.sleep(due - now)
        try:
            connection = connection or await _Connection.to(port)
            async with asyncio.timeout(GIVE_UP):
                shot.status, shot.answer = await connection.ask(shot.request)
            shot.latency = time.perf_counter() - due
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            if connection is not None:
                connection.writer.close()
            connection = None
    if connection is not None:
        connection.writer.close()


@dataclass(frozen=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def to(cls, port: int) -> _Connection:
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await self.reader.readexactly(length)
