"""Looks after the keys of a running server: reads them again, and compares them with others'."""

from __future__ import annotations

import logging
from functools import partial

from unpoison.collector.service.collector import Collector
from unpoison.collector.service.key_ring import (
    DIFFERENT,
    EXPECTED,
    SAME,
    UNREADABLE,
    key_state,
)
from unpoison.collector.storage.key_register import register_keys, registered_keys
from unpoison.errors import InvalidFile

REREAD_SECONDS = 5.0
"""Seconds between looks at the key file, each of which costs a `stat` and a short query. The least
`key_grace` is six times as long, so that every server believes a new key before it signs."""
log = logging.getLogger("unpoison.collector")
EVENTS = {
    SAME: (logging.INFO, "the key file agrees with the other servers of this database"),
    EXPECTED: (logging.WARNING, "a new key will sign soon, and is not in the key file here"),
    DIFFERENT: (logging.ERROR, "the key that other servers sign with is not in the key file here"),
    UNREADABLE: (logging.ERROR, "the key file cannot be read; the keys read before stay in use"),
}
"""What is logged when a state begins."""


class KeyWatch:
    """Keeps a collector's signer at the keys of its file, and its state at that of the register.

    >>> import asyncio
    >>> from unpoison.collector.settings import Settings
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def state() -> str:
    ...     with temporary_database() as database:
    ...         async with Collector(Settings.load(), database, ["a key"]) as collector:
    ...             await KeyWatch(collector).look()
    ...             return collector.keys.state
    >>> asyncio.run(state())
    'same'
    """

    def __init__(self, collector: Collector) -> None:
        self.collector = collector

    async def look(self) -> None:
        """Read the file if it changed, sign with the key whose time has come, and compare."""
        collector, ring = self.collector, self.collector.keys
        if ring.file is None:
            return
        readable = True
        try:
            ring.read_again()
        except InvalidFile:
            readable = False
        now = collector.clock.now()
        collector.signer = ring.signer(now)
        registered = await collector.read_cache.read(registered_keys)
        state = key_state(registered, ring.fingerprints, now)
        # A server that lacks the others' key does not register its own: it is the one to mend.
        if state != DIFFERENT and not ring.fingerprints.keys() <= registered.keys():
            await collector.writer.call(partial(register_keys, keys=ring.fingerprints))
        self._enter(state if readable or state == DIFFERENT else UNREADABLE)

    def _enter(self, state: str) -> None:
        if state != self.collector.keys.state:
            self.collector.keys.state = state
            level, event = EVENTS[state]
            log.log(level, event)
