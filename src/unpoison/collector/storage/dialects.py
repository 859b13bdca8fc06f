"""Statements for which SQLite and PostgreSQL each need their own form to be fast.

Bulk inserts, lookups by many keys, and inserts that add to a row that is already there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Connection, Integer, LargeBinary, String, Table, Text
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

ROWS_PER_STATEMENT = 500
"""SQLite takes at most 32,766 parameters a statement; our widest table has five columns."""
COPY_TYPES: dict[type, str] = {
    BigInteger: "int8",
    Integer: "int4",
    LargeBinary: "bytea",
    String: "varchar",
    Text: "text",
}
"""PostgreSQL's names of our column types: binary COPY does no conversion, so it must be told."""


def insert_rows(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows: by COPY into PostgreSQL, by multi-row statements into SQLite.

    `executemany` would give up the interpreter lock once a row, and each time wait for the busy
    event loop to return it.

    >>> from unpoison.collector.storage.schema import activity
    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> columns = ("campaign", "minute", "enrolled", "submissions")
    >>> with temporary_campaign() as (connection, campaign):
    ...     insert_rows(connection, activity, columns, [(campaign.id, n, 0, 0) for n in (60, 120)])
    ...     rows_by_keys(connection, activity, ("minute",), campaign.id, "minute", [120, 180])
    [(120,)]
    """
    names = ", ".join(columns)
    if connection.dialect.name == "postgresql":
        cursor = connection.connection.cursor()
        statement = f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)"
        with cursor.copy(statement) as copy:
            copy.set_types([COPY_TYPES[type(table.c[name].type)] for name in columns])
            for row in rows:
                copy.write_row(row)
        cursor.close()
        return
    row_marks = f"({', '.join('?' * len(columns))})"
    for first in range(0, len(rows), ROWS_PER_STATEMENT):
        chunk = rows[first : first + ROWS_PER_STATEMENT]
        marks = ", ".join([row_marks] * len(chunk))
        parameters = tuple(chain.from_iterable(chunk))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES {marks}", parameters)


def rows_by_keys(
    connection: Connection,
    table: Table,
    columns: Sequence[str],
    campaign: str,
    key: str,
    numbers: Sequence[int],
) -> list[tuple[Any, ...]]:
    """Select a campaign's rows whose key is one of these numbers.

    >>> from unpoison.collector.storage.schema import group_counters
    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     columns = ("group_number", "enrolled")
    ...     rows_by_keys(connection, group_counters, columns, campaign.id, "group_number", [1, 2])
    [(1, 0)]
    """
    # All numbers are one parameter: the statement's text, by which drivers keep prepared
    # statements, then does not depend on how many there are.
    head = f"SELECT {', '.join(columns)} FROM {table.name} WHERE campaign"
    keys: Any = list(numbers)
    if connection.dialect.name == "postgresql":
        statement = f"{head} = %s AND {key} = ANY(%s)"
    else:
        statement = f"{head} = ? AND {key} IN (SELECT value FROM json_each(?))"
        keys = json.dumps(keys)
    rows = connection.exec_driver_sql(statement, (campaign, keys))
    return [tuple(row) for row in rows]


def insert_with_conflicts(
    connection: Connection, table: Table
) -> postgresql.Insert | sqlite.Insert:
    """An insert that can say what to do `ON CONFLICT`, which SQLAlchemy's general one cannot.

    >>> from unpoison.collector.storage.schema import operators
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     type(insert_with_conflicts(connection, operators)).__module__
    'sqlalchemy.dialects.sqlite.dml'
    """
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    # Where it is needed, it is loaded already; a server on SQLite starts sooner without it.
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def add_to_row(
    connection: Connection, table: Table, key: Mapping[str, Any], amounts: Mapping[str, int]
) -> None:
    """Add amounts to columns of the row with this key, which is inserted if it is missing.

    >>> from sqlalchemy import select
    >>> from unpoison.collector.storage.schema import rejections
    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     key = {"campaign": campaign.id, "cause": "ticket-used"}
    ...     for _ in range(2):
    ...         add_to_row(connection, rejections, key, {"count": 3})
    ...     connection.execute(select(rejections.c.count)).scalar()
    6
    """
    row = insert_with_conflicts(connection, table).values({**key, **amounts})
    sums = {name: table.c[name] + row.excluded[name] for name in amounts}
    connection.execute(row.on_conflict_do_update(index_elements=list(key), set_=sums))
