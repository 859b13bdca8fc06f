"""How often an address may do something."""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict

from unpoison.collector.clock import Clock
from unpoison.collector.faults import Fault

MOST_ADDRESSES = 100_000
IPV6_NETWORK = 64


class RateLimit:
    """A bucket an address: `most` at once, filled again within `seconds`.

    >>> limit = RateLimit(most=2, seconds=60, clock=Clock())
    >>> limit.take("192.0.2.1"), limit.take("192.0.2.1"), limit.wait("192.0.2.1") > 0
    (None, None, True)
    """

    def __init__(self, most: float, seconds: float, clock: Clock) -> None:
        self.most, self.each, self.clock = most, seconds / most, clock
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> None:
        """Count one, or refuse it."""
        self.check(address)
        self.count(address)

    def check(self, address: str) -> None:
        """Refuse an address that has none left."""
        wait = self.wait(address)
        if wait > 0:
            raise Fault("rate-limited", retry_after=math.ceil(wait))

    def count(self, address: str) -> None:
        """Take one away, if there is one."""
        key = network(address)
        left, at = self._level(key)
        self.buckets[key] = (max(0.0, left - 1), at)
        self.buckets.move_to_end(key)
        if len(self.buckets) > MOST_ADDRESSES:
            self.buckets.popitem(last=False)

    def wait(self, address: str) -> float:
        """Seconds until the address may do it again."""
        left, _ = self._level(network(address))
        return max(0.0, (1 - left) * self.each)

    def _level(self, key: str) -> tuple[float, float]:
        """What is left in a bucket now."""
        now = self.clock.steady()
        left, at = self.buckets.get(key, (self.most, now))
        return min(self.most, left + (now - at) / self.each), now


def network(address: str) -> str:
    """Who is counted as one: an IPv4 address, or all of an IPv6 network that one user has.

    >>> network("192.0.2.7"), network("2001:db8:1:2:3:4:5:6"), network("unknown")
    ('192.0.2.7', '2001:db8:1:2::/64', 'unknown')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_NETWORK), strict=False))
