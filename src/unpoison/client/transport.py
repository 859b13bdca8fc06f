"""Requests to a collector over HTTP: one kept connection, bounded in size, number and time."""

from __future__ import annotations

import io
import ssl
import time
from collections.abc import Callable
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from typing import Any, Protocol

from unpoison.client.address import Address
from unpoison.client.responses import MAX_ANSWER, Answer, shown
from unpoison.client.retries import RETRIED, Retries, retry_after
from unpoison.errors import (
    CollectorNotTrusted,
    CollectorUnreachable,
    UnpoisonError,
)

TIMEOUT = 10.0
PIECE = 2**16
MAX_RECEIVED = 2 * MAX_ANSWER
"""The most bytes that are received for an answer: its body, and whatever stands around it."""
STALE = (RemoteDisconnected, ConnectionError)
"""What it looks like when a collector has closed a connection that was kept."""


class Exchange(Protocol):
    """Anything that takes a request to a collector and brings an answer back."""

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """Send a request as often as it takes; a path begins with /v1."""


class Transport:
    """Asks a collector over HTTP, again if need be, always with the identical request.

    Redirects are not followed, and certificates are checked. Without TLS only this machine is
    spoken to, unless `insecure` says that tickets and invites may travel in the clear. One thread
    at a time may use it.

    >>> Transport("http://collector.example")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: collector must be https:// unless insecure; received http://...
    """

    def __init__(
        self,
        collector: str,
        *,
        insecure: bool = False,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        context: ssl.SSLContext | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = Address.trusted(collector, insecure)
        self.timeout, self.retries, self.context = timeout, retries or Retries(), context
        self.sleep, self.clock = sleep, clock
        self._connection: HTTPConnection | None = None
        self._deadline = 0.0

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """The collector's answer, good or bad; an error if there is none in time."""
        self._deadline = self.clock() + self.retries.patience
        attempt = 0
        while True:
            answer, fault = self._attempt(method, path, body)
            if answer is not None and answer.status not in RETRIED:
                return answer
            wait = self.retries.wait(attempt, answer.retry_after if answer else None)
            attempt += 1
            if attempt >= self.retries.attempts or self.clock() + wait > self._deadline:
                raise CollectorUnreachable(str(self.address), attempt, fault)
            self.sleep(wait)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(self, method: str, path: str, body: bytes | None) -> tuple[Answer | None, str]:
        """An answer, or what was in its way; a stale connection is replaced at once."""
        kept = self._connection is not None
        try:
            try:
                answer = self._once(method, path, body)
            except STALE:
                if not kept:
                    raise
                self.close()
                answer = self._once(method, path, body)
        except BaseException as fault:
            self.close()
            return None, _told(fault)
        return answer, _asked(answer)

    def _once(self, method: str, path: str, body: bytes | None) -> Answer:
        connection = self._connected()
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, self.address.prefix + path, body, headers)
        with connection.getresponse() as response:
            later = retry_after(response.headers.get("Retry-After"))
            answer = Answer(response.status, _body(response), later)
        if response.will_close:
            self.close()
        return answer

    def _connected(self) -> HTTPConnection:
        if self._connection is None:
            self._connection = self._new()
            self._connection.connect()
        self._connection.sock.settimeout(self._left())
        return self._connection

    def _new(self) -> HTTPConnection:
        host, port, timeout = self.address.host, self.address.port, self._left()
        connection: Any
        if self.address.secure:
            self.context = self.context or ssl.create_default_context()
            connection = HTTPSConnection(host, port, timeout=timeout, context=self.context)
        else:
            connection = HTTPConnection(host, port, timeout=timeout)
        connection.response_class = self._response
        return connection  # type: ignore[no-any-return]

    def _response(self, sock: Any, *arguments: Any, **options: Any) -> HTTPResponse:
        """A response that is read until the deadline only, however slowly it drips."""
        response = HTTPResponse(sock, *arguments, **options)
        response.fp = io.BufferedReader(_Timed(response.fp.detach(), sock, self._left))
        return response

    def _left(self) -> float:
        """How long the next step may take."""
        left = min(self.timeout, self._deadline - self.clock())
        if left <= 0:
            raise TimeoutError("timed out")
        return left


class _Timed(io.RawIOBase):
    """The bytes of a socket, not too many, each piece of which has as long as is left."""

    def __init__(self, raw: Any, sock: Any, left: Callable[[], float]) -> None:
        self.raw, self.sock, self.left = raw, sock, left
        self.received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.sock.settimeout(self.left())
        count = int(self.raw.readinto(buffer) or 0)
        self.received += count
        if self.received > MAX_RECEIVED:
            raise CollectorNotTrusted(f"the answer takes more than {MAX_RECEIVED} bytes")
        return count

    def close(self) -> None:
        self.raw.close()
        super().close()


def _body(response: HTTPResponse) -> bytes:
    body = bytearray()
    while piece := response.read(PIECE):
        body += piece
        if len(body) > MAX_ANSWER:
            raise CollectorNotTrusted(f"the answer is longer than {MAX_ANSWER} bytes")
    if response.length:
        raise IncompleteRead(b"", response.length)
    return bytes(body)


def _asked(answer: Answer) -> str:
    """What an answer says that is none, for whoever gives up."""
    later = "" if answer.retry_after is None else f", come back in {answer.retry_after:g} s"
    return f"status {answer.status}{later}"


def _told(fault: BaseException) -> str:
    """What is wrong with a connection; what no retry can mend is an error."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        raise CollectorNotTrusted(f"the certificate is not valid: {fault.verify_message}") from None
    if isinstance(fault, OSError | IncompleteRead):
        return shown(getattr(fault, "strerror", None) or fault) or type(fault).__name__
    if isinstance(fault, HTTPException | ValueError) and not isinstance(fault, UnpoisonError):
        raise CollectorNotTrusted(f"the answer is not HTTP ({type(fault).__name__})") from None
    raise fault
