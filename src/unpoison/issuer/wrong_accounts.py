"""Limit on requests with wrong credentials, by the address that they come from."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from unpoison.issuer.refusals import Refusal
from unpoison.system.network_address import network

MOST, SECONDS = 20, 60
"""Wrong credentials from one address within so many seconds: a person who mistypes has enough."""
MOST_ADDRESSES = 10_000
"""Addresses that are remembered, in a few megabytes; the oldest are dropped first."""


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
        key, now = network(address), self._clock()
        began, count = self._addresses.pop(key, (now, 0))
        if now - began >= SECONDS:
            began, count = now, 0
        self._addresses[key] = (began, count + 1)
        if len(self._addresses) > MOST_ADDRESSES:
            self._addresses.popitem(last=False)
        if count < MOST:
            return Refusal("unauthorized")
        return Refusal("rate-limited", retry_after=math.ceil(began + SECONDS - now))
