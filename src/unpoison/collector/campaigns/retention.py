"""Retention: after some days a submission's values are forgotten. Counts stay."""

from __future__ import annotations

from sqlalchemy import Connection, select, tuple_, update

from unpoison.collector.storage.schema import submissions

AT_ONCE = 5000


def forget_old(connection: Connection, before: int) -> int:
    """Drop the values of submissions older than a moment, some at a time; returns how many.

    The row stays, so that the ticket stays used.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database, database.writing() as connection:
    ...     forget_old(connection, before=0)
    0
    """
    old = (submissions.c.received_at < before) & submissions.c.cells.is_not(None)
    rows = connection.execute(
        select(submissions.c.campaign, submissions.c.ticket).where(old).limit(AT_ONCE)
    ).all()
    if not rows:
        return 0
    keys = tuple_(submissions.c.campaign, submissions.c.ticket)
    named = [(row.campaign, row.ticket) for row in rows]
    connection.execute(update(submissions).where(keys.in_(named)).values(cells=None))
    return len(rows)
