"""What every request passes: limits on its body, one log line, one measurement, safe headers."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from unpoison.collector.faults import Fault
from unpoison.collector.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

SMALL, LARGE = 2**20, 2**25
IN_FLIGHT = 2**28
"""Bytes of bodies that may be held at once, over all requests; small ones always find room."""
SLOWEST = 2**16
"""Bytes a second that a long body must keep up."""
LARGE_PATH = "/batch"
CONTENT_SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}
REVALIDATED = {b"cache-control": b"no-cache"}
"""For files, which the browser may keep as long as it asks whether they are still the same."""
FILES = ("/static/", "/client.js")
log = logging.getLogger("unpoison.collector")


class Guard:
    """An ASGI application around another one.

    >>> Guard(None, Metrics(), seconds=10.0).in_flight
    0
    """

    def __init__(self, application: Application | None, metrics: Metrics, seconds: float) -> None:
        self.application = application
        self.metrics = metrics
        self.seconds = seconds
        self.in_flight = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request; whatever goes wrong inside ends here."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        answer = _Answer(send, HEADERS | REVALIDATED if _is_file(scope["path"]) else HEADERS)
        started = time.perf_counter()
        body = bytearray()
        try:
            await self._fill(body, scope, receive)
            await self._inner(scope, _replayed(bytes(body), receive), answer)
        except Fault as fault:
            await answer.refuse(fault)
        except Exception as fault:
            log.error(
                "internal fault", extra={"fault": type(fault).__name__, "where": _where(fault)}
            )
            await answer.refuse(Fault("internal"))
        finally:
            self.in_flight -= len(body)
            self._tell(scope, answer, time.perf_counter() - started)

    async def _inner(self, scope: Any, receive: Receive, send: Send) -> None:
        if self.application is not None:
            await self.application(scope, receive, send)

    async def _fill(self, body: bytearray, scope: Any, receive: Receive) -> None:
        """The whole body, if it is not too large, too slow, or of another kind."""
        headers = dict(scope["headers"])
        limit = LARGE if scope["path"].endswith(LARGE_PATH) else SMALL
        promised = headers.get(b"content-length", b"0")
        if not promised.isdigit() or int(promised) > limit:
            raise Fault("too-large")
        deadline = time.monotonic() + self.seconds
        more = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        while more:
            left = deadline + len(body) / SLOWEST - time.monotonic()
            message = await _within(left, receive)
            if message["type"] == "http.disconnect":
                raise Fault("too-slow", "The request ended before its body.")
            self._hold(body, message.get("body", b""), limit)
            more = message.get("more_body", False)
        if body and not _is_json(headers.get(b"content-type", b"")):
            raise Fault("unsupported-media-type")

    def _hold(self, body: bytearray, part: bytes, limit: int) -> None:
        """Keep a part of a body that is still coming."""
        size = len(body) + len(part)
        if size > limit:
            raise Fault("too-large")
        if size > SMALL and self.in_flight + len(part) > IN_FLIGHT:
            raise Fault("unavailable", "Too many large requests at once: try again later.")
        body += part
        self.in_flight += len(part)

    def _tell(self, scope: Any, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        self.metrics.requests.labels(route, str(answer.status)).observe(seconds)
        level = logging.DEBUG if answer.status < 400 else logging.INFO
        if log.isEnabledFor(level):
            told = {"method": scope["method"], "route": route, "status": answer.status}
            log.log(level, "request", extra={**told, "milliseconds": round(1000 * seconds, 1)})


class _Answer:
    """The way back: adds headers, and remembers whether something was said."""

    def __init__(self, send: Send, headers: dict[bytes, bytes]) -> None:
        self.send, self.headers = send, headers
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message.get("headers", [])}
            more = [(name, text) for name, text in self.headers.items() if name not in own]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await self.send(message)

    async def refuse(self, fault: Fault) -> None:
        """Say no, unless an answer has begun; the connection ends, for its body may not have."""
        if self.status:
            return
        body = json.dumps(fault.body()).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if fault.retry_after is not None:
            headers.append((b"retry-after", str(fault.retry_after).encode()))
        await self({"type": "http.response.start", "status": fault.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


async def _within(seconds: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await receive()
    except TimeoutError:
        raise Fault("too-slow") from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _is_file(path: str) -> bool:
    return path.startswith(FILES)


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def _where(fault: BaseException) -> str:
    """The place in our code, without what was at work there."""
    frames = traceback.extract_tb(fault.__traceback__)
    return " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))
