"""Limits on request heads: time and size, enforced at the connection.

uvicorn has no setting for either with httptools, so its protocol class is subclassed. That class
is no documented interface; this file is the only one that knows it, and it checks at start that
everything it relies on is still there.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from types import FunctionType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from unpoison.collector.faults import Fault
from unpoison.collector.http.errors import closing_response
from unpoison.collector.http.security_headers import HEADERS
from unpoison.errors import UnpoisonError

MOST_HEAD_BYTES = 2**16
"""The most bytes of a request line and headers; browsers and proxies send a few kilobytes."""
OVERRIDDEN = (
    "connection_made",
    "connection_lost",
    "data_received",
    "on_headers_complete",
    "on_body",
    "send_400_response",
)
"""Methods of uvicorn that are extended: asyncio, httptools and uvicorn itself call them."""
READ = ("loop", "transport", "headers", "url", "cycle")
"""Attributes of a connection that the limits need."""
READ_OF_CYCLE = ("response_complete",)
"""Attributes of a request that the limits need."""


class UnsupportedUvicorn(UnpoisonError):
    """The installed uvicorn lacks something that the limits on request heads rely on."""


def check_uvicorn(protocol: type = HttpToolsProtocol, cycle: type = RequestResponseCycle) -> None:
    """Refuse a version of uvicorn with which the limits would not hold.

    >>> check_uvicorn()
    >>> check_uvicorn(asyncio.Protocol)
    Traceback (most recent call last):
        ...
    unpoison.collector.http.connection.UnsupportedUvicorn: uvicorn ... has no ...
    """
    missing = [name for name in OVERRIDDEN if name not in vars(protocol)]
    missing += [name for name in READ if name not in _names_used(protocol)]
    missing += [name for name in READ_OF_CYCLE if name not in _names_used(cycle)]
    if missing:
        raise UnsupportedUvicorn(
            f"uvicorn {uvicorn.__version__} has no {', '.join(missing)}, by which the collector "
            "limits the heads of requests: install another version"
        )


def _names_used(kind: type) -> set[str]:
    """The names in the code of a class's methods: attributes of instances are set there."""
    methods = [item for item in vars(kind).values() if isinstance(item, FunctionType)]
    return {name for method in methods for name in method.__code__.co_names}


def limited_protocol(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with limits: a head must come within `seconds`, and be small.

    >>> limited_protocol(10.0).__mro__[1].__name__
    'HttpToolsProtocol'
    """
    check_uvicorn()

    class HeadLimits(HttpToolsProtocol):
        """Closes a connection whose next request head is too slow or too long."""

        deadline: asyncio.TimerHandle | None = None
        pending = 0
        """Bytes since the last head or chunk of a body: also those that follow a whole body."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            if self.deadline is None and self._is_idle():
                self._expect_head()
            self.pending += len(data)
            super().data_received(data)
            # Parsing resets `pending` where a head ends: what is left belongs to one that has not.
            if self.pending > MOST_HEAD_BYTES:
                self.transport.close()

        def on_headers_complete(self) -> None:
            self._head_came()
            size = sum(len(name) + len(text) for name, text in self.headers)
            if len(self.url) + size > MOST_HEAD_BYTES:
                # httptools turns this into a parser error, and uvicorn that into a 400.
                raise ValueError("the head is too long")
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            # A body that nobody reads any more is not excused from the limit.
            if not self._is_idle():
                self.pending = 0
            super().on_body(body)

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_came()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self.transport.write(NOT_HTTP)
            self.transport.close()

        def _is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _expect_head(self) -> None:
            self.pending = 0
            self.deadline = self.loop.call_later(seconds, self._give_up)

        def _give_up(self) -> None:
            # A client that has sent nothing keeps an idle connection, and expects no response.
            if self.pending:
                self.transport.write(TOO_SLOW)
            self.transport.close()

        def _head_came(self) -> None:
            self.pending = 0
            if self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    return HeadLimits


def _raw_response(fault: Fault) -> bytes:
    """The bytes of a refusal before there is a request, in the same shape as all others."""
    headers, body = closing_response(fault)
    status = HTTPStatus(fault.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [b": ".join(header) for header in [*headers, *HEADERS.items()]]
    return b"\r\n".join([*lines, b"", body])


NOT_HTTP = _raw_response(Fault("invalid-request", "This is not an HTTP request.", status=400))
TOO_SLOW = _raw_response(Fault("too-slow"))
