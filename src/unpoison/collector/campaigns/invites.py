"""Invites: issued by the operator, shown once, kept as hashes, spent by one device each."""

from __future__ import annotations

from sqlalchemy import Connection, insert

from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.clock import DAY
from unpoison.collector.credentials import hashed, new_invite
from unpoison.collector.faults import Fault
from unpoison.collector.storage.schema import invites


def issue_invites(
    connection: Connection, campaign: str, count: int, days: float | None, now: int
) -> list[str]:
    """So many new invites to a campaign, valid for some days or for as long as it runs.

    >>> from unpoison import Plan
    >>> from unpoison.collector.campaigns.campaigns import Campaign
    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> campaign = Campaign.new("Rides", Plan.new("piecewise-integer", low=0, high=9), now=0)
    >>> with scratch_database() as database, database.writing() as connection:
    ...     Campaigns.add(connection, campaign)
    ...     codes = issue_invites(connection, campaign.id, 3, None, now=0)
    >>> len(set(codes))
    3
    """
    if Campaigns.find(connection, campaign) is None:
        raise Fault("not-found", "There is no such campaign.")
    codes = [new_invite() for _ in range(count)]
    expires_at = None if days is None else now + int(days * DAY)
    rows = [
        {
            "invite_hash": hashed(code),
            "campaign": campaign,
            "issued_at": now,
            "expires_at": expires_at,
        }
        for code in codes
    ]
    connection.execute(insert(invites), rows)
    return codes
