"""The figures of campaigns for monitoring: users, balance of groups, and the last estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from unpoison.collector.campaigns.campaign import CACHED_PLANS, DRAFT, parsed_plan
from unpoison.collector.campaigns.group_balance import GroupBalance
from unpoison.collector.campaigns.group_counters import DeviceCount, count_users
from unpoison.collector.storage.schema import campaigns, estimates, group_counters

MOST_CAMPAIGNS = CACHED_PLANS
"""Campaigns that are monitored, the newest ones: as many as have their plans parsed already.
Prometheus asks every few seconds, and every campaign is several series there for good."""


@dataclass(frozen=True)
class CampaignFigures:
    """What monitoring shows of a campaign; None where there is no estimate yet, or it says nothing.

    >>> CampaignFigures("k3v9x2m4q7w1", "Rides", "open", users=3, balance_p_value=1.0).doubt
    """

    id: str
    name: str
    state: str
    users: int
    balance_p_value: float
    attacker_share: float | None = None
    nobody_attacks_p_value: float | None = None
    doubt: bool | None = None
    estimated_at: int | None = None


def campaign_figures(
    connection: Connection, only: Sequence[str] | None = None
) -> list[CampaignFigures]:
    """The figures of campaigns that have been opened: of `only` these, or of the newest ones.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     [(figures.name, figures.users) for figures in campaign_figures(connection)]
    [('Drinks', 0)]
    """
    opened = select(campaigns).where(campaigns.c.state != DRAFT)
    newest_first = opened.order_by(campaigns.c.created_at.desc(), campaigns.c.id)
    wanted = (
        newest_first.limit(MOST_CAMPAIGNS)
        if only is None
        else opened.where(campaigns.c.id.in_(only))
    )
    rows = connection.execute(wanted).all()
    ids = [row.id for row in rows]
    counters, last = _counters(connection, ids), _last_estimates(connection, ids)
    return [_figures(row, counters[row.id], last.get(row.id)) for row in rows]


def _counters(connection: Connection, ids: list[str]) -> dict[str, dict[int, DeviceCount]]:
    counters: dict[str, dict[int, DeviceCount]] = {campaign: {} for campaign in ids}
    rows = select(group_counters).where(group_counters.c.campaign.in_(ids))
    for row in connection.execute(rows):
        counters[row.campaign][row.group_number] = DeviceCount(row.enrolled, row.submissions)
    return counters


def _last_estimates(connection: Connection, ids: list[str]) -> dict[str, Row[Any]]:
    newest = select(func.max(estimates.c.id)).where(estimates.c.campaign.in_(ids))
    rows = select(estimates).where(estimates.c.id.in_(newest.group_by(estimates.c.campaign)))
    return {row.campaign: row for row in connection.execute(rows)}


def _figures(
    row: Row[Any], counters: dict[int, DeviceCount], last: Row[Any] | None
) -> CampaignFigures:
    plan = parsed_plan(row.plan)
    users = count_users(plan, counters).submissions
    balance = GroupBalance.of(plan, counters).p_value
    figures = (row.id, row.name, row.state, users, balance)
    if last is None:
        return CampaignFigures(*figures)
    return CampaignFigures(
        *figures,
        attacker_share=last.byzantine_fraction,
        nobody_attacks_p_value=last.nobody_attacks_p_value,
        doubt=last.doubt,
        estimated_at=last.at,
    )
