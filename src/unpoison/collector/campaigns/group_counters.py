"""Counts of devices that enrolled and that reported, group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, case, insert, select, update

from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.storage.schema import group_counters
from unpoison.plan import Plan


class DeviceCount(NamedTuple):
    """Devices that have enrolled, and those of them that have reported.

    >>> DeviceCount(enrolled=3, submissions=2).submissions
    2
    """

    enrolled: int
    submissions: int


def add_group_counters(connection: Connection, campaign: Campaign) -> None:
    """Store counters of zero for every group of a new campaign.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     len(connection.execute(select(group_counters)).all())
    2
    """
    rows = [
        {"campaign": campaign.id, "group_number": group, "enrolled": 0, "submissions": 0}
        for group in range(len(campaign.plan.all_groups))
    ]
    connection.execute(insert(group_counters), rows)


def count_devices(
    connection: Connection, campaign: str, groups: Iterable[int], column: str
) -> None:
    """Count devices that enrolled or reported, given the group of each.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     count_devices(connection, campaign.id, [0, 1, 1], "enrolled")
    ...     connection.execute(select(group_counters.c.enrolled)).scalars().all()
    [1, 2]
    """
    # One statement for all groups: groups that are not named get 0 more.
    amounts = case(Counter(groups), value=group_counters.c.group_number, else_=0)
    rows = update(group_counters).where(group_counters.c.campaign == campaign)
    connection.execute(rows.values({column: group_counters.c[column] + amounts}))


def group_counters_of(
    connection: Connection, campaign: str, lock: bool = False
) -> dict[int, DeviceCount]:
    """The counters of one campaign by group; with `lock`, nobody else may change them meanwhile.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     list(group_counters_of(connection, campaign.id))
    [0, 1]
    """
    rows = select(group_counters).where(group_counters.c.campaign == campaign)
    # In the order of groups: two servers that lock the rows in different orders could deadlock.
    ordered = rows.order_by(group_counters.c.group_number)
    return {
        row.group_number: DeviceCount(row.enrolled, row.submissions)
        for row in connection.execute(ordered.with_for_update() if lock else ordered)
    }


def count_users(plan: Plan, counters: Mapping[int, DeviceCount]) -> DeviceCount:
    """Users over all groups; one who reports in several groups counts once.

    >>> plan = Plan.new(epsilon=0.5, low=0, high=1, min_epsilon=0.25)
    >>> count_users(plan, {0: DeviceCount(3, 1), 1: DeviceCount(2, 1)})
    DeviceCount(enrolled=5, submissions=2)
    """
    counted = [counters[group] for group in plan.groups_that_count_users]
    return DeviceCount(
        sum(count.enrolled for count in counted), sum(count.submissions for count in counted)
    )
