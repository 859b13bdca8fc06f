"""Tallies: the counts of a campaign, stored as the sparse counts of each transaction.

Rewriting a campaign's whole Summary in each transaction would cost up to 8 MiB of writes. So a
transaction inserts a small tally instead, and the Summary is the sum of all tallies. Sums do not
depend on order, so many tallies can be replaced by their sum at any time.
"""

from __future__ import annotations

import struct

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select

from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.locks import lock_campaign
from unpoison.collector.storage.schema import tallies
from unpoison.plan import Plan
from unpoison.summary import Summary
from unpoison.summary.summary import FIXED_POINT
from unpoison.types import IntArray

COMPACT_AT = 256
"""Tallies of a campaign that are replaced by their sum: reading a Summary then takes the reading
of at most a few hundred rows, and compaction comes every few hundred transactions."""
HEADER = struct.Struct("<BI")
"""Format number, and how many cells follow."""
FORMAT = 1
"""Format number of packed counts; another number would mean another layout."""


def pack(counts: IntArray) -> bytes:
    """Pack counts as the numbers of the cells that are not empty, and their counts.

    >>> len(pack(np.array([[0, 3], [0, 1]])))
    29
    """
    flat = counts.ravel()
    cells = np.flatnonzero(flat)
    header = HEADER.pack(FORMAT, len(cells))
    return header + cells.astype("<u4").tobytes() + flat[cells].astype("<i8").tobytes()


def add_packed(data: bytes, counts: IntArray) -> None:
    """Add packed counts to an array, in place.

    >>> counts = np.array([[0, 3], [0, 1]])
    >>> add_packed(pack(counts), counts)
    >>> counts.tolist()
    [[0, 6], [0, 2]]
    """
    data_format, size = HEADER.unpack_from(data)
    if data_format != FORMAT:
        raise ValueError(f"a tally has the format {data_format}, and not {FORMAT}")
    cells = np.frombuffer(data, dtype="<u4", count=size, offset=HEADER.size)
    amounts = np.frombuffer(data, dtype="<i8", count=size, offset=HEADER.size + 4 * size)
    counts.reshape(-1)[cells] += amounts


def summary_of_counts(plan: Plan, counts: IntArray) -> Summary:
    """The Summary of reports that are cell numbers: their sums follow from the counts.

    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=1.0, categories=["tea", "milk"])
    >>> summary_of_counts(plan, np.array([[2, 5]])).sum(0)
    5.0
    """
    sums = counts @ np.arange(plan.cells)
    return Summary(plan, counts, tuple(int(total) * FIXED_POINT for total in sums))


class Tallies:
    """The tallies of campaigns; each function is one step of a transaction.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     for _ in range(3):
    ...         Tallies.add(connection, campaign.id, np.array([[2, 5], [0, 1]]))
    ...     Tallies.summary(connection, campaign).counts.tolist()
    [[6, 15], [0, 3]]
    """

    @staticmethod
    def add(connection: Connection, campaign: str, counts: IntArray) -> None:
        """Store what one transaction counted."""
        connection.execute(insert(tallies), {"campaign": campaign, "counts": pack(counts)})

    @staticmethod
    def summary(connection: Connection, campaign: Campaign) -> Summary:
        """The sum of all tallies; one statement reads them, so compaction cannot come between."""
        rows = select(tallies.c.counts).where(tallies.c.campaign == campaign.id)
        plan = campaign.plan
        total = np.zeros((len(plan.all_groups), plan.cells), dtype=np.int64)
        for counts in connection.execute(rows).scalars():
            add_packed(bytes(counts), total)
        return summary_of_counts(plan, total)

    @staticmethod
    def due_for_compaction(connection: Connection) -> list[str]:
        """The campaigns with so many tallies that they should be added up."""
        many = (
            select(tallies.c.campaign)
            .group_by(tallies.c.campaign)
            .having(func.count() >= COMPACT_AT)
        )
        return list(connection.execute(many).scalars())

    @staticmethod
    def compact(connection: Connection, campaign: Campaign) -> int:
        """Replace many tallies by their sum; returns how many there were."""
        # Locked: a tally added between the sum and the deletion would be lost.
        lock_campaign(connection, campaign.id)
        own = tallies.c.campaign == campaign.id
        ids = connection.execute(select(tallies.c.id).where(own)).scalars().all()
        if len(ids) < COMPACT_AT:
            return 0
        total = Tallies.summary(connection, campaign).counts
        connection.execute(delete(tallies).where(own))
        Tallies.add(connection, campaign.id, total)
        return len(ids)
