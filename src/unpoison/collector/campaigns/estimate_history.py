"""Estimates of a campaign over time, for the page's chart."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, func, insert, select

from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.locks import lock_campaign
from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import estimates

MOST_ESTIMATES = 500
"""Estimates that the page's chart shows, the newest ones: eight hours at one a minute."""


def past_estimates(connection: Connection, campaign: str) -> list[dict[str, Any]]:
    """The newest stored estimates of a campaign, oldest first.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     past_estimates(connection, campaign.id)
    []
    """
    stored = select(estimates).where(estimates.c.campaign == campaign)
    newest_first = stored.order_by(estimates.c.id.desc()).limit(MOST_ESTIMATES)
    rows = connection.execute(newest_first).all()
    return [
        {
            "at": iso(row.at),
            "users": row.users,
            "method": row.method,
            "mean": row.mean,
            "interval": None if row.low is None else [row.low, row.high],
            "byzantine_fraction": row.byzantine_fraction,
            "byzantine_interval": None
            if row.byzantine_low is None
            else [row.byzantine_low, row.byzantine_high],
            "nobody_attacks_p_value": row.nobody_attacks_p_value,
            "doubt": row.doubt,
            "verdict": row.verdict,
        }
        for row in reversed(rows)
    ]


def store_estimate(connection: Connection, campaign: str, text: str, now: int) -> bool:
    """Store an Estimate, given as JSON; returns False if one of as many users is stored already.

    Several servers may estimate the same counts; the chart needs each of them once.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> from unpoison.estimate import Byzantine, Estimate
    >>> text = Estimate("ostrich", 4.5, Byzantine(0.0, "none"), users=9.0).to_json()
    >>> with temporary_campaign() as (connection, campaign):
    ...     [store_estimate(connection, campaign.id, text, now=60) for _ in range(2)]
    [True, False]
    """
    lock_campaign(connection, campaign)
    keys = json.loads(text)
    users = int(keys["users"])
    as_new = (estimates.c.campaign == campaign) & (estimates.c.users >= users)
    stored = connection.execute(select(estimates.c.id).where(as_new).limit(1)).first()
    if stored is not None or Campaigns.find(connection, campaign) is None:
        return False
    low, high = keys["interval"] or (None, None)
    least, most = keys["byzantine"]["interval"] or (None, None)
    row = {
        "campaign": campaign,
        "at": now,
        "users": users,
        "method": keys["method"],
        "mean": keys.get("mean"),
        "low": low,
        "high": high,
        "byzantine_fraction": keys["byzantine"]["fraction"],
        "byzantine_low": least,
        "byzantine_high": most,
        # Methods other than `joint` have neither.
        "nobody_attacks_p_value": keys["fit"].get("nobody_attacks_p_value"),
        "doubt": keys["fit"].get("doubt"),
        "verdict": keys["verdict"],
    }
    connection.execute(insert(estimates), row)
    return True


def due_for_estimate(connection: Connection) -> list[str]:
    """The campaigns with enough users, and more of them than at the last stored estimate.

    >>> from unpoison.collector.campaigns.group_counters import count_devices
    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     before = due_for_estimate(connection)
    ...     count_devices(connection, campaign.id, [0, 1], "submissions")
    ...     before, due_for_estimate(connection) == [campaign.id]
    ([], True)
    """
    most = select(estimates.c.campaign, func.max(estimates.c.users)).group_by(estimates.c.campaign)
    estimated = {row[0]: row[1] for row in connection.execute(most)}
    return [
        campaign.id
        for campaign, users in Campaigns.all(connection)
        if users.submissions >= campaign.min_users
        and users.submissions > estimated.get(campaign.id, 0)
    ]
