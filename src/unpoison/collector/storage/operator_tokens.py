"""Operator tokens: who holds one may run campaigns. Only hashes are stored."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from unpoison.collector.credentials import hashed, new_token
from unpoison.collector.storage.schema import operators


def add_operator(connection: Connection, now: int) -> str:
    """Make a token and store its hash; the token itself cannot be read again.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     token = add_operator(connection, now=0)
    ...     operator_hashes(connection) == [hashed(token)]
    True
    """
    token = new_token()
    connection.execute(insert(operators), {"token_hash": hashed(token), "created_at": now})
    return token


def operator_hashes(connection: Connection) -> list[bytes]:
    """The hashes of all tokens.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.reading() as connection:
    ...     operator_hashes(connection)
    []
    """
    hashes = connection.execute(select(operators.c.token_hash)).scalars()
    return [bytes(token_hash) for token_hash in hashes]


def forget_operators(connection: Connection) -> int:
    """Revoke all tokens; returns how many there were.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     add_operator(connection, now=0) and forget_operators(connection)
    1
    """
    return connection.execute(delete(operators)).rowcount
