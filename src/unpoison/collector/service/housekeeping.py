"""What goes on by itself: closing, adding up, estimating for the page, and forgetting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.retention import forget_old
from unpoison.collector.campaigns.status import with_news
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.clock import DAY
from unpoison.collector.faults import Fault
from unpoison.collector.storage.database import reason

if TYPE_CHECKING:
    from unpoison.collector.service.collector import Collector

TIDY_SECONDS = 1.0
FORGET_SECONDS = 60.0
log = logging.getLogger("unpoison.collector")


class Housekeeper:
    """Four tasks beside the requests; a fault in one is logged, and it goes on.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> from unpoison.collector.service.collector import Collector
    >>> from unpoison.collector.settings import Settings
    >>> async def tidy_once() -> None:
    ...     with scratch_database() as database:
    ...         async with Collector(Settings.load(), database, ["a key"]) as collector:
    ...             await Housekeeper(collector).tidy()
    >>> asyncio.run(tidy_once())
    """

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.stack = AsyncExitStack()

    async def __aenter__(self) -> Housekeeper:
        every = self.collector.settings.estimate_every
        for task in (self.tidy, self.compact):
            self._start(task, TIDY_SECONDS)
        self._start(self.estimate, every)
        self._start(self.forget, FORGET_SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    def _start(self, task: Callable[[], Awaitable[None]], seconds: float) -> None:
        self.stack.push_async_callback(_stopped, asyncio.create_task(_forever(task, seconds)))

    async def tidy(self) -> None:
        """Write rejections down, and close what is due."""
        collector = self.collector
        await collector.write_rejections()
        now = collector.clock.now()
        if await collector.writer.call(lambda connection: Campaigns.close_due(connection, now)):
            collector.recent.forget()

    async def compact(self) -> None:
        """Add up the tallies of campaigns that have many."""
        collector = self.collector
        for name in await collector.recent.read(Tallies.crowded):
            campaign = await collector.campaign(name)
            await collector.writer.call(partial(Tallies.compact, campaign=campaign))

    async def estimate(self) -> None:
        """An estimate for the page, where there is news and enough of it."""
        collector = self.collector
        for name in await collector.recent.read(with_news):
            with suppress(Fault):
                await collector.estimate(await collector.campaign(name))

    async def forget(self) -> None:
        """Drop the values of old submissions."""
        collector = self.collector
        before = collector.clock.now() - int(collector.settings.keep_submissions * DAY)
        while await collector.writer.call(lambda connection: forget_old(connection, before)):
            await asyncio.sleep(0)


async def _forever(task: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        try:
            await task()
        except Exception as fault:
            log.error("housekeeping failed", extra={"fault": reason(fault)})
        await asyncio.sleep(seconds)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
