"""The list of campaigns, a page at a time, without parsing a plan."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, select

from unpoison.collector.campaigns.group_counters import DeviceCount
from unpoison.collector.clock import iso
from unpoison.collector.credentials import is_campaign_id
from unpoison.collector.faults import Fault
from unpoison.collector.storage.schema import campaigns, group_counters

DEFAULT_LIMIT, MOST_ENTRIES = 100, 500
"""Campaigns of a page: a screen or two by default, and at most what takes some milliseconds."""
CACHED_FACTS = 2 * MOST_ENTRIES
"""Plans whose facts are remembered, about a kilobyte each: with fewer than a page has, each of its
entries would be parsed twice."""
CURSOR_SEPARATOR = "-"
"""Stands between the moment and the id of a cursor, neither of which can contain it."""
LISTED = ("id", "name", "state", "access", "min_users", "created_at", "closes_at", "plan")


@dataclass(frozen=True)
class ListQuery:
    """Which campaigns are listed: after a cursor, with a text in their names, in a state.

    >>> ListQuery(search="rides", state="open").limit
    100
    """

    limit: int = DEFAULT_LIMIT
    after: str | None = None
    search: str | None = None
    state: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """What rows of the table must fulfil."""
        conditions: list[ColumnElement[bool]] = []
        if self.after is not None:
            moment, campaign = _parsed_cursor(self.after)
            same_moment = (campaigns.c.created_at == moment) & (campaigns.c.id > campaign)
            conditions.append((campaigns.c.created_at < moment) | same_moment)
        if self.search:
            conditions.append(campaigns.c.name.icontains(self.search, autoescape=True))
        if self.state is not None:
            conditions.append(campaigns.c.state == self.state)
        return conditions


class PlanFacts(NamedTuple):
    """What a list needs to know of a plan.

    >>> PlanFacts("f00", (0,)).counting_groups
    (0,)
    """

    fingerprint: str
    counting_groups: tuple[int, ...]
    """Groups that hold every user once, as `Plan.groups_that_count_users`."""


def list_campaigns(connection: Connection, query: ListQuery) -> dict[str, Any]:
    """A page of campaigns, newest first, and the cursor of the next page.

    Campaigns that are added meanwhile come before all pages, and so move nothing.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     page = list_campaigns(connection, ListQuery())
    >>> len(page["campaigns"]), page["campaigns"][0]["enrolled"], page["next"]
    (1, 0, None)
    """
    newest_first = (campaigns.c.created_at.desc(), campaigns.c.id)
    keys = select(campaigns.c.id, campaigns.c.created_at).where(*query.conditions())
    # One more than wanted tells whether there is another page. Plans are read for the page alone:
    # sorting whole rows would move all of them.
    keys_of_page = connection.execute(keys.order_by(*newest_first).limit(query.limit + 1)).all()
    ids = [row.id for row in keys_of_page[: query.limit]]
    columns = [campaigns.c[name] for name in LISTED]
    page = select(*columns).where(campaigns.c.id.in_(ids)).order_by(*newest_first)
    rows = connection.execute(page).all()
    users = count_users_of(connection, {row.id: row.plan for row in rows})
    more = len(keys_of_page) > query.limit
    return {
        "campaigns": [_entry(row, users[row.id]) for row in rows],
        "next": _cursor(rows[-1]) if more else None,
    }


def count_users_of(connection: Connection, plans: Mapping[str, str]) -> dict[str, DeviceCount]:
    """Users of campaigns, given the JSON of their plans by id; one in several groups counts once.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     count_users_of(connection, {campaign.id: campaign.plan_json})[campaign.id].enrolled
    0
    """
    users: dict[str, DeviceCount] = defaultdict(lambda: DeviceCount(0, 0))
    for row in _counters(connection, list(plans)):
        if row.group_number in plan_facts(plans[row.campaign]).counting_groups:
            enrolled, submissions = users[row.campaign]
            users[row.campaign] = DeviceCount(
                enrolled + row.enrolled, submissions + row.submissions
            )
    return users


@lru_cache(maxsize=CACHED_FACTS)
def plan_facts(text: str) -> PlanFacts:
    """Facts about a stored plan, from its JSON alone: it was checked when it was stored.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, protocol="baseline")
    >>> facts = plan_facts(plan.to_json())
    >>> facts.counting_groups, facts.fingerprint == plan.fingerprint
    ((0,), True)
    """
    keys = json.loads(text)
    canonical = json.dumps(keys, sort_keys=True).encode()
    sizes = [len(tier["groups"]) for tier in (keys, *keys.get("tiers", []))]
    # In the baseline a user is in all groups of a tier, so that the first one counts them.
    counted = [1 if keys["protocol"] == "baseline" else size for size in sizes]
    firsts = [sum(sizes[:tier]) for tier in range(len(sizes))]
    groups = (
        first + group
        for first, count in zip(firsts, counted, strict=True)
        for group in range(count)
    )
    return PlanFacts(hashlib.sha256(canonical).hexdigest(), tuple(groups))


def _counters(connection: Connection, ids: Collection[str]) -> Sequence[Row[Any]]:
    rows = select(group_counters).where(group_counters.c.campaign.in_(ids))
    return connection.execute(rows).all()


def _entry(row: Row[Any], users: DeviceCount) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state,
        "access": row.access,
        "fingerprint": plan_facts(row.plan).fingerprint,
        "closes_at": iso(row.closes_at),
        "created_at": iso(row.created_at),
        "min_users": row.min_users,
        "enrolled": users.enrolled,
        "submissions": users.submissions,
    }


def _cursor(row: Row[Any]) -> str:
    return f"{row.created_at}{CURSOR_SEPARATOR}{row.id}"


def _parsed_cursor(cursor: str) -> tuple[int, str]:
    moment, _, campaign = cursor.partition(CURSOR_SEPARATOR)
    # Longer numbers would not fit the databases' 64 bits.
    if moment.isascii() and moment.isdigit() and len(moment) <= 15 and is_campaign_id(campaign):
        return int(moment), campaign
    raise Fault("invalid-request", "after must be the cursor of an earlier page.", "after")
