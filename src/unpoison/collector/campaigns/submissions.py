"""Submissions: a ticket's reports, stored and counted once, in one transaction."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns, no_such_campaign
from unpoison.collector.campaigns.counters import count_activity
from unpoison.collector.campaigns.group_counters import count_devices
from unpoison.collector.campaigns.locks import indices_by_campaign
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.campaigns.tickets import Ticket
from unpoison.collector.faults import Fault
from unpoison.collector.storage.dialects import insert_rows, rows_by_keys
from unpoison.collector.storage.schema import submissions, tickets
from unpoison.summary.binning import Binner
from unpoison.types import IntArray

CELL = np.dtype("<u4")
"""A stored cell number: plans have at most 2**20 cells."""
PROOF_BYTES = 32
"""Length of a keyed hash: 256 bits, so that no two submissions share one."""

UNKNOWN_TICKET = "This ticket is not known here any more: ask for it again."


@dataclass(frozen=True)
class Submission:
    """The reports that a device sent for its ticket, checked and packed as they are stored.

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
    """Keyed hash of the cells: recognises the same submission, even after they are forgotten.

    The key is the device's secret, which is not stored. A plain hash of so few possible cells
    could be reversed by trying them all, and retention would forget nothing.
    """
    expired: bool = False
    """Whether the ticket is too old for a first submission."""

    @classmethod
    def checked(
        cls, campaign: Campaign, ticket: Ticket, device: str, values: Sequence[int], now: int = 0
    ) -> Submission:
        """Check that these are the ticket's number of values, all of them cells of the plan."""
        groups = campaign.plan.groups_of_user(ticket.group)
        expected = sum(campaign.reports[group] for group in groups)
        if len(values) != expected:
            message = f"This ticket is for {expected} values, not {len(values)}."
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
    """Unpack stored cells into numbers.

    >>> unpacked(np.array([3, 5], dtype=CELL).tobytes()).tolist()
    [3, 5]
    """
    return np.frombuffer(cells, dtype=CELL).astype(np.int64)


def report_groups(campaign: Campaign, groups: Sequence[int]) -> IntArray:
    """The group of each report, given the groups in which users report one after the other.

    >>> from unpoison import Plan
    >>> campaign = Campaign.new("", Plan.new("piecewise-integer", 1.0, low=0, high=1), now=0)
    >>> report_groups(campaign, [2]).tolist()
    [2, 2, 2, 2]
    """
    numbers = np.array(groups, dtype=np.int64)
    return np.repeat(numbers, np.array(campaign.reports)[numbers])


def submit_all(
    connection: Connection, requests: Sequence[Submission], now: int
) -> list[Fault | None]:
    """Store and count new submissions; the same submission again is accepted without effect.

    The caller's transaction must hold the locks of all campaigns concerned.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     lost, issued = (Ticket(campaign.id, n, 0, "aa", expires_at=60) for n in (7, 8))
    ...     columns = ("campaign", "ticket", "group_number", "device_hash", "issued_at")
    ...     insert_rows(connection, tickets, columns, [(campaign.id, 8, 0, b"aa", 0)])
    ...     tea, coffee = (Submission.checked(campaign, issued, "ab", [n]) for n in (0, 1))
    ...     unknown = Submission.checked(campaign, lost, "ab", [0])
    ...     results = submit_all(connection, [tea, tea, coffee, unknown], now=0)
    ...     Tallies.summary(connection, campaign).counts.tolist()
    [[1, 0], [0, 0]]
    >>> [result and result.code for result in results]
    [None, None, 'ticket-used', 'invalid-ticket']
    """
    results: dict[int, Fault | None] = {}
    for indices in indices_by_campaign(requests):
        results.update(_submit_to_one_campaign(connection, requests, indices, now))
    return [results[i] for i in range(len(requests))]


def _submit_to_one_campaign(
    connection: Connection, requests: Sequence[Submission], indices: list[int], now: int
) -> dict[int, Fault | None]:
    # Read again under the lock: the request's copy may be a second old.
    campaign = Campaigns.find(connection, requests[indices[0]].campaign.id)
    if campaign is None:
        return dict.fromkeys(indices, no_such_campaign())
    numbers = [requests[i].ticket.number for i in indices]
    proofs = _stored_proofs(connection, campaign, numbers)
    # After the database was restored from a backup, tickets issued since are signed but unknown.
    issued = _issued_numbers(connection, campaign, [n for n in numbers if n not in proofs])
    results: dict[int, Fault | None] = {}
    new: list[Submission] = []
    for i in indices:
        submission, number = requests[i], requests[i].ticket.number
        counted_before = number in proofs
        results[i] = _fault(submission, proofs.get(number), campaign.accepts(now))
        if not counted_before and results[i] is None and number not in issued:
            results[i] = Fault("invalid-ticket", UNKNOWN_TICKET)
        elif not counted_before and results[i] is None:
            proofs[number] = submission.proof
            new.append(submission)
    if new:
        _store(connection, campaign, new, now)
    return results


def _fault(submission: Submission, stored_proof: bytes | None, is_open: bool) -> Fault | None:
    """Why a submission is refused; one that was counted gets the same answer for ever."""
    if stored_proof is not None:
        same = hmac.compare_digest(stored_proof, submission.proof)
        return None if same else Fault("ticket-used")
    if submission.expired:
        return Fault("ticket-expired")
    return None if is_open else Fault("campaign-not-open")


def _stored_proofs(
    connection: Connection, campaign: Campaign, numbers: list[int]
) -> dict[int, bytes]:
    """The proofs of submissions that were counted before, by ticket number."""
    columns = ("ticket", "proof")
    rows = rows_by_keys(connection, submissions, columns, campaign.id, "ticket", numbers)
    return {ticket: bytes(proof) for ticket, proof in rows}


def _issued_numbers(connection: Connection, campaign: Campaign, numbers: list[int]) -> set[int]:
    """Those of the numbers whose tickets the database knows."""
    rows = rows_by_keys(connection, tickets, ("ticket",), campaign.id, "ticket", numbers)
    return {number for (number,) in rows}


def _store(connection: Connection, campaign: Campaign, new: list[Submission], now: int) -> None:
    columns = ("campaign", "ticket", "received_at", "cells", "proof")
    rows = [
        (campaign.id, submission.ticket.number, now, submission.cells, submission.proof)
        for submission in new
    ]
    insert_rows(connection, submissions, columns, rows)
    Tallies.add(connection, campaign.id, counted(campaign, new))
    groups = [group for submission in new for group in submission.groups]
    count_devices(connection, campaign.id, groups, "submissions")
    count_activity(connection, campaign.id, "submissions", len(new), now)


def counted(campaign: Campaign, new: Sequence[Submission]) -> IntArray:
    """Count submissions by group and cell, with the binning kernel that all reports go through.

    >>> from unpoison import Plan
    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=1.0, categories=["tea", "milk"])
    >>> campaign = Campaign.new("Drinks", plan, now=0)
    >>> ticket = Ticket(campaign.id, number=0, group=0, device="aa", expires_at=60)
    >>> counted(campaign, [Submission.checked(campaign, ticket, "ab", [1])]).tolist()
    [[0, 1]]
    """
    binner = Binner(campaign.plan)
    groups = [group for submission in new for group in submission.groups]
    cells = unpacked(b"".join(submission.cells for submission in new))
    binner.add(report_groups(campaign, groups), cells)
    return binner.summary().counts
