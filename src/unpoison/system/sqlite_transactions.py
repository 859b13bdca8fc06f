"""Transactions of SQLite files that several processes write to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exclusive_transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction that is committed whole or rolled back.

    It takes the write lock before the first read (IMMEDIATE), so that what is read cannot change
    before it is written.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> with exclusive_transaction(connection) as opened:
    ...     _ = opened.execute("CREATE TABLE spent (epsilon TEXT)")
    >>> connection.in_transaction
    False
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
