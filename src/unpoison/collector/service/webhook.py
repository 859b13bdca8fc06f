"""The webhook: messages about alarms, signed and sent until the receiver has taken them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import socket
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from unpoison.client.address import Address
from unpoison.collector.campaigns.outbox import Message, oldest_message, postpone, remove
from unpoison.collector.clock import Clock
from unpoison.collector.service.daemon_call import daemon_call
from unpoison.collector.storage.read_cache import ReadCache
from unpoison.collector.storage.writer import Writer

TIMEOUT_SECONDS = 10.0
"""Seconds for a receiver to answer; it needs only to note the message."""
TAKEN = range(200, 300)
"""Statuses of a receiver that took the message. Redirects are not followed: whoever answered one
could send messages anywhere."""
log = logging.getLogger("unpoison.collector")


def signature(secret: str, timestamp: int, body: str) -> str:
    """The header by which a receiver knows who sent a message, and when.

    >>> signature("a secret", 0, "{}")[:15]
    'sha256=6d3af4ff'
    """
    text = f"{timestamp}.{body}".encode()
    return f"sha256={hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()}"


class Posting:
    """A message on its way to the receiver, sent once by `send` in a thread, and ended by `abort`.

    >>> Posting("http://127.0.0.1:9", "a secret", Message(1, "a1", "{}", 0, 0), now=0).send()
    False
    """

    def __init__(self, url: str, secret: str, message: Message, now: int) -> None:
        address = Address.parse_for_secrets(url)
        self.path, self.body = address.prefix or "/", message.body.encode()
        self.headers = {
            "Content-Type": "application/json",
            "X-Unpoison-Id": message.id,
            "X-Unpoison-Timestamp": str(now),
            "X-Unpoison-Signature": signature(secret, now, message.body),
        }
        connection_class = HTTPSConnection if address.secure else HTTPConnection
        self.connection = connection_class(address.host, address.port, timeout=TIMEOUT_SECONDS)
        self.aborted = False

    def send(self) -> bool:
        """Whether the receiver took the message."""
        try:
            self.connection.connect()
            if self.aborted:
                return False
            self.connection.request("POST", self.path, self.body, self.headers)
            return self.connection.getresponse().status in TAKEN
        except (OSError, HTTPException):
            return False
        finally:
            self.connection.close()

    def abort(self) -> None:
        """Hang up, so that `send` returns; a receiver that sends a byte now and then would hold it
        for as long as it likes, since timeouts of sockets begin anew with each."""
        self.aborted = True
        # The thread may close the connection at the same moment.
        with suppress(OSError, AttributeError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)


class Webhook:
    """Sends what is in the outbox, oldest first; what fails is tried again, also after a restart.

    A message may arrive twice: if the collector ends between sending and noting that it was sent,
    or if two servers send at once. Its id tells receivers.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def deliver() -> None:
    ...     with temporary_database() as database:
    ...         async with Writer(database) as writer:
    ...             cache = ReadCache(database, Clock())
    ...             webhook = Webhook("http://127.0.0.1:9", "secret", writer, cache, Clock())
    ...             await webhook.deliver()
    >>> asyncio.run(deliver())
    """

    def __init__(
        self, url: str, secret: str, writer: Writer, read_cache: ReadCache, clock: Clock
    ) -> None:
        self.url, self.secret = url, secret
        self.writer, self.read_cache, self.clock = writer, read_cache, clock

    async def deliver(self) -> None:
        """Send all messages that are due; the first that fails keeps the later ones waiting."""
        while (message := await self.read_cache.read(oldest_message)) is not None:
            now = self.clock.now()
            if message.next_at > now:
                return
            if not await self._sent(message, now):
                log.warning("webhook not delivered", extra={"cause": "unavailable"})
                await self.writer.call(partial(postpone, message=message, now=self.clock.now()))
                return
            await self.writer.call(partial(remove, message=message))

    async def _sent(self, message: Message, now: int) -> bool:
        """Whether the receiver took a message in time; a slow one holds up nobody, nor the end."""
        posting = Posting(self.url, self.secret, message, now)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await daemon_call(posting.send)
        except TimeoutError:
            return False
        finally:
            posting.abort()
