"""Connections: a request's head must come soon and be small."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from unpoison.collector.faults import Fault
from unpoison.collector.http.guard import HEADERS, last_words

MOST_HEAD = 2**16


def protocol(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with a limit on the time and the size of heads.

    >>> protocol(10.0).__mro__[1].__name__
    'HttpToolsProtocol'
    """

    class Impatient(HttpToolsProtocol):
        """Closes a connection whose head does not come, or does not end."""

        deadline: asyncio.TimerHandle | None = None
        pending = 0
        """Bytes since the last head or part of a body: also of what may follow a body."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            if self.deadline is None and self._idle():
                self._expect_head()
            self.pending += len(data)
            super().data_received(data)
            if self.pending > MOST_HEAD:
                self.transport.close()

        def on_headers_complete(self) -> None:
            self._head_came()
            size = sum(len(name) + len(text) for name, text in self.headers)
            if len(self.url) + size > MOST_HEAD:
                raise ValueError("the head is too long")
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if not self._idle():
                self.pending = 0
            super().on_body(body)

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_came()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self.transport.write(NOT_HTTP)
            self.transport.close()

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _expect_head(self) -> None:
            self.pending = 0
            self.deadline = self.loop.call_later(seconds, self._give_up)

        def _give_up(self) -> None:
            """Whoever has begun to ask is told; whoever has not is just sent away."""
            if self.pending:
                self.transport.write(TOO_SLOW)
            self.transport.close()

        def _head_came(self) -> None:
            self.pending = 0
            if self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    return Impatient


def _raw(fault: Fault) -> bytes:
    """An answer to what is no request yet, in the shape of all others."""
    headers, body = last_words(fault)
    status = HTTPStatus(fault.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [b": ".join(each) for each in [*headers, *HEADERS.items()]]
    return b"\r\n".join([*lines, b"", body])


NOT_HTTP = _raw(Fault("invalid-request", "This is not an HTTP request.", status=400))
TOO_SLOW = _raw(Fault("too-slow"))
