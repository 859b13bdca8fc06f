"""The lock of a campaign, and the order in which several are taken.

A campaign's rows in `group_counters` are its lock: whatever counts, closes or deletes locks them
first. On SQLite a write transaction excludes all others anyway; on PostgreSQL the locks keep
several servers apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from unpoison.collector.campaigns.group_counters import DeviceCount, group_counters_of


def lock_campaign(connection: Connection, campaign: str) -> dict[int, DeviceCount]:
    """Lock a campaign until the transaction ends; returns its counters by group.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     lock_campaign(connection, campaign.id)[1]
    DeviceCount(enrolled=0, submissions=0)
    """
    return group_counters_of(connection, campaign, lock=True)


def lock_campaigns(connection: Connection, campaigns: Iterable[str]) -> None:
    """Lock several campaigns, always in the order of their ids, against deadlock.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     lock_campaigns(connection, [campaign.id, "gone"])
    """
    for campaign in sorted(set(campaigns)):
        lock_campaign(connection, campaign)


def indices_by_campaign(requests: Sequence[Any]) -> list[list[int]]:
    """The indices of requests, campaign by campaign, in the order in which locks are taken.

    >>> from types import SimpleNamespace as Any
    >>> indices_by_campaign([Any(campaign=Any(id=name)) for name in "bab"])
    [[1], [0, 2]]
    """

    def campaign_of(index: int) -> str:
        campaign: str = requests[index].campaign.id
        return campaign

    in_order = sorted(range(len(requests)), key=campaign_of)
    return [list(indices) for _, indices in groupby(in_order, campaign_of)]
