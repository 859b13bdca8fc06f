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
from unpoison.collector.service.collector import Collector

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

SMALL, LARGE = 2**20, 2**23
IN_FLIGHT = 2**26
"""Bytes of bodies that may be held at once, over all requests."""
LITTLE = 2**14
"""Bodies of this size always find room: devices report while gateways wait."""
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

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> from unpoison.collector.settings import Settings
    >>> async def silent(scope, receive, send) -> None: ...
    >>> with scratch_database() as database:
    ...     guard = Guard(silent, Collector(Settings.load(), database, ["a key"]))
    >>> asyncio.run(guard({"type": "lifespan"}, None, None))
    """

    def __init__(self, application: Application, collector: Collector) -> None:
        self.application = application
        self.collector = collector
        self.settings = collector.settings
        self.in_flight = 0
        self.requests = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request; whatever goes wrong inside ends here."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        answer = _Answer(send, self._headers(scope))
        started = time.perf_counter()
        body = _Body(self)
        self.requests += 1
        try:
            if self.requests > self.settings.connections:
                raise Fault("unavailable", "Too many requests at once: try again later.")
            await self._fill(body, scope, receive)
            await self.application(scope, body.replayed(receive), answer)
        except Fault as fault:
            scope["fault"] = fault
            await answer.refuse(fault)
        except Exception as fault:
            log.error(
                "internal fault", extra={"fault": type(fault).__name__, "where": _where(fault)}
            )
            scope["fault"] = Fault("internal")
            await answer.refuse(scope["fault"])
        finally:
            self.requests -= 1
            body.release()
            self._tell(scope, answer, time.perf_counter() - started)

    def _headers(self, scope: Any) -> dict[bytes, bytes]:
        """The headers that an answer has unless it has its own."""
        headers = HEADERS | REVALIDATED if scope["path"].startswith(FILES) else HEADERS
        if not self.settings.allowed_origins:
            return headers
        origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
        if origin not in self.settings.allowed_origins:
            return headers
        allowed = {b"access-control-allow-origin": origin.encode("latin-1"), b"vary": b"Origin"}
        return headers | allowed

    async def _fill(self, body: _Body, scope: Any, receive: Receive) -> None:
        """The whole body, if it is not too large, too slow, or of another kind."""
        headers = dict(scope["headers"])
        limit = LARGE if scope["path"].endswith(LARGE_PATH) else SMALL
        promised = headers.get(b"content-length", b"0")
        if not promised.isdigit() or int(promised) > limit:
            raise Fault("too-large")
        deadline = time.monotonic() + self.settings.request_seconds
        more = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        while more:
            left = deadline + body.size / SLOWEST - time.monotonic()
            message = await _within(left, receive)
            if message["type"] == "http.disconnect":
                raise Fault("too-slow", "The request ended before its body.")
            body.add(message.get("body", b""), limit)
            more = message.get("more_body", False)
        if body.size and not _is_json(headers.get(b"content-type", b"")):
            raise Fault("unsupported-media-type")

    def _tell(self, scope: Any, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        self.collector.metrics.requests.labels(route, str(answer.status)).observe(seconds)
        fault: Fault | None = scope.get("fault")
        campaign = str(scope.get("path_params", {}).get("campaign", ""))
        if fault is not None:
            self.collector.reject(campaign, fault)
        level = logging.DEBUG if answer.status < 400 else logging.INFO
        if log.isEnabledFor(level):
            told = {"method": scope["method"], "route": route, "status": answer.status}
            more = {} if fault is None else {"cause": fault.code}
            log.log(
                level, "request", extra={**told, **more, "milliseconds": round(1000 * seconds, 1)}
            )


class _Body:
    """A body as it comes, in parts that are joined once."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.parts: list[bytes] = []
        self.size = self.held = 0

    def add(self, part: bytes, limit: int) -> None:
        """Keep a part, if there is room."""
        self.size += len(part)
        if self.size > limit:
            raise Fault("too-large")
        if self.size > LITTLE and self.guard.in_flight + len(part) > IN_FLIGHT:
            raise Fault("unavailable", "Too many large requests at once: try again later.")
        self.guard.in_flight += len(part)
        self.held += len(part)
        self.parts.append(part)

    def release(self) -> None:
        """Give the room back."""
        self.guard.in_flight -= self.held

    def replayed(self, receive: Receive) -> Receive:
        """The body in one piece, then whatever comes."""
        whole = self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
        self.parts.clear()
        waiting = [{"type": "http.request", "body": whole, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        return replay


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
        headers, body = last_words(fault)
        await self({"type": "http.response.start", "status": fault.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def last_words(fault: Fault) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a refusal after which the connection ends.

    >>> headers, body = last_words(Fault("too-slow"))
    >>> dict(headers)[b"connection"], json.loads(body)["error"]["code"]
    (b'close', 'too-slow')
    """
    body = json.dumps(fault.body()).encode()
    head = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **{name.lower(): text for name, text in fault.headers.items()},
    }
    return [(name.encode(), text.encode()) for name, text in head.items()], body


async def _within(seconds: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await receive()
    except TimeoutError:
        raise Fault("too-slow") from None


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def _where(fault: BaseException) -> str:
    """The place in our code, without what was at work there."""
    frames = traceback.extract_tb(fault.__traceback__)
    return " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))
