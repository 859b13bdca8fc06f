"""Refused requests, counted in memory and written to the database now and then."""

from __future__ import annotations

from collections import Counter
from functools import partial

from unpoison.collector.campaigns.counters import count_rejections
from unpoison.collector.credentials import is_campaign_id
from unpoison.collector.faults import Fault
from unpoison.collector.storage.writer import Writer


class RejectionCounter:
    """Refusals by campaign and cause that have not been written yet.

    They are not written one by one: whoever sends nonsense would cause a transaction each time.

    >>> rejections = RejectionCounter()
    >>> rejections.count("k3v9x2m4q7w1", "ticket-used")
    >>> rejections.unwritten
    Counter({('k3v9x2m4q7w1', 'ticket-used'): 1})
    """

    def __init__(self) -> None:
        self.unwritten: Counter[tuple[str, str]] = Counter()

    def count(self, campaign: str, cause: str) -> None:
        """Count a refusal; texts that are no campaign's id are left out, to bound memory."""
        if is_campaign_id(campaign):
            self.unwritten[campaign, cause] += 1

    async def write(self, writer: Writer) -> None:
        """Write what was counted since the last time; what cannot be written is kept."""
        counted, self.unwritten = self.unwritten, Counter()
        rows = [(campaign, cause, number) for (campaign, cause), number in counted.items()]
        try:
            if rows:
                await writer.call(partial(count_rejections, rejected=rows))
        except Fault:
            self.unwritten.update(counted)
            raise
