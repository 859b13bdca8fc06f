"""Seats: how many are in each group, and the lock that everything about a campaign goes by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, select

from unpoison.collector.storage.schema import seats


def lock_seats(connection: Connection, campaign: str) -> dict[int, tuple[int, int]]:
    """Each group's enrolled devices and submissions; nobody else may change them until we end.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     lock_seats(connection, campaign.id)
    {0: (0, 0), 1: (0, 0)}
    """
    mine = select(seats).where(seats.c.campaign == campaign).order_by(seats.c.group_number)
    rows = connection.execute(mine.with_for_update())
    return {row.group_number: (row.enrolled, row.submissions) for row in rows}


def lock_campaigns(connection: Connection, campaigns: Iterable[str]) -> None:
    """Before requests of several kinds: lock all their campaigns in one order, against deadlock.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     lock_campaigns(connection, [campaign.id, "gone"])
    """
    for campaign in sorted(set(campaigns)):
        lock_seats(connection, campaign)


def by_campaign(requests: Sequence[Any]) -> list[list[int]]:
    """The places of requests, campaign by campaign; always in the same order, against deadlock.

    >>> from types import SimpleNamespace as Any
    >>> by_campaign([Any(campaign=Any(id=name)) for name in "bab"])
    [[1], [0, 2]]
    """
    places = sorted(range(len(requests)), key=lambda place: requests[place].campaign.id)
    return [list(same) for _, same in groupby(places, lambda place: requests[place].campaign.id)]
