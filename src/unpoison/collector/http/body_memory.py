"""Memory of request bodies: how much is held, and that it is given back after large ones."""

from __future__ import annotations

import asyncio

from unpoison.system.memory import give_back_memory

LARGE_BYTES = 2**20
"""Bodies beyond this size make the process grow for good, unless memory is given back."""
GIVE_BACK_SECONDS = 1.0
"""How long after a large body memory is given back: once for all that come in the meantime."""


class BodyMemory:
    """Bytes of all request bodies that are held at this moment.

    >>> memory = BodyMemory()
    >>> memory.take(10)
    >>> memory.release(10)
    >>> memory.in_flight
    0
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.giving_back: asyncio.TimerHandle | None = None

    def take(self, size: int) -> None:
        """Count bytes that are held from now on."""
        self.in_flight += size

    def release(self, size: int) -> None:
        """Count bytes of a body that is no longer held; a large one is followed by a clean-up."""
        self.in_flight -= size
        if size > LARGE_BYTES and self.giving_back is None:
            loop = asyncio.get_running_loop()
            self.giving_back = loop.call_later(GIVE_BACK_SECONDS, self._give_back)

    def _give_back(self) -> None:
        self.giving_back = None
        # In a thread: it takes milliseconds, of which the most part is outside of Python.
        asyncio.get_running_loop().run_in_executor(None, give_back_memory)
