"""Counters for the page: activity by minute, rejections by cause."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from unpoison.collector.storage.dialects import add_to_row
from unpoison.collector.storage.schema import activity, campaigns, rejections

MINUTE = 60
"""Seconds in a minute, the finest step of the activity chart."""


def count_activity(
    connection: Connection, campaign: str, column: str, number: int, now: int
) -> None:
    """Count devices that enrolled or reported in the present minute.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     count_activity(connection, campaign.id, "enrolled", 5, now=61)
    ...     connection.execute(select(activity.c.minute, activity.c.enrolled)).all()
    [(60, 5)]
    """
    amounts = {"enrolled": 0, "submissions": 0, column: number}
    add_to_row(connection, activity, {"campaign": campaign, "minute": now - now % MINUTE}, amounts)


def count_rejections(connection: Connection, rejected: Sequence[tuple[str, str, int]]) -> None:
    """Add rejections, given as (campaign, cause, number); campaigns that are gone are left out.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     rejected = [(campaign.id, "ticket-used", 3), ("gone", "ticket-used", 1)]
    ...     count_rejections(connection, rejected)
    ...     connection.execute(select(rejections.c.count)).scalars().all()
    [3]
    """
    named = {campaign for campaign, _, _ in rejected}
    existing = set(
        connection.execute(select(campaigns.c.id).where(campaigns.c.id.in_(named))).scalars()
    )
    # Sorted: each upsert locks its row, and two servers that lock the same rows in different
    # orders could deadlock.
    for campaign, cause, number in sorted(rejected):
        if campaign in existing:
            key = {"campaign": campaign, "cause": cause}
            add_to_row(connection, rejections, key, {"count": number})
