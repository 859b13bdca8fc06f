"""Reading request bodies under limits: size, time, and memory over all requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from unpoison.collector.faults import Fault
from unpoison.collector.http.body_memory import BodyMemory

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

MOST_BYTES = 2**20
"""The most bytes of a body: a device with the most reports allowed sends half as many."""
MOST_BATCH_BYTES = 2**23
"""The most bytes of a gateway's batch, which has up to 10,000 submissions."""
BATCH_PATH = "/batch"
MOST_BYTES_IN_FLIGHT = 2**26
"""The most bytes of all bodies in memory. Without it every allowed connection could send a batch of
the largest size, and a sender does not have to be known to the collector for that."""
ALWAYS_ADMITTED_BYTES = 2**14
"""Bodies up to this size are exempt from the limit above: devices report while gateways wait."""
MIN_BYTES_PER_SECOND = 2**16
"""The rate that a long body must keep up after its first seconds."""
BODILESS = ("GET", "HEAD", "OPTIONS")


class RequestBody:
    """The body of one request, read as it comes and joined once.

    >>> body = RequestBody(BodyMemory())
    >>> body.add(b"[]", limit=10)
    >>> body.size, body.memory.in_flight
    (2, 2)
    >>> body.release()
    >>> body.memory.in_flight
    0
    """

    def __init__(self, memory: BodyMemory) -> None:
        self.memory = memory
        self.chunks: list[bytes] = []
        self.size = self.held = 0

    async def read(self, scope: Any, receive: Receive, seconds: float) -> None:
        """Read the whole body; refuse one that is too large, too slow, or not JSON."""
        headers = dict(scope["headers"])
        limit = MOST_BATCH_BYTES if scope["path"].endswith(BATCH_PATH) else MOST_BYTES
        # A body that announces its size is refused before it is sent.
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > limit:
            raise Fault("too-large")
        deadline = time.monotonic() + seconds
        more = scope["method"] not in BODILESS
        while more:
            remaining = deadline + self.size / MIN_BYTES_PER_SECOND - time.monotonic()
            message = await _within(remaining, receive)
            if message["type"] == "http.disconnect":
                raise Fault("too-slow", "The request ended before its body.")
            self.add(message.get("body", b""), limit)
            more = message.get("more_body", False)
        if self.size and not _is_json(headers.get(b"content-type", b"")):
            raise Fault("unsupported-media-type")

    def add(self, chunk: bytes, limit: int) -> None:
        """Keep a chunk, if the body stays within its limit and there is memory."""
        self.size += len(chunk)
        if self.size > limit:
            raise Fault("too-large")
        full = self.memory.in_flight + len(chunk) > MOST_BYTES_IN_FLIGHT
        if self.size > ALWAYS_ADMITTED_BYTES and full:
            raise Fault("unavailable", "Too many large requests at once: try again later.")
        self.memory.take(len(chunk))
        self.held += len(chunk)
        self.chunks.append(chunk)

    def release(self) -> None:
        """Give the memory back."""
        self.memory.release(self.held)

    def replayed(self, receive: Receive) -> Receive:
        """A `receive` that returns the body in one message, and then what the client sends."""
        body = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks.clear()
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        return replay


async def _within(seconds: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await receive()
    except TimeoutError:
        raise Fault("too-slow") from None


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"
