"""Token buckets in the database, which all servers take from.

A bucket is one number, the moment at which it is full again: each token taken moves it on by the
time that one token takes to come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, select, tuple_, update

from unpoison.collector.storage.dialects import insert_with_conflicts
from unpoison.collector.storage.schema import rate_limits

ROUNDING = 1e-3
"""Seconds by which sums of moments may be off: moments since 1970 are exact to some 1e-7, and a
bucket adds few. Without it the last token of a bucket of seven would be missing."""
CLOCK_SKEW = 60.0
"""Seconds by which the clocks of two servers may differ: what one wrote still counts at the other.
"""
SELECTED_AT_ONCE = 500
"""Buckets a query: each takes two parameters, of which SQLite allows 32,766."""


@dataclass(frozen=True)
class TokenRequest:
    """A request for one token of an address's bucket for an action.

    >>> request = TokenRequest("guess", b"address", most=3, seconds_per_token=20.0)
    >>> request.taken(full_at=0.0, now=100), request.taken(full_at=160.0, now=100)
    ((0.0, 120.0), (20.0, 160.0))
    >>> request.taken(full_at=200.0, now=100), request.taken(full_at=9000.0, now=100)
    ((20.0, 160.0), (0.0, 120.0))
    """

    action: str
    address: bytes
    """A keyed hash: the database does not learn who asked."""
    most: float
    seconds_per_token: float

    @property
    def key(self) -> tuple[str, bytes]:
        """The primary key of the bucket's row."""
        return self.action, self.address

    def taken(self, full_at: float, now: int) -> tuple[float, float]:
        """The seconds to wait, 0 if a token was taken, and when the bucket is full then."""
        empty = now + self.most * self.seconds_per_token
        # Far later than an empty bucket's: the clock was set back since, and the row says nothing.
        known = full_at if full_at <= empty + CLOCK_SKEW else 0.0
        present = min(max(known, float(now)), empty)
        after = present + self.seconds_per_token
        return (0.0, after) if after <= empty + ROUNDING else (after - empty, present)


def take_tokens(connection: Connection, requests: Sequence[TokenRequest], now: int) -> list[float]:
    """Take a token for each request; returns the seconds to wait where there was none, else 0.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> request = TokenRequest("guess", b"address", most=2, seconds_per_token=30.0)
    >>> with temporary_database() as database, database.writing() as connection:
    ...     take_tokens(connection, [request] * 3, now=1000)
    [0.0, 0.0, 30.0]
    """
    # One order for all servers, against deadlock.
    keys = sorted({request.key for request in requests})
    before = _locked(connection, keys)
    full_at = dict(before)
    waits = []
    for request in requests:
        wait, full_at[request.key] = request.taken(full_at[request.key], now)
        waits.append(wait)
    changed = [
        {"of_action": action, "of_address": address, "moment": full_at[action, address]}
        for action, address in keys
        if full_at[action, address] != before[action, address]
    ]
    if changed:
        row = (rate_limits.c.action == bindparam("of_action")) & (
            rate_limits.c.address == bindparam("of_address")
        )
        statement = update(rate_limits).where(row).values(full_at=bindparam("moment"))
        connection.execute(statement, changed)
    return waits


def _locked(
    connection: Connection, keys: Sequence[tuple[str, bytes]]
) -> dict[tuple[str, bytes], float]:
    """Lock the rows of buckets, and read when each is full; missing ones are full already."""
    table = rate_limits.c
    rows = [{"action": action, "address": address, "full_at": 0.0} for action, address in keys]
    add = insert_with_conflicts(connection, rate_limits)
    # A row that is there is written as it is, which locks it: else another server could delete it
    # before it is read.
    key_columns = [table.action, table.address]
    kept = {"full_at": table.full_at}
    connection.execute(add.on_conflict_do_update(index_elements=key_columns, set_=kept), rows)
    full_at: dict[tuple[str, bytes], float] = {}
    for first in range(0, len(keys), SELECTED_AT_ONCE):
        chosen = tuple_(table.action, table.address).in_(keys[first : first + SELECTED_AT_ONCE])
        for row in connection.execute(select(rate_limits).where(chosen)):
            full_at[row.action, bytes(row.address)] = row.full_at
    return full_at


def drop_full_buckets(connection: Connection, now: int) -> None:
    """Delete the buckets that are full: they limit nobody, and would tell who was here.

    Those that another server takes from at this moment stay for the next time: to wait for them
    in another order than `take_tokens` could end in a deadlock.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> request = TokenRequest("guess", b"address", most=2, seconds_per_token=30.0)
    >>> with temporary_database() as database, database.writing() as connection:
    ...     take_tokens(connection, [request], now=1000)
    ...     drop_full_buckets(connection, now=1031)
    ...     connection.execute(select(rate_limits)).all()
    [0.0]
    []
    """
    table = rate_limits.c
    full = select(table.action, table.address).where(table.full_at < now)
    # SQLite has one writer, and no such locks.
    free = full.with_for_update(skip_locked=True)
    connection.execute(delete(rate_limits).where(tuple_(table.action, table.address).in_(free)))
