"""A campaign as one archive: plan, counts, and the reports that are still kept."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, select

from unpoison.collector.campaigns.campaigns import Campaign
from unpoison.collector.campaigns.status import status
from unpoison.collector.campaigns.submissions import row_groups, unpacked
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.storage.schema import submissions, tickets
from unpoison.reports.writing import ReportWriter
from unpoison.types import IntArray

AT_ONCE = 4096


def export(connection: Connection, campaign: Campaign, path: Path) -> None:
    """Write the archive; all parts are of one moment.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison import Plan
    >>> from unpoison.collector.campaigns.campaigns import Campaigns
    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> campaign = Campaign.new("Rides", Plan.new("piecewise-integer", low=0, high=9), now=0)
    >>> with scratch_database() as database, database.writing() as connection:
    ...     Campaigns.add(connection, campaign)
    ...     with TemporaryDirectory() as folder:
    ...         export(connection, campaign, Path(folder, "rides.zip"))
    ...         zipfile.ZipFile(Path(folder, "rides.zip")).namelist()
    ['plan.json', 'campaign.json', 'campaign.summary', 'reports.parquet']
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan.json", campaign.plan.to_json() + "\n")
        archive.writestr("campaign.json", json.dumps(status(connection, campaign), indent=2) + "\n")
        archive.writestr("campaign.summary", Tallies.summary(connection, campaign).to_bytes())
        with (
            archive.open("reports.parquet", "w", force_zip64=True) as file,
            ReportWriter(file, path.with_suffix(".parquet"), whole=True) as writer,
        ):
            for group, value in _reports(connection, campaign):
                writer.write(group, value)


def _reports(connection: Connection, campaign: Campaign) -> Iterator[tuple[IntArray, IntArray]]:
    """Groups and cells of the submissions whose values are kept, in the order of tickets."""
    same = (tickets.c.campaign == submissions.c.campaign) & (
        tickets.c.ticket == submissions.c.ticket
    )
    kept = (
        select(submissions.c.ticket, submissions.c.cells, tickets.c.group_number)
        .join(tickets, same)
        .where((submissions.c.campaign == campaign.id) & submissions.c.cells.is_not(None))
        .order_by(submissions.c.ticket)
        .execution_options(yield_per=AT_ONCE)
    )
    for rows in connection.execute(kept).partitions():
        each = [campaign.groups_with(row.group_number) for row in rows]
        groups = row_groups(campaign, [group for some in each for group in some])
        yield groups, unpacked(b"".join(bytes(row.cells) for row in rows))
