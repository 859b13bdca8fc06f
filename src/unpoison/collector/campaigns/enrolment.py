"""Enrolment: an invite (or, in an open campaign, nothing) becomes a ticket, once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, update

from unpoison.collector.campaigns.assignment import group_of
from unpoison.collector.campaigns.campaigns import INVITE_ONLY, Campaign, Campaigns
from unpoison.collector.campaigns.counters import count_activity, count_seats
from unpoison.collector.campaigns.locks import by_campaign, lock_seats
from unpoison.collector.faults import Fault
from unpoison.collector.storage.bulk import insert_rows
from unpoison.collector.storage.schema import invites, tickets

NUMBER_BITS = 62
"""A ticket's number is random: it tells nobody how many there are, nor who came next to whom."""


@dataclass(frozen=True)
class Enrol:
    """A device asks to take part. `device` is the mark of its secret, `invite` a hash.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     str(enrol_all(connection, [Enrol(campaign, "aa", tier=0)], now=0)[0])
    'There is no such invite, or it has expired.'
    """

    campaign: Campaign
    device: str
    tier: int
    invite: bytes | None = None


@dataclass(frozen=True)
class Seat:
    """What a device got: the number of its ticket, its group, and when it first asked.

    >>> Seat(number=0, group=2, device="aa", issued_at=0).expires_at(lifetime=60, now=61)
    120
    """

    number: int
    group: int
    device: str
    issued_at: int

    def expires_at(self, lifetime: int, now: int) -> int:
        """The same moment for whoever asks again, until it passes: then there is a next one."""
        periods = max(1, (now - self.issued_at) // lifetime + 1)
        return self.issued_at + periods * lifetime


def enrol_all(connection: Connection, requests: Sequence[Enrol], now: int) -> list[Seat | Fault]:
    """Seats for devices in the order in which they came, in one transaction.

    >>> from unpoison.collector.credentials import hashed
    >>> from unpoison.collector.campaigns.invites import issue_invites
    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     codes = issue_invites(connection, campaign.id, 2, None, now=0)
    ...     asked = [Enrol(campaign, f"{n:02x}", 0, hashed(code)) for n, code in enumerate(codes)]
    ...     first, again = (enrol_all(connection, asked, now=0) for _ in range(2))
    >>> sorted(seat.group for seat in first), first == again
    ([0, 1], True)
    """
    results: dict[int, Seat | Fault] = {}
    for places in by_campaign(requests):
        desk = _Desk(connection, requests[places[0]].campaign, now)
        desk.look_up([requests[place] for place in places])
        results.update({place: desk.serve(requests[place]) for place in places})
        desk.write()
    return [results[place] for place in range(len(requests))]


class _Desk:
    """Serves the devices of one campaign within one transaction."""

    def __init__(self, connection: Connection, campaign: Campaign, now: int) -> None:
        self.connection, self.now = connection, now
        self.enrolled = {
            group: enrolled for group, (enrolled, _) in lock_seats(connection, campaign.id).items()
        }
        self.campaign = Campaigns.find(connection, campaign.id)
        self.by_device: dict[str, Seat] = {}
        self.by_number: dict[int, Seat] = {}
        self.invites: dict[bytes, Any] = {}
        self.used: dict[bytes, int] = {}
        self.new: list[Seat] = []

    def look_up(self, requests: Sequence[Enrol]) -> None:
        """The campaign's invites that are shown, and the seats that were given before."""
        codes = [request.invite for request in requests if request.invite is not None]
        rows = self.connection.execute(select(invites).where(invites.c.invite_hash.in_(codes)))
        self.invites = {
            bytes(row.invite_hash): row for row in rows if row.campaign == requests[0].campaign.id
        }
        self.used = {
            code: row.ticket for code, row in self.invites.items() if row.ticket is not None
        }
        devices = [bytes.fromhex(request.device) for request in requests]
        mine = tickets.c.campaign == requests[0].campaign.id
        seen = or_(tickets.c.device_hash.in_(devices), tickets.c.ticket.in_(self.used.values()))
        for row in self.connection.execute(select(tickets).where(mine & seen)):
            self._remember(
                Seat(row.ticket, row.group_number, bytes(row.device_hash).hex(), row.issued_at)
            )

    def serve(self, request: Enrol) -> Seat | Fault:
        """The device's seat, or why it gets none."""
        try:
            return self._served(request)
        except Fault as fault:
            return fault

    def _served(self, request: Enrol) -> Seat:
        campaign = self.campaign
        if campaign is None:
            raise Fault("not-found", "There is no such campaign.")
        if not campaign.accepts(self.now):
            raise Fault("campaign-not-open")
        if campaign.access == INVITE_ONLY:
            self._check_invite(request)
        return self.by_device.get(request.device) or self._new_seat(campaign, request)

    def _check_invite(self, request: Enrol) -> None:
        row = None if request.invite is None else self.invites.get(request.invite)
        if row is None:
            raise Fault("invalid-invite")
        used = self.used.get(bytes(row.invite_hash))
        if used is not None:
            if self.by_number[used].device != request.device:
                raise Fault("invite-used")
        elif row.expires_at is not None and row.expires_at <= self.now:
            raise Fault("invalid-invite")

    def _new_seat(self, campaign: Campaign, request: Enrol) -> Seat:
        groups = campaign.plan.tier_groups(request.tier)
        if campaign.baseline:
            group = groups[0]
        else:
            place = sum(self.enrolled[each] for each in groups)
            group = group_of(campaign.plan_json, request.tier, place, campaign.assignment_secret)
        seat = Seat(secrets.randbits(NUMBER_BITS), group, request.device, self.now)
        for each in campaign.groups_with(group):
            self.enrolled[each] += 1
        self.new.append(seat)
        self._remember(seat)
        if request.invite is not None and campaign.access == INVITE_ONLY:
            self.used[request.invite] = seat.number
        return seat

    def _remember(self, seat: Seat) -> None:
        self.by_device[seat.device] = self.by_number[seat.number] = seat

    def write(self) -> None:
        """What has changed."""
        if self.campaign is None or not self.new:
            return
        campaign = self.campaign
        columns = ("campaign", "ticket", "group_number", "device_hash", "issued_at")
        rows = [
            (campaign.id, seat.number, seat.group, bytes.fromhex(seat.device), seat.issued_at)
            for seat in self.new
        ]
        insert_rows(self.connection, tickets, columns, rows)
        self._write_invites({seat.number for seat in self.new})
        groups = [g for seat in self.new for g in campaign.groups_with(seat.group)]
        count_seats(self.connection, campaign.id, groups, "enrolled")
        count_activity(self.connection, campaign.id, "enrolled", len(self.new), self.now)

    def _write_invites(self, numbers: set[int]) -> None:
        spent = [{"code": code, "number": n} for code, n in self.used.items() if n in numbers]
        if spent:
            mark = update(invites).where(invites.c.invite_hash == bindparam("code"))
            self.connection.execute(mark.values(ticket=bindparam("number")), spent)
