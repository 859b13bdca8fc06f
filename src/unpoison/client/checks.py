"""What a device checks before it draws anything: the campaign that is offered, and the ticket."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from unpoison.client.plans import offered_plan
from unpoison.client.policy import Policy
from unpoison.client.responses import member, shown
from unpoison.errors import BudgetExceeded, CollectorNotTrusted, InvalidParameter
from unpoison.mechanisms.exact import exact
from unpoison.plan import Plan

MAX_TICKET = 4096
ACCESS = ("invite", "open")
CAMPAIGN = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Offer:
    """A campaign whose plan a device can follow.

    >>> keys = {"mechanism": "piecewise-integer", "epsilon": 0.25, "low": 0, "high": 10}
    >>> Offer("k3v9", "open", Plan.from_dict(keys)).needs_invite
    False
    """

    campaign: str
    access: str
    plan: Plan

    @property
    def needs_invite(self) -> bool:
        """Whether only devices with an invite may take part."""
        return self.access == "invite"


@dataclass(frozen=True)
class Enrolment:
    """A ticket that has been checked: which groups a device reports in, and what that spends.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> place = Enrolment(Offer("k3v9", "open", plan), tier=0, groups=(2,), ticket="secret")
    >>> place.reports, place.epsilon
    (4, Fraction(1, 4))
    """

    offer: Offer
    tier: int
    groups: tuple[int, ...]
    ticket: str = field(repr=False)

    @property
    def reports(self) -> int:
        """How many reports the ticket is for."""
        return sum(self.offer.plan.all_groups[group].reports for group in self.groups)

    @property
    def epsilon(self) -> Fraction:
        """What all of them together spend, exactly."""
        spent = [self.offer.plan.all_groups[group].spent for group in self.groups]
        return sum(spent, Fraction(0))


def check_campaign(campaign: str) -> None:
    """Refuse the name of a campaign that could be read as something else in an address.

    >>> check_campaign("../tickets")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: campaign must be letters, ...; received '../tickets'
    """
    if not isinstance(campaign, str) or not CAMPAIGN.fullmatch(campaign):
        rule = "must be letters, digits, - and _, at most 64"
        raise InvalidParameter("campaign", rule, repr(campaign))


def checked_offer(answer: dict[str, Any], campaign: str, policy: Policy) -> Offer:
    """The offer, if it is for that campaign and its plan is what it is said to be.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> answer = {"id": "k3v9", "access": "open", "plan": plan.to_dict(), "fingerprint": "f00"}
    >>> checked_offer(answer, "k3v9", Policy(low=0, high=10))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the plan is not the one that its fingerprint names
    """
    if member(answer, "id", str) != campaign:
        raise CollectorNotTrusted("the answer is about another campaign")
    access = member(answer, "access", str)
    if access not in ACCESS:
        raise CollectorNotTrusted("the campaign is neither open nor by invite")
    plan = offered_plan(member(answer, "plan", dict), policy)
    if member(answer, "fingerprint", str) != plan.fingerprint:
        raise CollectorNotTrusted("the plan is not the one that its fingerprint names")
    return Offer(campaign, access, plan)


def checked_ticket(answer: dict[str, Any], offer: Offer, tier: int, policy: Policy) -> Enrolment:
    """The enrolment, if the ticket is for that campaign and tier and asks for nothing more.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> answer = {"ticket": "t", "campaign": "k3v9", "fingerprint": plan.fingerprint, "tier": 0,
    ...           "groups": [{"group": 2, "reports": 5}], "expires_at": "2026-01-31T12:00:00Z"}
    >>> checked_ticket(answer, Offer("k3v9", "open", plan), 0, Policy(low=0, high=10))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the ticket asks for 5 reports in group 2, the plan for 4
    """
    if member(answer, "campaign", str) != offer.campaign:
        raise CollectorNotTrusted("the ticket is for another campaign")
    if member(answer, "fingerprint", str) != offer.plan.fingerprint:
        raise CollectorNotTrusted("the ticket is for another plan")
    if member(answer, "tier", int) != tier:
        raise CollectorNotTrusted(f"the ticket is not for tier {tier}, which was asked for")
    groups = _groups(member(answer, "groups", list), offer.plan, tier)
    member(answer, "expires_at", str)
    enrolment = Enrolment(offer, tier, groups, _ticket(answer))
    if enrolment.epsilon > exact(policy.max_epsilon):
        raise BudgetExceeded("max_epsilon", enrolment.epsilon, exact(policy.max_epsilon))
    return enrolment


def _ticket(answer: dict[str, Any]) -> str:
    ticket = member(answer, "ticket", str)
    if not 1 <= len(ticket) <= MAX_TICKET or not ticket.isprintable():
        raise CollectorNotTrusted(f"a ticket is printable text of at most {MAX_TICKET} letters")
    return ticket


def _groups(given: Sequence[Any], plan: Plan, tier: int) -> tuple[int, ...]:
    """One group of the tier, or in the baseline both, each with the plan's number of reports."""
    known = plan.tier_groups(tier)
    if len(given) != (len(known) if plan.protocol == "baseline" else 1):
        raise CollectorNotTrusted(f"the ticket is for {len(given)} groups, not as {plan.protocol}")
    groups = tuple(_group(each, plan) for each in given)
    if len(set(groups)) < len(groups) or not set(groups) <= set(known):
        raise CollectorNotTrusted(f"the ticket's groups are not those of tier {tier}")
    return groups


def _group(given: object, plan: Plan) -> int:
    if not isinstance(given, dict):
        raise CollectorNotTrusted("a ticket's groups must be objects")
    group, reports = member(given, "group", int), member(given, "reports", int)
    if not 0 <= group < len(plan.all_groups):
        raise CollectorNotTrusted("the ticket is for a group that the plan does not have")
    planned = plan.all_groups[group].reports
    if reports != planned:
        asked = f"{shown(reports)} reports in group {group}"
        raise CollectorNotTrusted(f"the ticket asks for {asked}, the plan for {planned}")
    return group
