"""The register of ticket keys: which keys the servers of a database sign with, by fingerprint."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, select

from unpoison.collector.storage.dialects import insert_with_conflicts
from unpoison.collector.storage.schema import ticket_keys, tickets


def registered_keys(connection: Connection) -> dict[str, int]:
    """The fingerprints of all registered keys, each with the moment from which the key signs.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.reading() as connection:
    ...     registered_keys(connection)
    {}
    """
    rows = connection.execute(select(ticket_keys.c.fingerprint, ticket_keys.c.signs_from))
    return {row.fingerprint: row.signs_from for row in rows}


def register_keys(connection: Connection, keys: Mapping[str, int]) -> None:
    """Add keys that are not registered yet; those that are stay as they are.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     for moment in (100, 200):
    ...         register_keys(connection, {"f00d": moment})
    ...     registered_keys(connection)
    {'f00d': 100}
    """
    rows = [
        {"fingerprint": fingerprint, "signs_from": signs_from}
        for fingerprint, signs_from in keys.items()
    ]
    # Two servers that read the same new key may register it at the same moment.
    add = insert_with_conflicts(connection, ticket_keys).on_conflict_do_nothing()
    connection.execute(add, rows)


def replace_registered_keys(connection: Connection, keys: Mapping[str, int]) -> None:
    """Register these keys and no others.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     for fingerprint in ("f00d", "beef"):
    ...         replace_registered_keys(connection, {fingerprint: 100})
    ...     registered_keys(connection)
    {'beef': 100}
    """
    connection.execute(delete(ticket_keys))
    register_keys(connection, keys)


def has_tickets(connection: Connection) -> bool:
    """Whether a ticket was ever issued, in a campaign that has not been deleted.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.reading() as connection:
    ...     has_tickets(connection)
    False
    """
    return connection.execute(select(tickets.c.ticket).limit(1)).first() is not None
