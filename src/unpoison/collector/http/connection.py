"""Limits on connections: their number, size and time of request heads, time to read responses.

uvicorn has no setting for these with httptools, so its protocol class is subclassed. That class
is no documented interface; this file is the only one that knows it, and it checks at start that
everything it relies on is still there.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from http import HTTPStatus
from types import FunctionType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from unpoison.collector.faults import Fault
from unpoison.collector.http.connection_slots import (
    RESERVED,
    RESERVED_HEAD_SECONDS,
    ConnectionSlots,
)
from unpoison.collector.http.errors import closing_response
from unpoison.collector.http.forwarding import PEER
from unpoison.collector.http.security_headers import HEADERS
from unpoison.collector.http.write_deadline import WriteDeadline
from unpoison.errors import UnpoisonError

MOST_HEAD_BYTES = 2**16
"""The most bytes of a request line and headers; browsers and proxies send a few kilobytes."""
SEND_BUFFER = (socket.SOL_SOCKET, socket.SO_SNDBUF, 2**17)
"""Option of a socket: bytes that the system holds for a client to read. By default it may hold
megabytes, and a slow reader would seem to have stopped while it works them off."""
OVERRIDDEN = (
    "connection_made",
    "connection_lost",
    "data_received",
    "on_headers_complete",
    "on_body",
    "on_response_complete",
    "pause_writing",
    "resume_writing",
    "send_400_response",
)
"""Methods of uvicorn that are extended: asyncio, httptools and uvicorn itself call them."""
READ = ("loop", "transport", "headers", "url", "scope", "client", "cycle")
"""Attributes of a connection that the limits need."""
READ_OF_CYCLE = ("response_complete", "disconnected", "message_event")
"""Attributes of a request that the limits need."""


class UnsupportedUvicorn(UnpoisonError):
    """The installed uvicorn lacks something that the limits on connections rely on."""


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
            "limits connections: install another version"
        )


def _names_used(kind: type) -> set[str]:
    """The names in the code of a class's methods: attributes of instances are set there."""
    methods = [item for item in vars(kind).values() if isinstance(item, FunctionType)]
    return {name for method in methods for name in method.__code__.co_names}


def limited_protocol(seconds: float, slots: ConnectionSlots) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with limits: a head must be small and come within `seconds`.

    A client that reads nothing for `seconds` is cut off, and connections without an ordinary slot
    are marked as those of the reserve.

    >>> limited_protocol(10.0, ConnectionSlots(most=1000, reserve=32)).__mro__[1].__name__
    'HttpToolsProtocol'
    """
    check_uvicorn()

    class LimitedConnection(HttpToolsProtocol):
        """Closes a connection whose head is too slow or too long, or whose client does not read."""

        deadline: asyncio.TimerHandle | None = None
        unread: WriteDeadline
        pending = 0
        """Bytes since the last head or chunk of a body: also those that follow a whole body."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.get_extra_info("socket").setsockopt(*SEND_BUFFER)
            self.unread = WriteDeadline(self.loop, transport, seconds)
            slots.add(transport)
            self.unanswered: deque[RequestResponseCycle] = deque()
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            if self.deadline is None and self._is_idle():
                self._expect_head()
            self.pending += len(data)
            super().data_received(data)
            # Parsing resets `pending` where a head ends: what is left belongs to one that has not.
            if self.pending > MOST_HEAD_BYTES:
                self._close_with(b"")

        def on_headers_complete(self) -> None:
            self._head_came()
            size = sum(len(name) + len(text) for name, text in self.headers)
            if len(self.url) + size > MOST_HEAD_BYTES:
                # httptools turns this into a parser error, and uvicorn that into a 400.
                raise ValueError("the head is too long")
            # The guard refuses what the reserve is not for, in the one shape of all refusals.
            scope: Any = self.scope
            scope[RESERVED] = slots.is_reserved(self.transport)
            scope[PEER] = self.client
            super().on_headers_complete()
            self.unanswered.append(self.cycle)

        def on_body(self, body: bytes) -> None:
            # A body that nobody reads any more is not excused from the limit.
            if not self._is_idle():
                self.pending = 0
            super().on_body(body)

        def on_response_complete(self) -> None:
            self.unanswered.popleft()
            super().on_response_complete()
            self.unread.watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self.unread.watch()

        def resume_writing(self) -> None:
            super().resume_writing()
            self.unread.resumed()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_came()
            self.unread.cancel()
            slots.remove(self.transport)
            self._tell_unanswered()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self._close_with(NOT_HTTP)

        def _tell_unanswered(self) -> None:
            # uvicorn tells only the last request of a pipeline that its client has gone. The one
            # that is being answered would write to a closed connection, and fail.
            for cycle in self.unanswered:
                cycle.disconnected = True
                cycle.message_event.set()

        def _is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _expect_head(self) -> None:
            self.pending = 0
            reserved = slots.is_reserved(self.transport)
            patience = min(seconds, RESERVED_HEAD_SECONDS) if reserved else seconds
            self.deadline = self.loop.call_later(patience, self._give_up)

        def _give_up(self) -> None:
            # A client that has sent nothing keeps an idle connection, and expects no response.
            self._close_with(TOO_SLOW if self.pending else b"")

        def _close_with(self, response: bytes) -> None:
            if response:
                self.transport.write(response)
            self.transport.close()
            self.unread.watch()

        def _head_came(self) -> None:
            self.pending = 0
            if self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    return LimitedConnection


def _raw_response(fault: Fault) -> bytes:
    """The bytes of a refusal before there is a request, in the same shape as all others."""
    headers, body = closing_response(fault)
    status = HTTPStatus(fault.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [b": ".join(header) for header in [*headers, *HEADERS.items()]]
    return b"\r\n".join([*lines, b"", body])


NOT_HTTP = _raw_response(Fault("invalid-request", "This is not an HTTP request.", status=400))
TOO_SLOW = _raw_response(Fault("too-slow"))
