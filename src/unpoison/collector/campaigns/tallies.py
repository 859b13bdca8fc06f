"""Counts in the database: each transaction adds a small tally, and tallies add up.

A tally is a Summary with little in it. The campaign's Summary is the sum of its tallies, and since
any order gives the same sum, many of them can be replaced by one at any time.
"""

from __future__ import annotations

import struct

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select

from unpoison.collector.campaigns.campaigns import Campaign
from unpoison.collector.campaigns.locks import lock_seats
from unpoison.collector.storage.schema import tallies
from unpoison.plan import Plan
from unpoison.summary import Summary
from unpoison.summary.summary import FIXED_POINT
from unpoison.types import IntArray

MANY = 256
HEAD = struct.Struct("<BI")
FORMAT = 1


def pack(counts: IntArray) -> bytes:
    """The cells that are not empty, with their counts.

    >>> len(pack(np.array([[0, 3], [0, 1]])))
    29
    """
    flat = counts.ravel()
    cells = np.flatnonzero(flat)
    head = HEAD.pack(FORMAT, len(cells))
    return head + cells.astype("<u4").tobytes() + flat[cells].astype("<i8").tobytes()


def add_packed(data: bytes, counts: IntArray) -> None:
    """Add a tally's counts to an array, in place.

    >>> counts = np.array([[0, 3], [0, 1]])
    >>> add_packed(pack(counts), counts)
    >>> counts.tolist()
    [[0, 6], [0, 2]]
    """
    form, size = HEAD.unpack_from(data)
    if form != FORMAT:
        raise ValueError(f"a tally has the format {form}; known is {FORMAT}")
    cells = np.frombuffer(data, dtype="<u4", count=size, offset=HEAD.size)
    amounts = np.frombuffer(data, dtype="<i8", count=size, offset=HEAD.size + 4 * size)
    counts.reshape(-1)[cells] += amounts


def summary_of_counts(plan: Plan, counts: IntArray) -> Summary:
    """The Summary of whole-number reports: counts say all, sums too.

    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=1.0, categories=["tea", "milk"])
    >>> summary_of_counts(plan, np.array([[2, 5]])).sum(0)
    5.0
    """
    sums = counts @ np.arange(plan.cells)
    return Summary(plan, counts, tuple(int(each) * FIXED_POINT for each in sums))


class Tallies:
    """The tallies of campaigns; each function is one step of a transaction.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     for _ in range(3):
    ...         Tallies.add(connection, campaign.id, np.array([[2, 5], [0, 1]]))
    ...     Tallies.summary(connection, campaign).counts.tolist()
    [[6, 15], [0, 3]]
    """

    @staticmethod
    def add(connection: Connection, campaign: str, counts: IntArray) -> None:
        """What one transaction counted."""
        connection.execute(insert(tallies), {"campaign": campaign, "counts": pack(counts)})

    @staticmethod
    def summary(connection: Connection, campaign: Campaign) -> Summary:
        """All that has been counted: one statement, and so one moment."""
        mine = select(tallies.c.counts).where(tallies.c.campaign == campaign.id)
        plan = campaign.plan
        total = np.zeros((len(plan.all_groups), plan.cells), dtype=np.int64)
        for counts in connection.execute(mine).scalars():
            add_packed(bytes(counts), total)
        return summary_of_counts(plan, total)

    @staticmethod
    def crowded(connection: Connection) -> list[str]:
        """The campaigns that have many tallies."""
        many = select(tallies.c.campaign).group_by(tallies.c.campaign).having(func.count() >= MANY)
        return list(connection.execute(many).scalars())

    @staticmethod
    def compact(connection: Connection, campaign: Campaign) -> int:
        """Replace many tallies by their sum; returns how many there were."""
        lock_seats(connection, campaign.id)
        mine = tallies.c.campaign == campaign.id
        ids = connection.execute(select(tallies.c.id).where(mine)).scalars().all()
        if len(ids) < MANY:
            return 0
        total = Tallies.summary(connection, campaign).counts
        connection.execute(delete(tallies).where(mine))
        Tallies.add(connection, campaign.id, total)
        return len(ids)
