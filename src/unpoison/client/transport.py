"""Requests to a collector over HTTP: one kept connection, bounded in size, number and time.

A collector is not trusted, and a device has other things to do: however slow, endless or malformed
an answer is, `Transport.exchange` returns or fails within `Retries.patience`, having read at most
`MAX_RECEIVED` bytes an attempt.
"""

from __future__ import annotations

import io
import ssl
import time
from collections.abc import Callable, Mapping
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from socket import socket
from typing import Any, Protocol

from unpoison.client.address import Address
from unpoison.client.responses import MAX_RESPONSE_BYTES, Response, printable_excerpt
from unpoison.client.retries import RETRIED_STATUSES, Retries, retry_after_seconds
from unpoison.errors import (
    CollectorNotTrusted,
    CollectorUnreachable,
    UnpoisonError,
)
from unpoison.system.closing import Closing

TIMEOUT = 10.0
"""Seconds for each step of an attempt (to connect, to send, every read): a sixth of the default
patience, so that a connection that hangs leaves time for others."""
READ_BYTES = 2**16
"""Bytes of a body that are read at a time, so that an endless one is noticed early."""
MAX_RECEIVED = 2 * MAX_RESPONSE_BYTES
"""The most bytes that are received for an answer: its body, and headers, chunk sizes and endless
interim responses around it, which the bound on the body does not see."""
STALE_CONNECTION_ERRORS = (RemoteDisconnected, ConnectionError)
"""Errors of a kept connection that the collector has closed meanwhile."""


class Exchange(Protocol):
    """Anything that sends a request to a collector and returns its response."""

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
        """Send a request, again if need be; a path begins with /v1."""


class Transport(Closing):
    """HTTP client of one collector, which retries with the identical request.

    An answer can be lost after the collector has counted the report. Because a retry has the same
    bytes, the collector recognises it, and whoever watches learns nothing from a second request.

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
        post_headers: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = Address.parse_for_secrets(collector, insecure)
        self.timeout, self.retries, self.context = timeout, retries or Retries(), context
        self.post_headers = {"Content-Type": "application/json", **(post_headers or {})}
        """Headers of requests that have a body."""
        self.sleep, self.clock = sleep, clock
        self._connection: HTTPConnection | None = None
        self._deadline = 0.0

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
        """The collector's response, good or bad; an error if there is none in time."""
        self._deadline = self.clock() + self.retries.patience
        attempts = 0
        while True:
            response, problem = self._attempt(method, path, body)
            if response is not None and response.status not in RETRIED_STATUSES:
                return response
            wait = self.retries.wait(attempts, response.retry_after if response else None)
            attempts += 1
            # A wait beyond the deadline is not cut short: the collector asked to be left alone.
            if attempts >= self.retries.attempts or self.clock() + wait > self._deadline:
                raise CollectorUnreachable(str(self.address), attempts, problem)
            self.sleep(wait)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _attempt(self, method: str, path: str, body: bytes | None) -> tuple[Response | None, str]:
        """A response or None, and what to say of it if this is the last attempt."""
        was_kept = self._connection is not None
        try:
            try:
                response = self._send_once(method, path, body)
            except STALE_CONNECTION_ERRORS:
                # A collector closes idle connections. That is no fault of it, and costs no wait.
                if not was_kept:
                    raise
                self.close()
                response = self._send_once(method, path, body)
        except BaseException as fault:
            # Also after an interrupt: the rest of an answer must not be taken for the next one.
            self.close()
            return None, _retriable_problem(fault)
        return response, _status_problem(response)

    def _send_once(self, method: str, path: str, body: bytes | None) -> Response:
        connection = self._connected()
        headers = {"Accept": "application/json"}
        if body is not None:
            headers |= self.post_headers
        connection.request(method, self.address.prefix + path, body, headers)
        with connection.getresponse() as http_response:
            wait = retry_after_seconds(http_response.headers.get("Retry-After"))
            response = Response(http_response.status, _read_body(http_response), wait)
        if http_response.will_close:
            self.close()
        return response

    def _connected(self) -> HTTPConnection:
        if self._connection is None:
            self._connection = self._new_connection()
            self._connection.connect()
        self._connection.sock.settimeout(self._step_seconds())
        return self._connection

    def _new_connection(self) -> HTTPConnection:
        host, port, timeout = self.address.host, self.address.port, self._step_seconds()
        connection: Any
        if self.address.secure:
            self.context = self.context or ssl.create_default_context()
            connection = HTTPSConnection(host, port, timeout=timeout, context=self.context)
        else:
            connection = HTTPConnection(host, port, timeout=timeout)
        connection.response_class = self._bounded_response
        return connection  # type: ignore[no-any-return]

    def _bounded_response(self, sock: socket, *arguments: Any, **options: Any) -> HTTPResponse:
        """An HTTPResponse whose bytes, headers included, are bounded in number and time.

        A socket's timeout alone does not do it: it begins anew with every byte that drips in.
        """
        response = HTTPResponse(sock, *arguments, **options)
        response.fp = io.BufferedReader(
            _BoundedSocketReader(response.fp.detach(), sock, self._step_seconds)
        )
        return response

    def _step_seconds(self) -> float:
        """Seconds that the next step may take: the timeout, or the time left until the deadline."""
        seconds = min(self.timeout, self._deadline - self.clock())
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds


class _BoundedSocketReader(io.RawIOBase):
    """The bytes of a socket, at most `MAX_RECEIVED`, each read with its own timeout."""

    def __init__(self, raw: Any, sock: socket, step_seconds: Callable[[], float]) -> None:
        self.raw, self.sock, self.step_seconds = raw, sock, step_seconds
        self.received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.sock.settimeout(self.step_seconds())
        count = int(self.raw.readinto(buffer) or 0)
        self.received += count
        if self.received > MAX_RECEIVED:
            raise CollectorNotTrusted(f"the answer takes more than {MAX_RECEIVED} bytes")
        return count

    def close(self) -> None:
        self.raw.close()
        super().close()


def _read_body(response: HTTPResponse) -> bytes:
    body = bytearray()
    while chunk := response.read(READ_BYTES):
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise CollectorNotTrusted(f"the answer is longer than {MAX_RESPONSE_BYTES} bytes")
    # http.client takes an early end for the end when it is read in pieces.
    if response.length:
        raise IncompleteRead(b"", response.length)
    return bytes(body)


def _status_problem(response: Response) -> str:
    """The status of a response and its Retry-After, for the error of the last attempt."""
    later = "" if response.retry_after is None else f", come back in {response.retry_after:g} s"
    return f"status {response.status}{later}"


def _retriable_problem(fault: BaseException) -> str:
    """A connection's failure in a few words; a failure that no retry can help is raised."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        raise CollectorNotTrusted(f"the certificate is not valid: {fault.verify_message}") from None
    if isinstance(fault, OSError | IncompleteRead):
        problem = printable_excerpt(getattr(fault, "strerror", None) or fault)
        return problem or type(fault).__name__
    if isinstance(fault, HTTPException | ValueError) and not isinstance(fault, UnpoisonError):
        raise CollectorNotTrusted(f"the answer is not HTTP ({type(fault).__name__})") from None
    raise fault
