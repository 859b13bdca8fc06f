"""What stands in a collector's database, read from outside, and whether it adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, select

from unpoison import Plan
from unpoison.collector.campaigns.campaigns import Campaign, Campaigns
from unpoison.collector.campaigns.submissions import unpacked
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.storage import schema
from unpoison.collector.storage.database import Database, database_url
from unpoison.types import IntArray


@dataclass(frozen=True)
class Books:
    """All rows of one campaign, as of one moment."""

    plan: Plan
    groups: dict[int, int]
    """The group of each ticket."""
    invites: list[int]
    """The tickets that invites were spent on."""
    cells: dict[int, tuple[int, ...]]
    """What is stored for each ticket that was used."""
    counts: IntArray
    """The sum of all tallies."""
    enrolled: dict[int, int]
    submissions: dict[int, int]
    activity: tuple[int, int]

    @property
    def recounted(self) -> IntArray:
        """What the tallies must add up to."""
        total = np.zeros_like(self.counts)
        for ticket, cells in self.cells.items():
            np.add.at(total[self.groups[ticket]], list(cells), 1)
        return total

    def check(self) -> None:
        """Nothing is there in part, and nothing twice."""
        assert sorted(self.invites) == sorted(self.groups), "each ticket has spent one invite"
        assert set(self.cells) <= set(self.groups), "whoever reported had enrolled"
        tickets = Counter(self.groups.values())
        used = Counter(self.groups[ticket] for ticket in self.cells)
        assert self.enrolled == {group: tickets[group] for group in self.enrolled}
        assert self.submissions == {group: used[group] for group in self.submissions}
        assert max(self.enrolled.values()) - min(self.enrolled.values()) <= 1, "groups are equal"
        assert np.array_equal(self.counts, self.recounted), "tallies are what submissions are"
        assert self.activity == (len(self.groups), len(self.cells))


@contextmanager
def opened(database: str) -> Iterator[Database]:
    """A database by what a collector's setting says."""
    found = Database(database_url(database))
    try:
        yield found
    finally:
        found.close()


def books(database: str, campaign: str) -> Books:
    """What stands there now."""
    with opened(database) as found, found.reading() as connection:
        known = Campaigns.find(connection, campaign)
        assert known is not None
        return _read(connection, known)


def _read(connection: Connection, campaign: Campaign) -> Books:
    def rows(table: Table) -> list[dict[str, Any]]:
        mine = select(table).where(table.c.campaign == campaign.id)
        return [dict(row._mapping) for row in connection.execute(mine)]

    places = {row.pop("group_number"): row for row in rows(schema.seats)}
    minutes = rows(schema.activity)
    return Books(
        campaign.plan,
        {row["ticket"]: row["group_number"] for row in rows(schema.tickets)},
        [row["ticket"] for row in rows(schema.invites) if row["ticket"] is not None],
        {row["ticket"]: tuple(unpacked(bytes(row["cells"]))) for row in rows(schema.submissions)},
        Tallies.summary(connection, campaign).counts,
        {group: row["enrolled"] for group, row in places.items()},
        {group: row["submissions"] for group, row in places.items()},
        (sum(row["enrolled"] for row in minutes), sum(row["submissions"] for row in minutes)),
    )
