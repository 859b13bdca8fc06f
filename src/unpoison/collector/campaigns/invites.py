"""Invites: issued by the operator, shown once, stored as hashes, each spent by one device."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.clock import DAY
from unpoison.collector.credentials import hashed, new_invite
from unpoison.collector.storage.schema import invites


def issue_invites(
    connection: Connection, campaign: str, count: int, days: float | None, now: int
) -> list[str]:
    """Make invites to a campaign, valid for some days, or as long as it runs; returns the codes.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     codes = issue_invites(connection, campaign.id, 3, None, now=0)
    >>> len(set(codes))
    3
    """
    Campaigns.get(connection, campaign)
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


def is_invite(connection: Connection, campaign: str, code: str) -> bool:
    """Whether a code is an invite to a campaign, used or not.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     (code,) = issue_invites(connection, campaign.id, 1, None, now=0)
    ...     is_invite(connection, campaign.id, code), is_invite(connection, campaign.id, "guess")
    (True, False)
    """
    matches = (invites.c.invite_hash == hashed(code)) & (invites.c.campaign == campaign)
    return connection.execute(select(invites.c.campaign).where(matches)).first() is not None
