"""The status of a campaign for the page: counts, activity, rejections and past estimates."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from unpoison.collector.campaigns.alarms import alarms_of
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.estimate_history import past_estimates
from unpoison.collector.campaigns.group_balance import GroupBalance
from unpoison.collector.campaigns.group_counters import count_users, group_counters_of
from unpoison.collector.campaigns.onset import onset
from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import activity, invites, rejections

MOST_MINUTES = 1440
"""Minutes of activity that are shown: those of a day, if something happened in each."""


def status(connection: Connection, campaign: Campaign) -> dict[str, Any]:
    """The campaign with all that the page shows besides the present estimate.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     shown = status(connection, campaign)
    >>> shown["enrolled"], len(shown["groups"]), shown["activity"]
    (0, 2, [])
    """
    history = past_estimates(connection, campaign.id)
    counters = group_counters_of(connection, campaign.id)
    users = count_users(campaign.plan, counters)
    shown = {
        "enrolled": users.enrolled,
        "submissions": users.submissions,
        "reports": sum(
            count.submissions * campaign.reports[group] for group, count in counters.items()
        ),
        "invites": _invites(connection, campaign),
        "groups": [
            {
                "group": group,
                "tier": campaign.plan.tier_of(group),
                "epsilon": campaign.plan.all_groups[group].epsilon,
                "reports_each": campaign.reports[group],
                "enrolled": count.enrolled,
                "submissions": count.submissions,
            }
            for group, count in counters.items()
        ],
        "balance": GroupBalance.of(campaign.plan, counters).to_dict(),
        "activity": _activity(connection, campaign),
        "rejections": _rejections(connection, campaign),
        "estimates": history,
        "onset": onset(history),
        "alarms": alarms_of(connection, campaign.id),
    }
    return {**campaign.full(), **shown, "version": _version(campaign, shown)}


def _invites(connection: Connection, campaign: Campaign) -> dict[str, int]:
    counts = select(func.count(), func.count(invites.c.ticket))
    issued, used = connection.execute(counts.where(invites.c.campaign == campaign.id)).one()
    return {"issued": issued, "used": used}


def _activity(connection: Connection, campaign: Campaign) -> list[dict[str, Any]]:
    minutes = select(activity).where(activity.c.campaign == campaign.id)
    newest_first = minutes.order_by(activity.c.minute.desc()).limit(MOST_MINUTES)
    rows = connection.execute(newest_first).all()
    return [
        {"at": iso(row.minute), "enrolled": row.enrolled, "submissions": row.submissions}
        for row in reversed(rows)
    ]


def _rejections(connection: Connection, campaign: Campaign) -> list[dict[str, Any]]:
    causes = select(rejections).where(rejections.c.campaign == campaign.id)
    rows = connection.execute(causes.order_by(rejections.c.count.desc(), rejections.c.cause))
    return [{"cause": row.cause, "count": row.count} for row in rows]


def _version(campaign: Campaign, shown: dict[str, Any]) -> str:
    """A text that changes whenever the status does: counts only grow, states and ends are in it."""
    marks = [
        campaign.state,
        campaign.closes_at,
        shown["enrolled"],
        shown["submissions"],
        sum(rejection["count"] for rejection in shown["rejections"]),
        shown["invites"]["issued"],
        *(estimate["at"] for estimate in shown["estimates"][-1:]),
        *(f"{alarm['rule']} {alarm['threshold']} {alarm['since']}" for alarm in shown["alarms"]),
    ]
    return "-".join(str(mark) for mark in marks)
