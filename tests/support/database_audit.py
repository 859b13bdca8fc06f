"""The rows of a campaign, read from the database from outside, and checks that they add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, func, select

from unpoison import Plan
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.submissions import unpacked
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.storage import schema
from unpoison.collector.storage.database import Database, database_url
from unpoison.types import IntArray


@dataclass(frozen=True)
class CampaignRows:
    """All rows of one campaign, read in one transaction."""

    plan: Plan
    groups: dict[int, int]
    """The group of each ticket, by the ticket's number."""
    invites: list[int]
    """The ticket numbers that invites were spent on."""
    cells: dict[int, tuple[int, ...]]
    """The cells that were submitted with each used ticket, by the ticket's number."""
    counts: IntArray
    """The sum of all tallies."""
    enrolled: dict[int, int]
    """The number of enrolments that each group's row says."""
    submissions: dict[int, int]
    """The number of submissions that each group's row says."""
    activity: tuple[int, int]
    """The enrolments and submissions that the minutes of the activity add up to."""

    @property
    def recounted(self) -> IntArray:
        """What the tallies must add up to, counted again from the stored submissions."""
        total = np.zeros_like(self.counts)
        for ticket, cells in self.cells.items():
            np.add.at(total[self.groups[ticket]], list(cells), 1)
        return total

    def assert_consistent(self) -> None:
        """Check that no enrolment or submission is stored in part or counted twice."""
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
def open_database(database: str) -> Iterator[Database]:
    """Open the database that a collector's `database` setting names."""
    opened = Database(database_url(database))
    try:
        yield opened
    finally:
        opened.close()


def read_campaign_rows(database: str, campaign: str) -> CampaignRows:
    """Read the rows of a campaign, by its id, as they are now."""
    with open_database(database) as opened, opened.reading() as connection:
        row = Campaigns.find(connection, campaign)
        assert row is not None
        return _read(connection, row)


def count_rows(database: Database, campaign: str) -> int:
    """The number of tickets and submissions that are stored for a campaign now."""
    with database.reading() as connection:
        return sum(
            connection.execute(
                select(func.count()).select_from(table).where(table.c.campaign == campaign)
            ).scalar_one()
            for table in (schema.tickets, schema.submissions)
        )


def _read(connection: Connection, campaign: Campaign) -> CampaignRows:
    def rows(table: Table) -> list[dict[str, Any]]:
        of_campaign = select(table).where(table.c.campaign == campaign.id)
        return [dict(row._mapping) for row in connection.execute(of_campaign)]

    groups = {row.pop("group_number"): row for row in rows(schema.group_counters)}
    minutes = rows(schema.activity)
    return CampaignRows(
        campaign.plan,
        {row["ticket"]: row["group_number"] for row in rows(schema.tickets)},
        [row["ticket"] for row in rows(schema.invites) if row["ticket"] is not None],
        {row["ticket"]: tuple(unpacked(bytes(row["cells"]))) for row in rows(schema.submissions)},
        Tallies.summary(connection, campaign).counts,
        {group: row["enrolled"] for group, row in groups.items()},
        {group: row["submissions"] for group, row in groups.items()},
        (sum(row["enrolled"] for row in minutes), sum(row["submissions"] for row in minutes)),
    )
