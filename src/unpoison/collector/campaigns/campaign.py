"""The Campaign: a plan, who may take part, and its state."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from unpoison.collector.clock import iso
from unpoison.collector.credentials import new_campaign_id
from unpoison.plan import Plan

DRAFT, OPEN, CLOSED = "draft", "open", "closed"
INVITE_ONLY, OPEN_TO_ALL, BY_TOKEN = "invite", "open", "token"
DEFAULT_MIN_USERS = 1000
"""Users who must have reported before estimates are made, unless the operator says otherwise. With
so many at ε = 1 the standard error of a mean is a twentieth of the range."""
SECRET_BYTES = 32
"""256 bits: the order of groups must not be found by trying secrets."""
CACHED_PLANS = 256
"""Plans that stay parsed; a plan takes milliseconds to parse and check, a lookup nothing."""


@dataclass(frozen=True)
class Campaign:
    """One collection. Its plan never changes; its state and its end may.

    >>> from dataclasses import replace
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
    """Determines the order in which devices get groups; no device ever learns it."""
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
        """A draft with a random id and a random assignment secret."""
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

    def accepts(self, now: int) -> bool:
        """Whether devices may enrol and report."""
        return self.state == OPEN and (self.closes_at is None or now < self.closes_at)

    def public(self) -> dict[str, Any]:
        """The campaign as devices see it."""
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
        """The campaign as its operator sees it."""
        return {**self.public(), "created_at": iso(self.created_at), "min_users": self.min_users}


@lru_cache(maxsize=CACHED_PLANS)
def parsed_plan(text: str) -> Plan:
    """Parse a plan's JSON, once for each text.

    >>> text = Plan.new(epsilon=0.25, low=0, high=1).to_json()
    >>> parsed_plan(text) is parsed_plan(text)
    True
    """
    return Plan.from_json(text)
