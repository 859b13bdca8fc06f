"""The ticket that a collector issues, checked before a device draws anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from unpoison.client.offer import Offer
from unpoison.client.policy import Policy
from unpoison.client.responses import printable_excerpt, required_member
from unpoison.errors import BudgetExceeded, CollectorNotTrusted
from unpoison.mechanisms.exact import exact
from unpoison.plan import Plan

MAX_TICKET = 4096
"""The most characters of a ticket. Those of our own collector have at most 1024; the bound keeps a
collector from filling the ledger."""


@dataclass(frozen=True)
class Enrolment:
    """A checked ticket: which groups a device reports in, and what that spends.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> enrolment = Enrolment(Offer("k3v9", "open", plan), tier=0, groups=(2,), ticket="secret")
    >>> enrolment.reports, enrolment.epsilon
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
        """The budget that all reports together spend, exactly."""
        spent = [self.offer.plan.all_groups[group].spent for group in self.groups]
        return sum(spent, Fraction(0))


def checked_ticket(body: dict[str, Any], offer: Offer, tier: int, policy: Policy) -> Enrolment:
    """The enrolment in a response, if it is for that campaign and tier and keeps to the plan.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> body = {"ticket": "t", "campaign": "k3v9", "fingerprint": plan.fingerprint, "tier": 0,
    ...         "groups": [{"group": 2, "reports": 5}], "expires_at": "2026-01-31T12:00:00Z"}
    >>> checked_ticket(body, Offer("k3v9", "open", plan), 0, Policy(low=0, high=10))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the ticket asks for 5 reports in group 2, the plan for 4
    """
    if required_member(body, "campaign", str) != offer.campaign:
        raise CollectorNotTrusted("the ticket is for another campaign")
    if required_member(body, "fingerprint", str) != offer.plan.fingerprint:
        raise CollectorNotTrusted("the ticket is for another plan")
    if required_member(body, "tier", int) != tier:
        raise CollectorNotTrusted(f"the ticket is not for tier {tier}, which was asked for")
    groups = _checked_groups(required_member(body, "groups", list), offer.plan, tier)
    # When a ticket ends is the collector's business: a device sends it, and renews it if refused.
    required_member(body, "expires_at", str)
    enrolment = Enrolment(offer, tier, groups, _checked_ticket_text(body))
    # The tier was chosen within this budget; a second check in case a plan spends more than a tier.
    if enrolment.epsilon > exact(policy.max_epsilon):
        raise BudgetExceeded("max_epsilon", enrolment.epsilon, exact(policy.max_epsilon))
    return enrolment


def _checked_ticket_text(body: dict[str, Any]) -> str:
    ticket = required_member(body, "ticket", str)
    if not 1 <= len(ticket) <= MAX_TICKET or not ticket.isprintable():
        raise CollectorNotTrusted(f"a ticket is printable text of at most {MAX_TICKET} letters")
    return ticket


def _checked_groups(assignments: Sequence[Any], plan: Plan, tier: int) -> tuple[int, ...]:
    """The groups of one user of the tier, each with the plan's number of reports.

    The collector chooses which group of the tier a user is in, and nothing else: how many groups
    that means, and which, follows from the plan.
    """
    tier_groups = plan.tier_groups(tier)
    if len(assignments) != len(plan.groups_of_user(tier_groups[0])):
        raise CollectorNotTrusted(
            f"the ticket is for {len(assignments)} groups, not as {plan.protocol}"
        )
    groups = tuple(_checked_group(assignment, plan) for assignment in assignments)
    # Compared as lists, so that a group that is named twice does not pass.
    if groups[0] not in tier_groups or sorted(groups) != sorted(plan.groups_of_user(groups[0])):
        raise CollectorNotTrusted(f"the ticket's groups are not those of tier {tier}")
    return groups


def _checked_group(assignment: object, plan: Plan) -> int:
    if not isinstance(assignment, dict):
        raise CollectorNotTrusted("a ticket's groups must be objects")
    group = required_member(assignment, "group", int)
    reports = required_member(assignment, "reports", int)
    if not 0 <= group < len(plan.all_groups):
        raise CollectorNotTrusted("the ticket is for a group that the plan does not have")
    planned = plan.all_groups[group].reports
    if reports != planned:
        requested = f"{printable_excerpt(reports)} reports in group {group}"
        raise CollectorNotTrusted(f"the ticket asks for {requested}, the plan for {planned}")
    return group
