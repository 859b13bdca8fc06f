"""Limit on requests with wrong credentials, by the address that they come from."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from unpoison.issuer.refusals import Refusal

MOST, SECONDS = 20, 60
"""Wrong credentials from one address within so many seconds: a person who mistypes has enough."""
MOST_ADDRESSES = 10_000
"""Addresses that are remembered, in a few megabytes; the oldest are dropped first."""
IPV6_PREFIX_BITS = 64
"""Providers give each customer a network of at least this size, so it counts as one address."""


class WrongAccounts:
    """How often each address has shown wrong credentials within the last minute.

    >>> wrong = WrongAccounts(clock=lambda: 0.0)
    >>> [str(wrong.refusal("192.0.2.1").status) for _ in range(MOST + 1)][-2:]
    ['401', '429']
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._addresses: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """The moment at which the minute of an address began, and how often in it."""

    def refusal(self, address: str) -> Refusal:
        """Count wrong credentials of an address; how they are refused."""
        key, now = _network(address), self._clock()
        began, count = self._addresses.pop(key, (now, 0))
        if now - began >= SECONDS:
            began, count = now, 0
        self._addresses[key] = (began, count + 1)
        if len(self._addresses) > MOST_ADDRESSES:
            self._addresses.popitem(last=False)
        if count < MOST:
            return Refusal("unauthorized")
        return Refusal("rate-limited", retry_after=math.ceil(began + SECONDS - now))


def _network(address: str) -> str:
    """An IPv4 address, or an IPv6 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6:
        # A socket for both families shows IPv4 clients as ::ffff:192.0.2.7.
        mapped = parsed.ipv4_mapped
        network = ipaddress.ip_network((parsed, IPV6_PREFIX_BITS), strict=False)
        return str(network if mapped is None else mapped)
    return str(parsed)
