"""How many connections there may be, with a reserve that only health checks may use."""

from __future__ import annotations

from typing import Protocol

HEALTH_PATHS = ("/healthz", "/readyz")
"""What connections of the reserve may ask for. A service whose health cannot be asked for while it
is busy would be restarted, and its clients would come back all at once."""
RESERVED = "reserved"
"""Key of a request's scope: whether its connection is one of the reserve."""
LEAST_RESERVE = 32
"""Connections of the reserve, at least: a few monitors, and those that are refused meanwhile."""
RESERVE_SHARE = 4
"""One connection of the reserve for so many others, so that in a burst of devices most of those
that are too many are refused with an error that they understand."""
RESERVED_HEAD_SECONDS = 1.0
"""Seconds for the head of a request in the reserve, where idle connections have no place."""


def reserve_for(connections: int) -> int:
    """The connections that are reserved beside so many others.

    >>> reserve_for(10), reserve_for(1000)
    (32, 250)
    """
    return max(LEAST_RESERVE, connections // RESERVE_SHARE)


class Abortable(Protocol):
    """A connection that can be ended at once."""

    def abort(self) -> None:
        """End the connection without sending what is left."""


class ConnectionSlots:
    """The connections of a server: ordinary ones up to a limit, and those of the reserve.

    When the reserve is full, its oldest connection makes room for the next: whoever opens
    connections and says nothing keeps nobody out.

    >>> class Connection:
    ...     def abort(self) -> None:
    ...         print("cut")
    >>> slots = ConnectionSlots(most=1, reserve=1)
    >>> first, second, third = Connection(), Connection(), Connection()
    >>> slots.add(first), slots.add(second)
    (None, None)
    >>> slots.add(third)
    cut
    >>> slots.is_reserved(first), slots.is_reserved(third)
    (False, True)
    >>> slots.remove(first)
    >>> slots.is_reserved(third)
    False
    """

    def __init__(self, most: int, reserve: int) -> None:
        self.most, self.reserve = most, reserve
        self.ordinary: set[Abortable] = set()
        self.reserved: dict[Abortable, None] = {}
        """In the order in which they came."""

    def add(self, connection: Abortable) -> None:
        """Give a new connection an ordinary slot, or one of the reserve."""
        if len(self.ordinary) < self.most:
            self.ordinary.add(connection)
            return
        self.reserved[connection] = None
        if len(self.reserved) > self.reserve:
            oldest = next(iter(self.reserved))
            del self.reserved[oldest]
            oldest.abort()

    def is_reserved(self, connection: Abortable) -> bool:
        """Whether a connection is in the reserve; it moves to an ordinary slot if one is free."""
        if connection in self.reserved and len(self.ordinary) < self.most:
            del self.reserved[connection]
            self.ordinary.add(connection)
        return connection not in self.ordinary

    def remove(self, connection: Abortable) -> None:
        """Free the slot of a connection that has ended."""
        self.ordinary.discard(connection)
        self.reserved.pop(connection, None)
