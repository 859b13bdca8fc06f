"""Time limit on clients that do not read their responses."""

from __future__ import annotations

import asyncio

MIN_BYTES_PER_SECOND = 2**14
"""The rate at which a response must be read, over each period: that of a slow mobile network."""


class WriteDeadline:
    """Cuts a connection whose client reads neither all of a response nor at the least rate.

    A closed connection is no exception: closing sends what is left first, and would wait for ever.

    >>> async def unread(seconds: float) -> bool:
    ...     deadline = WriteDeadline(asyncio.get_running_loop(), _Unread(), seconds)
    ...     deadline.watch()
    ...     await asyncio.sleep(3 * seconds)
    ...     return deadline.transport.aborted
    >>> class _Unread(asyncio.Transport):
    ...     aborted = False
    ...     def get_write_buffer_size(self) -> int:
    ...         return 1
    ...     def abort(self) -> None:
    ...         self.aborted = True
    >>> asyncio.run(unread(0.01))
    True
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport, seconds: float
    ) -> None:
        self.loop, self.transport, self.seconds = loop, transport, seconds
        self.timer: asyncio.TimerHandle | None = None
        self.unsent = 0
        """Bytes that waited to be sent when the present period began."""
        self.progressed = False
        """Whether the transport has asked for more to send in the present period."""

    def watch(self) -> None:
        """Begin a period, unless one is running or nothing waits to be sent."""
        # A period that runs is not cancelled when all is sent: most responses are sent at once,
        # and a timer for each of them would cost more than one that finds nothing to do.
        if self.timer is None and self.transport.get_write_buffer_size():
            self._begin_period()

    def resumed(self) -> None:
        """Note that the client has read so much that more may be written."""
        self.progressed = True

    def cancel(self) -> None:
        """Stop watching a connection that has ended."""
        if self.timer is not None:
            self.timer.cancel()

    def _begin_period(self) -> None:
        self.unsent, self.progressed = self.transport.get_write_buffer_size(), False
        self.timer = self.loop.call_later(self.seconds, self._end_period)

    def _end_period(self) -> None:
        self.timer = None
        unsent = self.transport.get_write_buffer_size()
        least = MIN_BYTES_PER_SECOND * self.seconds
        if unsent and not self.progressed and self.unsent - unsent < least:
            self.transport.abort()
        else:
            self.watch()
