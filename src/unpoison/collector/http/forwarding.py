"""A warning when requests come through a proxy whose word on addresses is not taken."""

from __future__ import annotations

import logging
from typing import Any

PEER = "peer"
"""Key of a request's scope: the address and port at the other end of its connection."""
FORWARDING_HEADERS = frozenset((b"x-forwarded-for", b"forwarded"))
"""Headers by which proxies say whom they ask for; only the first is ever believed."""
MESSAGE = (
    "requests come through a proxy that is not believed, so that all of its clients share one rate "
    "limit: name it in trusted_proxies, and let it send X-Forwarded-For"
)
log = logging.getLogger("unpoison.collector")


class ForwardingWarning:
    """Logs one warning, at the first request that a proxy forwards in vain.

    uvicorn replaces the client of a request that a trusted proxy forwards; the peer stays.

    >>> warning, proxy = ForwardingWarning(), ("192.0.2.1", 443)
    >>> headers = [(b"x-forwarded-for", b"198.51.100.7")]
    >>> warning.check({"headers": headers, "client": ("198.51.100.7", 0), "peer": proxy})
    >>> warning.given
    False
    >>> warning.check({"headers": headers, "client": proxy, "peer": proxy})
    >>> warning.given
    True
    """

    def __init__(self) -> None:
        self.given = False

    def check(self, scope: Any) -> None:
        """Warn about a request with such a header whose client is still the peer itself."""
        if self.given or scope.get(PEER) != scope.get("client"):
            return
        if any(name in FORWARDING_HEADERS for name, _ in scope["headers"]):
            # Without the address: logs hold none, and it may be a device that made the header up.
            log.warning(MESSAGE)
            self.given = True
