"""The audit log: what operators changed, and when. It holds no values, invites or tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import audit

COMMAND_LINE = "command line"
"""Who did what is done with `unpoison serve --…` on the server's own machine."""
MOST_ENTRIES = 200
"""Entries of one page of the log."""


@dataclass(frozen=True)
class AuditEntry:
    """What somebody did: an action, with the campaign that it was about and a detail.

    >>> AuditEntry("ada", "invite", "k3v9x2m4q7w1", "1000 invites").action
    'invite'
    """

    operator: str
    action: str
    campaign: str | None = None
    detail: str | None = None


def record(connection: Connection, entry: AuditEntry, now: int) -> None:
    """Write an entry, in the transaction of what it is about.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     record(connection, AuditEntry("ada", "create"), now=0)
    ...     [entry["operator"] for entry in audit_page(connection)["entries"]]
    ['ada']
    """
    row = {
        "at": now,
        "operator": entry.operator,
        "action": entry.action,
        "campaign": entry.campaign,
        "detail": entry.detail,
    }
    connection.execute(insert(audit), row)


def audit_page(connection: Connection, before: int | None = None) -> dict[str, Any]:
    """Entries, newest first; `next` is what to ask for the page after, if there is one.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.reading() as connection:
    ...     audit_page(connection)
    {'entries': [], 'next': None}
    """
    newest_first = select(audit).order_by(audit.c.id.desc()).limit(MOST_ENTRIES + 1)
    if before is not None:
        newest_first = newest_first.where(audit.c.id < before)
    rows = connection.execute(newest_first).all()
    shown = rows[:MOST_ENTRIES]
    entries = [
        {
            "at": iso(row.at),
            "operator": row.operator,
            "action": row.action,
            "campaign": row.campaign,
            "detail": row.detail,
        }
        for row in shown
    ]
    return {"entries": entries, "next": shown[-1].id if len(rows) > len(shown) else None}
