"""What the page shows of a campaign: counts, activity, rejections, and estimates over time."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, func, insert, select

from unpoison.collector.campaigns.campaigns import Campaign, Campaigns
from unpoison.collector.campaigns.locks import lock_seats
from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import activity, estimates, invites, rejections, seats

MINUTES = 1440
ESTIMATES = 500


def status(connection: Connection, campaign: Campaign) -> dict[str, Any]:
    """Everything but the estimate itself.

    >>> from unpoison import Plan
    >>> from unpoison.collector.campaigns.campaigns import Campaigns
    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> campaign = Campaign.new("Rides", Plan.new("piecewise-integer", low=0, high=9), now=0)
    >>> with scratch_database() as database, database.writing() as connection:
    ...     Campaigns.add(connection, campaign)
    ...     found = status(connection, campaign)
    >>> found["enrolled"], len(found["groups"]), found["activity"]
    (0, 5, [])
    """
    groups = _groups(connection, campaign)
    tiers = range(len(campaign.plan.all_tiers))
    firsts = {campaign.plan.tier_groups(tier)[0] for tier in tiers}
    users = [each for each in groups if not campaign.baseline or each["group"] in firsts]
    parts = {
        "enrolled": sum(each["enrolled"] for each in users),
        "submissions": sum(each["submissions"] for each in users),
        "reports": sum(each["submissions"] * each["reports_each"] for each in groups),
        "invites": _invites(connection, campaign),
        "groups": groups,
        "activity": _activity(connection, campaign),
        "rejections": _rejections(connection, campaign),
        "estimates": _estimates(connection, campaign),
    }
    return {**campaign.full(), **parts, "version": _version(campaign, parts)}


def _groups(connection: Connection, campaign: Campaign) -> list[dict[str, Any]]:
    mine = select(seats).where(seats.c.campaign == campaign.id).order_by(seats.c.group_number)
    plan = campaign.plan
    return [
        {
            "group": row.group_number,
            "tier": plan.tier_of(row.group_number),
            "epsilon": plan.all_groups[row.group_number].epsilon,
            "reports_each": plan.all_groups[row.group_number].reports,
            "enrolled": row.enrolled,
            "submissions": row.submissions,
        }
        for row in connection.execute(mine)
    ]


def _invites(connection: Connection, campaign: Campaign) -> dict[str, int]:
    counts = select(func.count(), func.count(invites.c.ticket))
    issued, used = connection.execute(counts.where(invites.c.campaign == campaign.id)).one()
    return {"issued": issued, "used": used}


def _activity(connection: Connection, campaign: Campaign) -> list[dict[str, Any]]:
    mine = select(activity).where(activity.c.campaign == campaign.id)
    rows = connection.execute(mine.order_by(activity.c.minute.desc()).limit(MINUTES)).all()
    return [
        {"at": iso(row.minute), "enrolled": row.enrolled, "submissions": row.submissions}
        for row in reversed(rows)
    ]


def _rejections(connection: Connection, campaign: Campaign) -> list[dict[str, Any]]:
    mine = select(rejections).where(rejections.c.campaign == campaign.id)
    rows = connection.execute(mine.order_by(rejections.c.count.desc(), rejections.c.cause))
    return [{"cause": row.cause, "count": row.count} for row in rows]


def _estimates(connection: Connection, campaign: Campaign) -> list[dict[str, Any]]:
    mine = select(estimates).where(estimates.c.campaign == campaign.id)
    rows = connection.execute(mine.order_by(estimates.c.id.desc()).limit(ESTIMATES)).all()
    return [
        {
            "at": iso(row.at),
            "users": row.users,
            "method": row.method,
            "mean": row.mean,
            "interval": None if row.low is None else [row.low, row.high],
            "byzantine_fraction": row.byzantine_fraction,
            "verdict": row.verdict,
        }
        for row in reversed(rows)
    ]


def _version(campaign: Campaign, parts: dict[str, Any]) -> str:
    """A short text that changes whenever anything does."""
    rejected = sum(each["count"] for each in parts["rejections"])
    made = [each["at"] for each in parts["estimates"][-1:]]
    told = [campaign.state, campaign.closes_at, parts["enrolled"], parts["submissions"], rejected]
    return "-".join(str(each) for each in [*told, parts["invites"]["issued"], *made])


def keep_estimate(connection: Connection, campaign: str, text: str, now: int) -> bool:
    """Write an estimate (as JSON) down for the page, unless there is one of as many users.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> from unpoison.estimate import Byzantine, Estimate
    >>> text = Estimate("ostrich", 4.5, Byzantine(0.0, "none"), users=9.0).to_json()
    >>> with scratch_campaign() as (connection, campaign):
    ...     [keep_estimate(connection, campaign.id, text, now=60) for _ in range(2)]
    [True, False]
    """
    lock_seats(connection, campaign)
    keys = json.loads(text)
    users = int(keys["users"])
    same = (estimates.c.campaign == campaign) & (estimates.c.users >= users)
    known = connection.execute(select(estimates.c.id).where(same).limit(1)).first()
    if known is not None or Campaigns.find(connection, campaign) is None:
        return False
    low, high = keys["interval"] or (None, None)
    row = {
        "campaign": campaign,
        "at": now,
        "users": users,
        "method": keys["method"],
        "mean": keys.get("mean"),
        "low": low,
        "high": high,
        "byzantine_fraction": keys["byzantine"]["fraction"],
        "verdict": keys["verdict"],
    }
    connection.execute(insert(estimates), row)
    return True


def with_news(connection: Connection) -> list[str]:
    """Campaigns in which more users have reported than the last estimate was about.

    >>> from unpoison.collector.campaigns.counters import count_seats
    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     before = with_news(connection)
    ...     count_seats(connection, campaign.id, [0, 1], "submissions")
    ...     before, with_news(connection) == [campaign.id]
    ([], True)
    """
    most = select(estimates.c.campaign, func.max(estimates.c.users)).group_by(estimates.c.campaign)
    told = {row[0]: row[1] for row in connection.execute(most)}
    found = Campaigns.all(connection)
    return [
        campaign.id
        for campaign, _, users in found
        if users >= campaign.min_users and users > told.get(campaign.id, 0)
    ]
