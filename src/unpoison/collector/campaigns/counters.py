"""Numbers that only grow: seats by group, activity by minute, rejections by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, case, select, update
from sqlalchemy.dialects import postgresql, sqlite

from unpoison.collector.storage.schema import activity, campaigns, rejections, seats

MINUTE = 60
Insert = postgresql.Insert | sqlite.Insert
INSERTS: dict[str, Callable[[Table], Insert]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}


def add_to(
    connection: Connection, table: Table, key: Mapping[str, Any], amounts: Mapping[str, int]
) -> None:
    """Add amounts to a row's columns; the row begins with them if it is not there yet.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     key = {"campaign": campaign.id, "cause": "ticket-used"}
    ...     for _ in range(2):
    ...         add_to(connection, rejections, key, {"count": 3})
    ...     connection.execute(select(rejections.c.count)).scalar()
    6
    """
    row = INSERTS[connection.dialect.name](table).values({**key, **amounts})
    more = {name: table.c[name] + row.excluded[name] for name in amounts}
    connection.execute(row.on_conflict_do_update(index_elements=list(key), set_=more))


def count_seats(connection: Connection, campaign: str, groups: Iterable[int], column: str) -> None:
    """Devices that enrolled or reported, by the group of each.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     count_seats(connection, campaign.id, [0, 1, 1], "enrolled")
    ...     connection.execute(select(seats.c.enrolled)).scalars().all()
    [1, 2]
    """
    amounts = case(Counter(groups), value=seats.c.group_number, else_=0)
    mine = update(seats).where(seats.c.campaign == campaign)
    connection.execute(mine.values({column: seats.c[column] + amounts}))


def count_activity(
    connection: Connection, campaign: str, column: str, number: int, now: int
) -> None:
    """How many devices enrolled or reported in this minute.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     count_activity(connection, campaign.id, "enrolled", 5, now=61)
    ...     connection.execute(select(activity.c.minute, activity.c.enrolled)).all()
    [(60, 5)]
    """
    amounts = {"enrolled": 0, "submissions": 0, column: number}
    add_to(connection, activity, {"campaign": campaign, "minute": now - now % MINUTE}, amounts)


def count_rejections(connection: Connection, found: Sequence[tuple[str, str, int]]) -> None:
    """Rejections as (campaign, cause, number), of campaigns that still exist.

    They are added in a fixed order: two servers could lock one another's rows otherwise.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     found = [(campaign.id, "ticket-used", 3), ("gone", "ticket-used", 1)]
    ...     count_rejections(connection, found)
    ...     connection.execute(select(rejections.c.count)).scalars().all()
    [3]
    """
    named = {campaign for campaign, _, _ in found}
    known = set(
        connection.execute(select(campaigns.c.id).where(campaigns.c.id.in_(named))).scalars()
    )
    for campaign, cause, number in sorted(found):
        if campaign in known:
            key = {"campaign": campaign, "cause": cause}
            add_to(connection, rejections, key, {"count": number})
