"""Export of a campaign as a ZIP archive: plan, status, Summary, and the reports still stored."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, select

from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.status import status
from unpoison.collector.campaigns.submissions import report_groups, unpacked
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.storage.schema import submissions, tickets
from unpoison.types import IntArray

ROWS_PER_BATCH = 4096
"""Submissions in memory at once, so that an export of any size needs little of it."""


def export(connection: Connection, campaign: Campaign, path: Path) -> None:
    """Write the archive; the transaction makes all its parts agree.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign), TemporaryDirectory() as folder:
    ...     export(connection, campaign, Path(folder, "drinks.zip"))
    ...     zipfile.ZipFile(Path(folder, "drinks.zip")).namelist()
    ['plan.json', 'campaign.json', 'campaign.summary', 'reports.parquet']
    """
    # With pyarrow, which a server needs for nothing else.
    from unpoison.reports.writing import ReportWriter

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan.json", campaign.plan.to_json() + "\n")
        archive.writestr("campaign.json", json.dumps(status(connection, campaign), indent=2) + "\n")
        archive.writestr("campaign.summary", Tallies.summary(connection, campaign).to_bytes())
        with (
            # The size is not known beforehand, and may pass the 2 GiB of the older format.
            archive.open("reports.parquet", "w", force_zip64=True) as file,
            ReportWriter(file, path.with_suffix(".parquet"), whole=True) as writer,
        ):
            for groups, cells in _stored_reports(connection, campaign):
                writer.write(groups, cells)


def _stored_reports(
    connection: Connection, campaign: Campaign
) -> Iterator[tuple[IntArray, IntArray]]:
    """Groups and cells of reports within the retention time, batch by batch.

    They come in the order of tickets, which is random: the order of arrival is not exported.
    """
    of_submission = (tickets.c.campaign == submissions.c.campaign) & (
        tickets.c.ticket == submissions.c.ticket
    )
    stored = (
        select(submissions.c.ticket, submissions.c.cells, tickets.c.group_number)
        .join(tickets, of_submission)
        .where((submissions.c.campaign == campaign.id) & submissions.c.cells.is_not(None))
        .order_by(submissions.c.ticket)
        .execution_options(yield_per=ROWS_PER_BATCH)
    )
    for rows in connection.execute(stored).partitions():
        groups = [group for row in rows for group in campaign.plan.groups_of_user(row.group_number)]
        cells = unpacked(b"".join(bytes(row.cells) for row in rows))
        yield report_groups(campaign, groups), cells
