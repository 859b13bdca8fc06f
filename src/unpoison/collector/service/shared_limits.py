"""Rate limits that all servers of a database share."""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable
from contextlib import suppress

from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault
from unpoison.collector.service.rate_limits import RateLimit
from unpoison.collector.storage.rate_buckets import TokenRequest, take_tokens
from unpoison.collector.storage.writer import Writer
from unpoison.system.network_address import network

HASH_BYTES = 16
"""Of an address's keyed hash: 128 bits, so that no two addresses share a bucket by chance."""


class SharedLimit:
    """A limit on an action by address, counted in the database.

    A limit in the memory of this server comes first: whoever it refuses costs no transaction. It
    also decides alone while the database does not answer.

    >>> import asyncio
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def twice() -> None:
    ...     with temporary_database() as database:
    ...         async with Writer(database) as writer:
    ...             for _ in range(2):
    ...                 limit = SharedLimit("guess", 1, 60, Clock(), writer, lambda: b"a key")
    ...                 await limit.take("192.0.2.1")
    >>> asyncio.run(twice())
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: Too many requests from this address: try again later.
    """

    def __init__(
        self,
        action: str,
        most: int,
        seconds: float,
        clock: Clock,
        writer: Writer,
        key: Callable[[], bytes],
    ) -> None:
        self.action, self.writer, self.key = action, writer, key
        self.local = RateLimit(most, seconds, clock)

    async def take(self, address: str) -> None:
        """Take a token, or refuse an address that has none on any server."""
        self.local.check(address)
        hashed = hmac.digest(self.key(), network(address).encode(), "sha256")[:HASH_BYTES]
        limit = self.local
        request = TokenRequest(self.action, hashed, limit.most, limit.seconds_per_token)
        wait = 0.0
        with suppress(Fault):
            (wait,) = await self.writer.apply(take_tokens, [request])
        if wait > 0:
            self.local.exhaust(address)
            raise Fault("rate-limited", retry_after=math.ceil(wait))
        self.local.count(address)

    def wait(self, address: str) -> float:
        """Seconds until the address has a token again, as far as this server knows."""
        return self.local.wait(address)
