"""Who may run campaigns: bearers of a token, of which only the hash is kept."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from unpoison.collector.credentials import hashed, new_token
from unpoison.collector.storage.schema import operators


def add_operator(connection: Connection, now: int) -> str:
    """A new token: it can be read here, and never again.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database, database.writing() as connection:
    ...     token = add_operator(connection, now=0)
    ...     operator_hashes(connection) == [hashed(token)]
    True
    """
    token = new_token()
    connection.execute(insert(operators), {"token_hash": hashed(token), "created_at": now})
    return token


def operator_hashes(connection: Connection) -> list[bytes]:
    """The hashes of all tokens.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database, database.reading() as connection:
    ...     operator_hashes(connection)
    []
    """
    return [bytes(each) for each in connection.execute(select(operators.c.token_hash)).scalars()]


def forget_operators(connection: Connection) -> int:
    """Make all tokens useless; returns how many there were.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database, database.writing() as connection:
    ...     add_operator(connection, now=0) and forget_operators(connection)
    1
    """
    return connection.execute(delete(operators)).rowcount
