"""The guard: what every request passes before and after the routes.

Limits on its body, default headers, one metric, one log line; and any exception becomes a response.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from unpoison.collector.faults import Fault
from unpoison.collector.http.body_memory import BodyMemory
from unpoison.collector.http.connection_slots import HEALTH_PATHS, RESERVED
from unpoison.collector.http.errors import closing_response
from unpoison.collector.http.forwarding import ForwardingWarning
from unpoison.collector.http.request_body import Message, Receive, RequestBody
from unpoison.collector.http.security_headers import default_headers
from unpoison.collector.service.collector import Collector

Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]
LOGGED_FRAMES = 4
"""Innermost frames that a log line names: enough to find the line, and no more."""
log = logging.getLogger("unpoison.collector")


class Guard:
    """ASGI middleware around the whole application.

    It is written against ASGI itself: framework middleware would cost every request more.

    >>> import asyncio
    >>> from unpoison.collector.settings import Settings
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def silent(scope, receive, send) -> None: ...
    >>> with temporary_database() as database:
    ...     guard = Guard(silent, Collector(Settings.load(), database, ["a key"]))
    >>> asyncio.run(guard({"type": "lifespan"}, None, None))
    """

    def __init__(self, application: Application, collector: Collector) -> None:
        self.application = application
        self.collector = collector
        self.settings = collector.settings
        self.body_memory = BodyMemory()
        self.forwarding_warning = ForwardingWarning()
        self.requests = 0
        """Requests that are being served."""

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request; no exception leaves this function."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        self.forwarding_warning.check(scope)
        response = _Response(send, self._default_headers(scope))
        started = time.perf_counter()
        body = RequestBody(self.body_memory)
        self.requests += 1
        try:
            self._check_load(scope)
            await body.read(scope, receive, self.settings.request_seconds)
            await self.application(scope, body.replayed(receive), response)
        except Fault as fault:
            scope["fault"] = fault
            await response.refuse(fault)
        except Exception as fault:
            # Class and place, but no message: it may quote what the client sent.
            log.error(
                "unhandled exception in a request",
                extra={"fault": type(fault).__name__, "where": _where(fault)},
            )
            scope["fault"] = Fault("internal")
            await response.refuse(scope["fault"])
        finally:
            self.requests -= 1
            body.release()
            self._record(scope, response, time.perf_counter() - started)

    def _check_load(self, scope: Any) -> None:
        """Refuse a request that is too many; health checks are always answered."""
        too_many = scope.get(RESERVED) or self.requests > self.settings.connections
        if too_many and scope["path"] not in HEALTH_PATHS:
            raise Fault("unavailable", "Too many requests at once: try again later.")

    def _default_headers(self, scope: Any) -> dict[bytes, bytes]:
        origins = self.settings.allowed_origins
        origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1") if origins else ""
        return default_headers(scope["path"], origin, origins)

    def _record(self, scope: Any, response: _Response, seconds: float) -> None:
        """Count, measure and log a request that is done."""
        # The route's pattern: paths would make a metric of each campaign, or of any nonsense.
        route = getattr(scope.get("route"), "path", "unknown")
        self.collector.metrics.requests.labels(route, str(response.status)).observe(seconds)
        fault: Fault | None = scope.get("fault")
        if fault is not None:
            self.collector.reject(str(scope.get("path_params", {}).get("campaign", "")), fault)
        level = logging.DEBUG if response.status < 400 else logging.INFO
        if log.isEnabledFor(level):
            fields: dict[str, Any] = {"method": scope["method"], "route": route}
            fields["status"] = response.status
            if fault is not None:
                fields["cause"] = fault.code
            fields["milliseconds"] = round(1000 * seconds, 1)
            log.log(level, "request", extra=fields)


class _Response:
    """A `send` that adds default headers, and remembers whether a response has begun."""

    def __init__(self, send: Send, headers: dict[bytes, bytes]) -> None:
        self.send, self.headers = send, headers
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own_headers = message.get("headers", [])
            own_names = {name for name, _ in own_headers}
            defaults = [item for item in self.headers.items() if item[0] not in own_names]
            message = {**message, "headers": [*own_headers, *defaults]}
        await self.send(message)

    async def refuse(self, fault: Fault) -> None:
        """Send a refusal, unless a response has begun, and close the connection.

        The body may not have been read to its end, so what follows on it is no request.
        """
        if self.status:
            return
        headers, body = closing_response(fault)
        await self({"type": "http.response.start", "status": fault.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _where(fault: BaseException) -> str:
    """The innermost functions and line numbers of a traceback, without any values."""
    frames = traceback.extract_tb(fault.__traceback__)[-LOGGED_FRAMES:]
    return " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
