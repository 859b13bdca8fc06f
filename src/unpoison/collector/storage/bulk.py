"""Many rows at a time, in the way that each database takes them fastest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, LargeBinary, String, Table, Text

AT_ONCE = 500
POSTGRESQL: dict[type, str] = {
    BigInteger: "int8",
    Integer: "int4",
    LargeBinary: "bytea",
    String: "varchar",
    Text: "text",
}


def insert_rows(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Add rows: by COPY to PostgreSQL, by statements with many rows to SQLite.

    A statement for each row would let other threads in between, thousands of times.

    >>> from unpoison.collector.storage.schema import activity
    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> columns = ("campaign", "minute", "enrolled", "submissions")
    >>> with scratch_campaign() as (connection, campaign):
    ...     insert_rows(connection, activity, columns, [(campaign.id, n, 0, 0) for n in (60, 120)])
    ...     rows_among(connection, activity, ("minute",), campaign.id, "minute", [120, 180])
    [(120,)]
    """
    names = ", ".join(columns)
    if connection.dialect.name == "postgresql":
        cursor = connection.connection.cursor()
        form = f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)"
        with cursor.copy(form) as copy:
            copy.set_types([POSTGRESQL[type(table.c[name].type)] for name in columns])
            for row in rows:
                copy.write_row(row)
        cursor.close()
        return
    row_marks = f"({', '.join('?' * len(columns))})"
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        marks = ", ".join([row_marks] * len(some))
        given = tuple(chain.from_iterable(some))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES {marks}", given)


def rows_among(
    connection: Connection,
    table: Table,
    columns: Sequence[str],
    campaign: str,
    key: str,
    numbers: Sequence[int],
) -> list[tuple[Any, ...]]:
    """A campaign's rows whose key is one of some numbers, given as one parameter.

    >>> from unpoison.collector.storage.schema import seats
    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     rows_among(connection, seats, ("enrolled",), campaign.id, "group_number", [1, 2])
    [(0,)]
    """
    head = f"SELECT {', '.join(columns)} FROM {table.name} WHERE campaign"
    given: Any = list(numbers)
    if connection.dialect.name == "postgresql":
        statement = f"{head} = %s AND {key} = ANY(%s)"
    else:
        statement = f"{head} = ? AND {key} IN (SELECT value FROM json_each(?))"
        given = json.dumps(given)
    found = connection.exec_driver_sql(statement, (campaign, given))
    return [tuple(row) for row in found]
