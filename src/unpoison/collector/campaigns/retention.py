"""Retention: the cells of old submissions are dropped; counts stay."""

from __future__ import annotations

from sqlalchemy import Connection, select, tuple_, update

from unpoison.collector.storage.schema import submissions

ROWS_PER_CALL = 5000
"""Submissions a transaction, so that devices who report meanwhile do not wait for long."""


def forget_old(connection: Connection, before: int) -> int:
    """Drop the cells of some submissions received before a moment; returns how many.

    To be called until it returns 0. The rows stay, so that their tickets stay used.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     forget_old(connection, before=0)
    0
    """
    old = (submissions.c.received_at < before) & submissions.c.cells.is_not(None)
    rows = connection.execute(
        select(submissions.c.campaign, submissions.c.ticket).where(old).limit(ROWS_PER_CALL)
    ).all()
    if not rows:
        return 0
    # UPDATE with a LIMIT is no standard SQL, so the rows are named by their keys.
    key = tuple_(submissions.c.campaign, submissions.c.ticket)
    keys = [(row.campaign, row.ticket) for row in rows]
    connection.execute(update(submissions).where(key.in_(keys)).values(cells=None))
    return len(rows)
