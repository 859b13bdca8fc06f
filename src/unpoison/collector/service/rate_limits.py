"""Rate limits: how often an address may do something."""

from __future__ import annotations

import math
from collections import OrderedDict

from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault
from unpoison.system.network_address import network

MOST_ADDRESSES = 100_000
"""Addresses that are remembered, in some 23 MB; the one counted longest ago is dropped first."""


class RateLimit:
    """A token bucket for each address: `most` at once, refilled within `seconds`.

    >>> limit = RateLimit(most=2, seconds=60, clock=Clock())
    >>> limit.take("192.0.2.1"), limit.take("192.0.2.1"), limit.wait("192.0.2.1") > 0
    (None, None, True)
    """

    def __init__(self, most: float, seconds: float, clock: Clock) -> None:
        self.most, self.seconds_per_token, self.clock = most, seconds / most, clock
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens of each address, and the moment at which it had them."""

    def take(self, address: str) -> None:
        """Take a token, or refuse an address that has none."""
        self.check(address)
        self.count(address)

    def check(self, address: str) -> None:
        """Refuse an address that has no token left, without taking one."""
        wait = self.wait(address)
        if wait > 0:
            raise Fault("rate-limited", retry_after=math.ceil(wait))

    def count(self, address: str) -> None:
        """Take a token, if there is one, without refusing."""
        key = network(address)
        self._set(key, self._tokens(key) - 1)

    def exhaust(self, address: str) -> None:
        """Take all tokens of an address, which has used them elsewhere."""
        self._set(network(address), 0.0)

    def _set(self, key: str, tokens: float) -> None:
        self.buckets[key] = (max(0.0, tokens), self.clock.steady())
        self.buckets.move_to_end(key)
        if len(self.buckets) > MOST_ADDRESSES:
            self.buckets.popitem(last=False)

    def wait(self, address: str) -> float:
        """Seconds until the address has a token again."""
        return max(0.0, (1 - self._tokens(network(address))) * self.seconds_per_token)

    def _tokens(self, key: str) -> float:
        """The tokens that a bucket holds now."""
        now = self.clock.steady()
        tokens, since = self.buckets.get(key, (self.most, now))
        return min(self.most, tokens + (now - since) / self.seconds_per_token)
