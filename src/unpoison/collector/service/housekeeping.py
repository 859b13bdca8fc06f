"""Periodic jobs of a server: closing, estimating, judging alarms, forgetting, reading keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial

from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.estimate_history import due_for_estimate
from unpoison.collector.campaigns.retention import forget_old
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.clock import DAY
from unpoison.collector.faults import Fault
from unpoison.collector.service.collector import Collector
from unpoison.collector.service.key_watch import REREAD_SECONDS, KeyWatch
from unpoison.collector.service.webhook import Webhook
from unpoison.collector.service.worker_metrics import publish_metrics
from unpoison.collector.storage.database import log_reason
from unpoison.collector.storage.rate_buckets import drop_full_buckets

TIDY_SECONDS = 1.0
"""Seconds between rounds of cheap jobs; rejections on the page are at most this old."""
FORGET_SECONDS = 60.0
"""Seconds between looks for old submissions, whose age is counted in days."""
ALARM_SECONDS = 5.0
"""Seconds between looks for silence, which is counted in minutes."""
log = logging.getLogger("unpoison.collector")
Job = Callable[[], Awaitable[None]]


class Housekeeper:
    """Runs the periodic jobs beside the requests; one that fails is logged and tried again.

    >>> from unpoison.collector.settings import Settings
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def close_once() -> None:
    ...     with temporary_database() as database:
    ...         async with Collector(Settings.load(), database, ["a key"]) as collector:
    ...             await Housekeeper(collector).close_due_campaigns()
    >>> asyncio.run(close_once())
    """

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.stack = AsyncExitStack()

    async def __aenter__(self) -> Housekeeper:
        self._start(self.write_rejections, TIDY_SECONDS)
        self._start(self.publish_metrics, TIDY_SECONDS)
        self._start(KeyWatch(self.collector).look, REREAD_SECONDS)
        # What is done once for a database, however many processes a server has.
        if self.collector.role.leads:
            self._start_for_all()
        return self

    def _start_for_all(self) -> None:
        self._start(self.close_due_campaigns, TIDY_SECONDS)
        self._start(self.compact_tallies, TIDY_SECONDS)
        self._start(self.estimate_for_page, self.collector.settings.estimate_every)
        self._start(self.forget_old_submissions, FORGET_SECONDS)
        self._start(self.forget_addresses, FORGET_SECONDS)
        self._start(self.collector.alarms.judge, ALARM_SECONDS)
        self._start_webhook()

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    def _start(self, job: Job, seconds: float) -> None:
        self.stack.push_async_callback(_cancel, asyncio.create_task(_repeat(job, seconds)))

    def _start_webhook(self) -> None:
        """Send messages about alarms, if there is a receiver; in a task of its own."""
        settings = self.collector.settings
        if settings.webhook_url is not None and settings.webhook_secret is not None:
            webhook = Webhook(
                settings.webhook_url.get_secret_value(),
                settings.webhook_secret.get_secret_value(),
                self.collector.writer,
                self.collector.read_cache,
                self.collector.clock,
            )
            self._start(webhook.deliver, TIDY_SECONDS)

    async def write_rejections(self) -> None:
        """Write the refusals that were counted in memory."""
        await self.collector.rejections.write(self.collector.writer)

    async def publish_metrics(self) -> None:
        """Leave this process' metrics where the server's other processes find them."""
        publish_metrics(self.collector.metrics, self.collector.role)

    async def close_due_campaigns(self) -> None:
        """Close campaigns whose end has passed."""
        now = self.collector.clock.now()
        writer = self.collector.writer
        if await writer.call(lambda connection: Campaigns.close_due(connection, now)):
            self.collector.read_cache.clear()

    async def compact_tallies(self) -> None:
        """Add up the tallies of campaigns that have many."""
        collector = self.collector
        for campaign_id in await collector.read_cache.read(Tallies.due_for_compaction):
            campaign = await collector.campaign(campaign_id)
            await collector.writer.call(partial(Tallies.compact, campaign=campaign))

    async def estimate_for_page(self) -> None:
        """Estimate campaigns that have new reports, and store it for the page's chart."""
        collector = self.collector
        for campaign_id in await collector.read_cache.read(due_for_estimate):
            # One campaign that cannot be estimated now must not keep the others waiting.
            with suppress(Fault):
                await collector.estimate(await collector.campaign(campaign_id))

    async def forget_old_submissions(self) -> None:
        """Drop the cells of submissions that are older than the retention time."""
        collector = self.collector
        before = collector.clock.now() - int(collector.settings.keep_submissions * DAY)
        while await collector.writer.call(lambda connection: forget_old(connection, before)):
            # The event loop gets a turn between transactions, and with it the devices.
            await asyncio.sleep(0)
        # In every round: it also holds what operators have deleted, and what an earlier round
        # could not remove because somebody was reading.
        await collector.writer.truncate_log()

    async def forget_addresses(self) -> None:
        """Drop the rate limits of addresses that are not limited any more."""
        now = self.collector.clock.now()
        await self.collector.writer.call(lambda connection: drop_full_buckets(connection, now))


async def _repeat(job: Job, seconds: float) -> None:
    while True:
        try:
            await job()
        except Exception as fault:
            log.error("housekeeping failed", extra={"fault": log_reason(fault)})
        await asyncio.sleep(seconds)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
