"""Reports of many users put straight into a collector's database, as if devices had sent them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from support.running_collectors import InProcessCollector, RunningCampaign
from unpoison import Summary
from unpoison.collector.campaigns.group_counters import count_devices
from unpoison.collector.campaigns.tallies import Tallies


def store_reports(
    server: InProcessCollector,
    campaign: RunningCampaign,
    summary: Summary,
    enrolled: Sequence[int] | None = None,
) -> None:
    """Count the reports of a summary, of users of whom as many enrolled as reported by default."""
    reported = np.asarray(summary.users).astype(int)
    groups = np.arange(len(reported))
    with server.collector.database.writing() as connection:
        Tallies.add(connection, campaign.id, summary.counts)
        for column, users in (("enrolled", enrolled or reported), ("submissions", reported)):
            counted = np.repeat(groups, np.asarray(users)).tolist()
            count_devices(connection, campaign.id, counted, column)
    server.collector.read_cache.clear()
