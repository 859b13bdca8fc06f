"""Submissions: a ticket's reports, counted once, in the transaction that stores them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from unpoison.collector.campaigns.campaigns import Campaign, Campaigns
from unpoison.collector.campaigns.counters import count_activity, count_seats
from unpoison.collector.campaigns.locks import by_campaign
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.campaigns.tickets import Ticket
from unpoison.collector.faults import Fault
from unpoison.collector.storage.bulk import insert_rows, rows_among
from unpoison.collector.storage.schema import submissions
from unpoison.summary.binning import Binner
from unpoison.types import IntArray

CELL = np.dtype("<u4")
PROOF_BYTES = 32


@dataclass(frozen=True)
class Submission:
    """What a device sent for its ticket: the cells of its groups' reports, as stored.

    >>> from unpoison import Plan
    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=1.0, categories=["tea", "milk"])
    >>> campaign = Campaign.new("Drinks", plan, now=0)
    >>> ticket = Ticket(campaign.id, number=0, group=0, device="aa", expires_at=60)
    >>> Submission.checked(campaign, ticket, "ab", [1]).numbers.tolist()
    [1]
    >>> Submission.checked(campaign, ticket, "ab", [2])
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: values must be cell numbers from 0 to 1
    """

    campaign: Campaign
    ticket: Ticket
    groups: tuple[int, ...]
    cells: bytes
    proof: bytes
    """Tells whether a submission is the same again, also after its cells have been forgotten.

    It is keyed by the device's secret, which is not kept: nobody can find the cells by trying.
    """
    expired: bool = False
    """Whether the ticket is too old for a first submission."""

    @classmethod
    def checked(
        cls, campaign: Campaign, ticket: Ticket, device: str, values: Sequence[int], now: int = 0
    ) -> Submission:
        """Exactly the ticket's number of values, all in their domain."""
        groups = campaign.groups_with(ticket.group)
        wanted = sum(campaign.reports[group] for group in groups)
        if len(values) != wanted:
            message = f"This ticket is for {wanted} values, not {len(values)}."
            raise Fault("wrong-number-of-values", message, "values")
        if min(values) < 0 or max(values) >= campaign.plan.cells:
            message = f"values must be cell numbers from 0 to {campaign.plan.cells - 1}"
            raise Fault("out-of-domain", message, "values")
        cells = np.array(values, dtype=CELL).tobytes()
        proof = hashlib.blake2b(cells, key=device.encode(), digest_size=PROOF_BYTES).digest()
        return cls(campaign, ticket, groups, cells, proof, ticket.expires_at <= now)

    @property
    def numbers(self) -> IntArray:
        """The cells as numbers."""
        return unpacked(self.cells)


def unpacked(cells: bytes) -> IntArray:
    """Stored cells as numbers.

    >>> unpacked(np.array([3, 5], dtype=CELL).tobytes()).tolist()
    [3, 5]
    """
    return np.frombuffer(cells, dtype=CELL).astype(np.int64)


def row_groups(campaign: Campaign, groups: Sequence[int]) -> IntArray:
    """The group of each report of users who report in these groups, one after the other.

    >>> from unpoison import Plan
    >>> campaign = Campaign.new("", Plan.new("piecewise-integer", 1.0, low=0, high=1), now=0)
    >>> row_groups(campaign, [2]).tolist()
    [2, 2, 2, 2]
    """
    numbers = np.array(groups, dtype=np.int64)
    return np.repeat(numbers, np.array(campaign.reports)[numbers])


def submit_all(
    connection: Connection, requests: Sequence[Submission], now: int
) -> list[Fault | None]:
    """Store and count what is new; nothing is said against what was counted before.

    The transaction has locked the campaigns.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     ticket = Ticket(campaign.id, number=0, group=0, device="aa", expires_at=60)
    ...     tea, coffee = (Submission.checked(campaign, ticket, "ab", [n]) for n in (0, 1))
    ...     results = submit_all(connection, [tea, tea, coffee], now=0)
    ...     Tallies.summary(connection, campaign).counts.tolist()
    [[1, 0], [0, 0]]
    >>> [result and result.code for result in results]
    [None, None, 'ticket-used']
    """
    results: dict[int, Fault | None] = {}
    for places in by_campaign(requests):
        results.update(_submit(connection, requests, places, now))
    return [results[place] for place in range(len(requests))]


def _submit(
    connection: Connection, requests: Sequence[Submission], places: list[int], now: int
) -> dict[int, Fault | None]:
    """The submissions to one campaign."""
    campaign = requests[places[0]].campaign
    found = Campaigns.find(connection, campaign.id)
    if found is None:
        return dict.fromkeys(places, Fault("not-found", "There is no such campaign."))
    stored = _stored(connection, campaign, [requests[place].ticket.number for place in places])
    results: dict[int, Fault | None] = {}
    new: list[Submission] = []
    for place in places:
        request = requests[place]
        known = stored.setdefault(request.ticket.number, b"")
        results[place] = _fault(request, known, found.accepts(now))
        if not known and results[place] is None:
            stored[request.ticket.number] = request.proof
            new.append(request)
    if new:
        _store(connection, campaign, new, now)
    return results


def _fault(request: Submission, known: bytes, open_now: bool) -> Fault | None:
    """Why a submission is refused; what was counted before is answered as it was then."""
    if known:
        return None if hmac.compare_digest(known, request.proof) else Fault("ticket-used")
    if request.expired:
        return Fault("ticket-expired")
    return None if open_now else Fault("campaign-not-open")


def _stored(connection: Connection, campaign: Campaign, numbers: list[int]) -> dict[int, bytes]:
    """The proofs of what was counted before."""
    found = rows_among(connection, submissions, ("ticket", "proof"), campaign.id, "ticket", numbers)
    return {ticket: bytes(proof) for ticket, proof in found}


def _store(connection: Connection, campaign: Campaign, new: list[Submission], now: int) -> None:
    columns = ("campaign", "ticket", "received_at", "cells", "proof")
    rows = [(campaign.id, each.ticket.number, now, each.cells, each.proof) for each in new]
    insert_rows(connection, submissions, columns, rows)
    Tallies.add(connection, campaign.id, counted(campaign, new))
    count_seats(
        connection, campaign.id, [group for each in new for group in each.groups], "submissions"
    )
    count_activity(connection, campaign.id, "submissions", len(new), now)


def counted(campaign: Campaign, new: Sequence[Submission]) -> IntArray:
    """Counts by group and cell, from the one binning kernel.

    >>> from unpoison import Plan
    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=1.0, categories=["tea", "milk"])
    >>> campaign = Campaign.new("Drinks", plan, now=0)
    >>> ticket = Ticket(campaign.id, number=0, group=0, device="aa", expires_at=60)
    >>> counted(campaign, [Submission.checked(campaign, ticket, "ab", [1])]).tolist()
    [[0, 1]]
    """
    binner = Binner(campaign.plan)
    groups = row_groups(campaign, [group for each in new for group in each.groups])
    binner.add(groups, unpacked(b"".join(each.cells for each in new)))
    return binner.summary().counts
