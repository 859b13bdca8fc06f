"""Campaigns: a plan, who may take part, and the states that it goes through."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from unpoison.collector.campaigns.locks import lock_campaigns, lock_seats
from unpoison.collector.clock import iso
from unpoison.collector.credentials import is_campaign_id, new_campaign_id
from unpoison.collector.faults import Fault
from unpoison.collector.storage.schema import campaigns, seats
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import mechanisms
from unpoison.plan import Plan
from unpoison.plan.form import KEYS

DRAFT, OPEN, CLOSED = "draft", "open", "closed"
INVITE_ONLY, OPEN_TO_ALL = "invite", "open"
DEFAULT_MIN_USERS = 1000
SECRET_BYTES = 32
FOR_DEVICES = "-integer"
MOST_COUNTS = 2**20
MOST_REPORTS = 2**15


@dataclass(frozen=True)
class Campaign:
    """One collection. Its plan never changes; its state and its end do.

    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, categories=["tea", "coffee"])
    >>> campaign = Campaign.new("Drinks", plan, now=0)
    >>> campaign.state, campaign.accepts(now=0), replace(campaign, state=OPEN).accepts(now=0)
    ('draft', False, True)
    """

    id: str
    name: str
    plan_json: str
    state: str
    access: str
    min_users: int
    assignment_secret: bytes
    created_at: int
    closes_at: int | None = None

    @classmethod
    def new(
        cls,
        name: str,
        plan: Plan,
        now: int,
        access: str = INVITE_ONLY,
        min_users: int = DEFAULT_MIN_USERS,
        closes_at: int | None = None,
    ) -> Campaign:
        """A draft."""
        secret = secrets.token_bytes(SECRET_BYTES)
        text = plan.to_json()
        return cls(new_campaign_id(), name, text, DRAFT, access, min_users, secret, now, closes_at)

    @cached_property
    def plan(self) -> Plan:
        """The plan that devices follow."""
        return parsed_plan(self.plan_json)

    @cached_property
    def reports(self) -> tuple[int, ...]:
        """How many reports a user of each group sends."""
        return tuple(group.reports for group in self.plan.all_groups)

    @cached_property
    def baseline(self) -> bool:
        """Whether every user reports in both groups of a tier."""
        return self.plan.protocol == "baseline"

    def accepts(self, now: int) -> bool:
        """Whether devices may enrol and report."""
        return self.state == OPEN and (self.closes_at is None or now < self.closes_at)

    def groups_with(self, group: int) -> tuple[int, ...]:
        """The groups that a device of a group reports in: both of its tier in the baseline."""
        if self.baseline:
            return tuple(self.plan.tier_groups(self.plan.tier_of(group)))
        return (group,)

    def public(self) -> dict[str, Any]:
        """What a device is told."""
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "access": self.access,
            "plan": self.plan.to_dict(),
            "fingerprint": self.plan.fingerprint,
            "closes_at": iso(self.closes_at),
        }

    def full(self) -> dict[str, Any]:
        """What the operator is told."""
        return {**self.public(), "created_at": iso(self.created_at), "min_users": self.min_users}


@lru_cache(maxsize=256)
def parsed_plan(text: str) -> Plan:
    """A plan by its JSON, read once.

    >>> text = Plan.new(epsilon=0.25, low=0, high=1).to_json()
    >>> parsed_plan(text) is parsed_plan(text)
    True
    """
    return Plan.from_json(text)


def device_plan(keys: Any) -> tuple[Plan, str | None]:
    """The plan for real devices, and what had to be changed for that.

    >>> plan, notice = device_plan({"mechanism": "piecewise", "epsilon": 1, "low": 0, "high": 9})
    >>> plan.mechanism, notice
    ('piecewise-integer', 'mechanism piecewise became piecewise-integer: devices draw ...')
    """
    try:
        plan, notice = _with_integers(Plan.from_dict(keys))
        _check_size(plan)
        plan.to_json().encode()
    except InvalidParameter as fault:
        field = f"plan.{fault.parameter}" if fault.parameter in KEYS else "plan"
        raise Fault("invalid-plan", f"The plan cannot be used: {fault}.", field) from None
    except UnicodeEncodeError:
        raise Fault("invalid-plan", "The plan's names must be Unicode text.", "plan") from None
    return plan, notice


def _with_integers(plan: Plan) -> tuple[Plan, str | None]:
    """The plan with the mechanism that devices draw exactly."""
    if plan.mechanism.endswith(FOR_DEVICES):
        return plan, None
    exact = f"{plan.mechanism}{FOR_DEVICES}"
    if exact not in mechanisms:
        raise InvalidParameter("mechanism", "must be one for devices", plan.mechanism)
    rest = {key: value for key, value in plan.to_dict().items() if key != "cells"}
    changed = f"mechanism {plan.mechanism} became {exact}: devices draw with integers only"
    return Plan.from_dict({**rest, "mechanism": exact}), changed


def _check_size(plan: Plan) -> None:
    """Counts are held in memory, and a device's reports come in one request."""
    counts = len(plan.all_groups) * plan.cells
    if counts > MOST_COUNTS:
        rule = f"must have at most {MOST_COUNTS:,} cells over all groups"
        raise InvalidParameter("the plan", rule, f"{counts:,}")
    reports = max(group.reports for group in plan.all_groups)
    if reports > MOST_REPORTS:
        rule = f"must have at most {MOST_REPORTS:,} reports a user"
        raise InvalidParameter("the plan", rule, f"{reports:,}")


class Campaigns:
    """Campaigns in the database; each function is one step of a transaction.

    >>> from unpoison.collector.campaigns.temporary import scratch_campaign
    >>> with scratch_campaign() as (connection, campaign):
    ...     Campaigns.close(connection, campaign.id).state
    'closed'
    """

    @staticmethod
    def add(connection: Connection, campaign: Campaign) -> None:
        """A new campaign, with an empty seat count for every group."""
        connection.execute(insert(campaigns), _row(campaign))
        numbers = range(len(campaign.plan.all_groups))
        rows = [
            {"campaign": campaign.id, "group_number": group, "enrolled": 0, "submissions": 0}
            for group in numbers
        ]
        connection.execute(insert(seats), rows)

    @staticmethod
    def find(connection: Connection, campaign: str) -> Campaign | None:
        """The campaign of that id; what cannot be one is not looked for."""
        if not is_campaign_id(campaign):
            return None
        row = connection.execute(select(campaigns).where(campaigns.c.id == campaign)).first()
        return None if row is None else _campaign(row)

    @staticmethod
    def all(connection: Connection) -> list[tuple[Campaign, int, int]]:
        """Newest first, each with how many enrolled and how many reported."""
        enrolled, submissions = func.sum(seats.c.enrolled), func.sum(seats.c.submissions)
        counted = (
            select(seats.c.campaign, enrolled.label("enrolled"), submissions.label("submissions"))
            .group_by(seats.c.campaign)
            .subquery()
        )
        rows = connection.execute(
            select(campaigns, counted.c.enrolled, counted.c.submissions)
            .join(counted, counted.c.campaign == campaigns.c.id)
            .order_by(campaigns.c.created_at.desc(), campaigns.c.id)
        )
        return [_with_users(row) for row in rows]

    @staticmethod
    def open(connection: Connection, campaign: str, now: int) -> Campaign:
        """Let devices in, for the first time or again."""
        found = _existing(connection, campaign)
        if found.closes_at is not None and found.closes_at <= now:
            raise Fault("wrong-state", "The campaign's end has passed: extend it first.")
        return _changed(connection, found, state=OPEN)

    @staticmethod
    def close(connection: Connection, campaign: str) -> Campaign:
        """Let nobody in any more: counts stay as they are."""
        found = _locked(connection, campaign)
        if found.state == DRAFT:
            raise Fault("wrong-state", "The campaign has not been opened.")
        return _changed(connection, found, state=CLOSED)

    @staticmethod
    def extend(connection: Connection, campaign: str, closes_at: int | None, now: int) -> Campaign:
        """Move the end; a closed campaign stays closed until it is opened again."""
        found = _existing(connection, campaign)
        if closes_at is not None and closes_at <= now:
            raise Fault("invalid-request", "The new end must lie ahead.", "closes_at")
        return _changed(connection, found, closes_at=closes_at)

    @staticmethod
    def close_due(connection: Connection, now: int) -> list[str]:
        """Close what has reached its end, once and for all: a clock may be set back."""
        due = (campaigns.c.state == OPEN) & (campaigns.c.closes_at <= now)
        found = connection.execute(select(campaigns.c.id).where(due)).scalars().all()
        lock_campaigns(connection, found)
        if found:
            connection.execute(update(campaigns).where(due).values(state=CLOSED))
        return list(found)

    @staticmethod
    def delete(connection: Connection, campaign: str) -> None:
        """Forget a campaign and everything that belongs to it."""
        found = _locked(connection, campaign)
        if found.state == OPEN:
            raise Fault("wrong-state", "An open campaign cannot be deleted: close it first.")
        connection.execute(delete(campaigns).where(campaigns.c.id == campaign))


def _existing(connection: Connection, campaign: str) -> Campaign:
    found = Campaigns.find(connection, campaign)
    if found is None:
        raise Fault("not-found", "There is no such campaign.")
    return found


def _locked(connection: Connection, campaign: str) -> Campaign:
    """A campaign in which nothing is being counted."""
    _existing(connection, campaign)
    lock_seats(connection, campaign)
    return _existing(connection, campaign)


def _changed(connection: Connection, campaign: Campaign, **values: Any) -> Campaign:
    """A campaign is a value: it is replaced, here and in the database."""
    connection.execute(update(campaigns).where(campaigns.c.id == campaign.id).values(**values))
    return replace(campaign, **values)


def _row(campaign: Campaign) -> dict[str, Any]:
    return {
        "id": campaign.id,
        "name": campaign.name,
        "plan": campaign.plan_json,
        "state": campaign.state,
        "access": campaign.access,
        "min_users": campaign.min_users,
        "assignment_secret": campaign.assignment_secret,
        "created_at": campaign.created_at,
        "closes_at": campaign.closes_at,
    }


def _campaign(row: Any) -> Campaign:
    return Campaign(
        row.id,
        row.name,
        row.plan,
        row.state,
        row.access,
        row.min_users,
        bytes(row.assignment_secret),
        row.created_at,
        row.closes_at,
    )


def _with_users(row: Any) -> tuple[Campaign, int, int]:
    """In the baseline every user has a seat in both groups of a tier."""
    campaign = _campaign(row)
    each = 2 if campaign.baseline else 1
    return campaign, int(row.enrolled) // each, int(row.submissions) // each
