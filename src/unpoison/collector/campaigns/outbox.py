"""The outbox: messages about alarms that wait until the webhook's receiver has taken them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from unpoison.collector.campaigns.alarms import AlarmChange
from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import outbox

ID_BYTES = 16
"""128 random bits: no two messages share an id."""
FIRST_WAIT, LONGEST_WAIT = 5, 3600
"""Seconds after the first failure, doubled after each further one up to an hour: a receiver that is
restarted hears soon, and one that is gone for days is not bothered much."""


class Message(NamedTuple):
    """A message that waits, with the number of its row and how often it was tried.

    >>> Message(1, "a1", "{}", attempts=0, next_at=0).attempts
    0
    """

    row: int
    id: str
    body: str
    attempts: int
    next_at: int


def announce(connection: Connection, changes: Sequence[AlarmChange], now: int) -> None:
    """Put a message for each change into the outbox, in the transaction of the change.

    It names campaign, rule, state and time, and holds nothing of reports and estimates.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> change = AlarmChange("k3v9x2m4q7w1", "Rides", "doubt", "started", at=0)
    >>> with temporary_database() as database, database.writing() as connection:
    ...     announce(connection, [change], now=0)
    ...     sorted(json.loads(oldest_message(connection).body))
    ['at', 'campaign', 'id', 'name', 'rule', 'state']
    """
    for change in changes:
        message = secrets.token_hex(ID_BYTES)
        body = {
            "id": message,
            "campaign": change.campaign,
            "name": change.name,
            "rule": change.rule,
            "state": change.state,
            "at": iso(change.at),
        }
        row = {"message": message, "body": json.dumps(body), "attempts": 0, "next_at": now}
        connection.execute(insert(outbox), row)


def oldest_message(connection: Connection) -> Message | None:
    """The message to send next: they are sent in their order, one after another.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.reading() as connection:
    ...     oldest_message(connection)
    """
    row = connection.execute(select(outbox).order_by(outbox.c.id).limit(1)).first()
    return None if row is None else Message(*row)


def remove(connection: Connection, message: Message) -> None:
    """Forget a message that was delivered.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> change = AlarmChange("k3v9x2m4q7w1", "Rides", "doubt", "started", at=0)
    >>> with temporary_database() as database, database.writing() as connection:
    ...     announce(connection, [change], now=0)
    ...     remove(connection, oldest_message(connection))
    ...     oldest_message(connection)
    """
    connection.execute(delete(outbox).where(outbox.c.id == message.row))


def postpone(connection: Connection, message: Message, now: int) -> None:
    """Try a message that was not delivered again later.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> change = AlarmChange("k3v9x2m4q7w1", "Rides", "doubt", "started", at=0)
    >>> with temporary_database() as database, database.writing() as connection:
    ...     announce(connection, [change], now=0)
    ...     for now in (0, 5):
    ...         postpone(connection, oldest_message(connection), now)
    ...     oldest_message(connection).next_at
    15
    """
    # The exponent is bounded: a receiver that is gone for years must not make numbers overflow.
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(message.attempts, 10))
    values = {"attempts": message.attempts + 1, "next_at": now + wait}
    connection.execute(update(outbox).where(outbox.c.id == message.row).values(**values))
