"""Enrolment: a device shows an invite, a token or, where the campaign is open, neither."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, or_, select, update

from unpoison.collector.campaigns.assignment import group_of, groups_to_assign
from unpoison.collector.campaigns.campaign import BY_TOKEN, INVITE_ONLY, Campaign
from unpoison.collector.campaigns.campaigns import Campaigns, no_such_campaign
from unpoison.collector.campaigns.counters import count_activity
from unpoison.collector.campaigns.group_counters import count_devices
from unpoison.collector.campaigns.locks import indices_by_campaign, lock_campaign
from unpoison.collector.campaigns.spent_tokens import add_spent_tokens, tickets_of_tokens
from unpoison.collector.campaigns.tickets import Ticket
from unpoison.collector.faults import Fault
from unpoison.collector.storage.dialects import insert_rows
from unpoison.collector.storage.schema import invites, tickets

NUMBER_BITS = 62
"""Random bits of a ticket's number: it fits a signed 64-bit column, and two never collide.

Numbers are random because consecutive ones would tell a device how many have enrolled, and who
came next to whom, and so whose groups are in one block with its own."""


@dataclass(frozen=True)
class EnrolmentRequest:
    """A device's request for its ticket; `device`, `invite` and `token` are hashes.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     str(enrol_all(connection, [EnrolmentRequest(campaign, "aa", tier=0)], now=0)[0])
    'There is no such invite, or it has expired.'
    """

    campaign: Campaign
    device: str
    tier: int
    invite: bytes | None = None
    token: bytes | None = None
    """Of a token whose signature has been verified."""
    previous: Ticket | None = None
    """The ticket that the device had, by its signature: if its row was lost, it is issued again."""


@dataclass(frozen=True)
class IssuedTicket:
    """A row of the table `tickets`: the number and group that a device got, and when.

    >>> IssuedTicket(number=0, group=2, device="aa", issued_at=0).expires_at(lifetime=60, now=61)
    120
    """

    number: int
    group: int
    device: str
    issued_at: int

    def expires_at(self, lifetime: int, now: int) -> int:
        """The end of the period of `lifetime` seconds, counted from the first issue, we are in.

        A device that asks again within a period gets the same ticket to the byte.
        """
        periods = max(1, (now - self.issued_at) // lifetime + 1)
        return self.issued_at + periods * lifetime


def enrol_all(
    connection: Connection, requests: Sequence[EnrolmentRequest], now: int
) -> list[IssuedTicket | Fault]:
    """Issue tickets to devices in the order in which they came, in one transaction.

    >>> from unpoison.collector.credentials import hashed
    >>> from unpoison.collector.campaigns.invites import issue_invites
    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     codes = issue_invites(connection, campaign.id, 2, None, now=0)
    ...     requests = [
    ...         EnrolmentRequest(campaign, f"{n:02x}", 0, hashed(code))
    ...         for n, code in enumerate(codes)
    ...     ]
    ...     first, again = (enrol_all(connection, requests, now=0) for _ in range(2))
    >>> sorted(ticket.group for ticket in first), first == again
    ([0, 1], True)
    """
    results: dict[int, IssuedTicket | Fault] = {}
    for indices in indices_by_campaign(requests):
        batch = _CampaignEnrolments(connection, requests[indices[0]].campaign, now)
        batch.look_up([requests[i] for i in indices])
        results.update({i: batch.enrol(requests[i]) for i in indices})
        batch.write()
    return [results[i] for i in range(len(requests))]


class _CampaignEnrolments:
    """The enrolments of one transaction in one campaign: looked up and written together."""

    def __init__(self, connection: Connection, campaign: Campaign, now: int) -> None:
        self.connection, self.now = connection, now
        # The lock comes first: group and ticket depend on how many have enrolled, and on the
        # campaign's state, which must not change before this transaction ends.
        counters = lock_campaign(connection, campaign.id)
        self.enrolled = {group: count.enrolled for group, count in counters.items()}
        self.campaign = Campaigns.find(connection, campaign.id)
        self.by_device: dict[str, IssuedTicket] = {}
        self.by_number: dict[int, IssuedTicket] = {}
        self.invites: dict[bytes, Row[Any]] = {}
        self.spent: dict[bytes, int] = {}
        """Invites that have been used, and the numbers of their tickets."""
        self.spent_tokens: dict[bytes, int] = {}
        """The same for tokens."""
        self.new: list[IssuedTicket] = []

    def look_up(self, requests: Sequence[EnrolmentRequest]) -> None:
        """Read the invites and tokens that are shown, and the tickets that were issued before."""
        campaign = requests[0].campaign.id
        codes = [request.invite for request in requests if request.invite is not None]
        rows = self.connection.execute(select(invites).where(invites.c.invite_hash.in_(codes)))
        self.invites = {bytes(row.invite_hash): row for row in rows if row.campaign == campaign}
        self.spent = {
            code: row.ticket for code, row in self.invites.items() if row.ticket is not None
        }
        tokens = [request.token for request in requests if request.token is not None]
        self.spent_tokens = tickets_of_tokens(self.connection, campaign, tokens)
        devices = [bytes.fromhex(request.device) for request in requests]
        numbers = [*self.spent.values(), *self.spent_tokens.values()]
        concerned = or_(tickets.c.device_hash.in_(devices), tickets.c.ticket.in_(numbers))
        issued = select(tickets).where((tickets.c.campaign == campaign) & concerned)
        for row in self.connection.execute(issued):
            device = bytes(row.device_hash).hex()
            self._remember(IssuedTicket(row.ticket, row.group_number, device, row.issued_at))

    def enrol(self, request: EnrolmentRequest) -> IssuedTicket | Fault:
        """The device's ticket, or why it gets none."""
        campaign = self.campaign
        if campaign is None:
            return no_such_campaign()
        if not campaign.accepts(self.now):
            return Fault("campaign-not-open")
        checks = {INVITE_ONLY: self._invite_fault, BY_TOKEN: self._token_fault}
        check = checks.get(campaign.access)
        fault = None if check is None else check(request)
        return fault or self.by_device.get(request.device) or self._issue(campaign, request)

    def _invite_fault(self, request: EnrolmentRequest) -> Fault | None:
        invite = None if request.invite is None else self.invites.get(request.invite)
        if invite is None:
            return Fault("invalid-invite")
        spent_on = self.spent.get(bytes(invite.invite_hash))
        if spent_on is not None:
            same_device = self.by_number[spent_on].device == request.device
            return None if same_device else Fault("invite-used")
        expired = invite.expires_at is not None and invite.expires_at <= self.now
        return Fault("invalid-invite") if expired else None

    def _token_fault(self, request: EnrolmentRequest) -> Fault | None:
        if request.token is None:
            return Fault("invalid-token")
        spent_on = self.spent_tokens.get(request.token)
        if spent_on is None or self.by_number[spent_on].device == request.device:
            return None
        return Fault("token-used")

    def _issue(self, campaign: Campaign, request: EnrolmentRequest) -> IssuedTicket:
        plan, tier = campaign.plan_json, request.tier
        arrival = sum(self.enrolled[group] for group in groups_to_assign(plan, tier))
        group = group_of(plan, tier, arrival, campaign.assignment_secret)
        number = secrets.randbits(NUMBER_BITS)
        previous = request.previous
        if previous is not None and campaign.plan.tier_of(previous.group) == tier:
            # The device may have drawn its cells for that group already, and draws only once.
            number, group = previous.number, previous.group
        ticket = IssuedTicket(number, group, request.device, self.now)
        for own_group in campaign.plan.groups_of_user(group):
            self.enrolled[own_group] += 1
        self.new.append(ticket)
        self._remember(ticket)
        if request.invite is not None and campaign.access == INVITE_ONLY:
            self.spent[request.invite] = ticket.number
        if request.token is not None and campaign.access == BY_TOKEN:
            self.spent_tokens[request.token] = ticket.number
        return ticket

    def _remember(self, ticket: IssuedTicket) -> None:
        self.by_device[ticket.device] = self.by_number[ticket.number] = ticket

    def write(self) -> None:
        """Store new tickets, mark their invites and tokens as spent, and count them."""
        if self.campaign is None or not self.new:
            return
        campaign = self.campaign
        columns = ("campaign", "ticket", "group_number", "device_hash", "issued_at")
        rows = [
            (campaign.id, t.number, t.group, bytes.fromhex(t.device), t.issued_at) for t in self.new
        ]
        insert_rows(self.connection, tickets, columns, rows)
        new_numbers = {ticket.number for ticket in self.new}
        self._write_spent_invites(new_numbers)
        newly_spent = {t: n for t, n in self.spent_tokens.items() if n in new_numbers}
        add_spent_tokens(self.connection, campaign.id, newly_spent)
        groups = [
            group for ticket in self.new for group in campaign.plan.groups_of_user(ticket.group)
        ]
        count_devices(self.connection, campaign.id, groups, "enrolled")
        count_activity(self.connection, campaign.id, "enrolled", len(self.new), self.now)

    def _write_spent_invites(self, new_numbers: set[int]) -> None:
        newly_spent = [
            {"code": code, "number": number}
            for code, number in self.spent.items()
            if number in new_numbers
        ]
        if newly_spent:
            mark = update(invites).where(invites.c.invite_hash == bindparam("code"))
            self.connection.execute(mark.values(ticket=bindparam("number")), newly_spent)
