"""Estimates of a campaign over time, for the page's chart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, insert, select

from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.listing import count_users_of
from unpoison.collector.campaigns.locks import lock_campaign
from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import campaigns, estimates, group_counters
from unpoison.estimate import Estimate
from unpoison.estimate.answer_text import AnswerText

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
            "finding": row.finding,
            "frequencies": None if row.frequencies is None else json.loads(row.frequencies),
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
    owner = None if stored is not None else Campaigns.find(connection, campaign)
    if owner is None:
        return False
    words = AnswerText.of(owner.plan, Estimate.from_json(text))
    frequencies = keys.get("frequencies")
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
        "finding": keys["byzantine"]["finding"],
        "answer": words.answer,
        "answer_interval": words.interval,
        "frequencies": None if frequencies is None else json.dumps(frequencies),
    }
    connection.execute(insert(estimates), row)
    return True


def latest_estimates(connection: Connection, campaigns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The newest stored estimate of each of these campaigns that has one, for a list.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     latest_estimates(connection, [campaign.id])
    {}
    """
    newest = (
        select(func.max(estimates.c.id))
        .where(estimates.c.campaign.in_(campaigns))
        .group_by(estimates.c.campaign)
    )
    rows = connection.execute(select(estimates).where(estimates.c.id.in_(newest)))
    return {
        row.campaign: {
            "at": iso(row.at),
            "users": row.users,
            "answer": row.answer,
            "interval": row.answer_interval,
            "byzantine_fraction": row.byzantine_fraction,
            "finding": row.finding,
        }
        for row in rows
    }


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
    # Devices of the baseline are in two groups: the sum is users, or more. So it selects the
    # campaigns whose users are worth counting, of thousands that may have no new reports.
    devices = func.sum(group_counters.c.submissions)
    sums = select(group_counters.c.campaign, devices.label("devices"))
    by_campaign = sums.group_by(group_counters.c.campaign).subquery()
    columns = (campaigns.c.id, campaigns.c.min_users, campaigns.c.plan, by_campaign.c.devices)
    joined = select(*columns).join(by_campaign, by_campaign.c.campaign == campaigns.c.id)
    newest_first = joined.order_by(campaigns.c.created_at.desc(), campaigns.c.id)
    enough = connection.execute(newest_first.where(by_campaign.c.devices >= campaigns.c.min_users))
    candidates = [row for row in enough if row.devices > estimated.get(row.id, 0)]
    users = count_users_of(connection, {row.id: row.plan for row in candidates})
    return [
        row.id
        for row in candidates
        if users[row.id].submissions >= row.min_users
        and users[row.id].submissions > estimated.get(row.id, 0)
    ]
