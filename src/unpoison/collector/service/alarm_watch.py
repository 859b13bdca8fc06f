"""Judging of alarms in a running server: changes are logged, and announced to the webhook."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from unpoison.collector.campaigns.alarms import (
    STARTED,
    AlarmChange,
    campaigns_to_judge,
    judge_alarms,
    set_alarms,
)
from unpoison.collector.campaigns.outbox import announce
from unpoison.collector.clock import Clock
from unpoison.collector.storage.read_cache import ReadCache
from unpoison.collector.storage.writer import Writer
from unpoison.estimate.alarms import AlarmRules

log = logging.getLogger("unpoison.collector")


class AlarmWatch:
    """Starts and ends the alarms of all campaigns; messages are queued only if there is a webhook.

    >>> import asyncio
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def judge() -> None:
    ...     with temporary_database() as database:
    ...         async with Writer(database) as writer:
    ...             await AlarmWatch(writer, ReadCache(database, Clock()), Clock(), False).judge()
    >>> asyncio.run(judge())
    """

    def __init__(
        self, writer: Writer, read_cache: ReadCache, clock: Clock, has_webhook: bool
    ) -> None:
        self.writer, self.read_cache, self.clock = writer, read_cache, clock
        self.has_webhook = has_webhook

    async def judge(self) -> None:
        """Judge all campaigns; only those in which something changes are written to."""
        now = self.clock.now()
        ids = await self.read_cache.read(lambda connection: campaigns_to_judge(connection, now))
        for campaign in ids:
            log_changes(await self.writer.call(partial(self._judge, campaign=campaign, now=now)))
        if ids:
            self.read_cache.clear()

    def _judge(self, connection: Connection, campaign: str, now: int) -> list[AlarmChange]:
        return self._announced(connection, judge_alarms(connection, campaign, now), now)

    def replace(
        self, connection: Connection, campaign: str, rules: AlarmRules, now: int
    ) -> list[AlarmChange]:
        """Replace the rules of a campaign, as one step of an operator's change."""
        return self._announced(connection, set_alarms(connection, campaign, rules, now), now)

    def _announced(
        self, connection: Connection, changes: list[AlarmChange], now: int
    ) -> list[AlarmChange]:
        if self.has_webhook:
            announce(connection, changes, now)
        return changes


def log_changes(changes: Sequence[AlarmChange]) -> None:
    """Log alarms that have started or ended, by campaign and rule and without any values.

    >>> log_changes([AlarmChange("k3v9x2m4q7w1", "Rides", "doubt", "ended", at=0)])
    """
    for change in changes:
        level = logging.WARNING if change.state == STARTED else logging.INFO
        fields = {"campaign": change.campaign, "cause": change.rule}
        log.log(level, f"alarm {change.state}", extra=fields)
