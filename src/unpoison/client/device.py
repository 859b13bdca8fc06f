"""A device that takes part in campaigns: it checks, draws, writes down and only then sends."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from unpoison.client.address import Address
from unpoison.client.checks import (
    Enrolment,
    Offer,
    check_campaign,
    checked_offer,
    checked_ticket,
)
from unpoison.client.ledger import Draw, Entry, Ledger
from unpoison.client.plans import chosen_tier
from unpoison.client.policy import Policy
from unpoison.client.responses import decoded
from unpoison.client.transport import Exchange, Transport
from unpoison.errors import (
    BudgetExceeded,
    CollectorNotTrusted,
    CollectorRefused,
    InvalidParameter,
)
from unpoison.mechanisms.exact import exact
from unpoison.mechanisms.randomness import Generator, SystemGenerator
from unpoison.plan import Plan
from unpoison.reports.perturbation import perturb_group

RENEWED = ("ticket-expired", "invalid-ticket")
"""Refusals after which the same device may ask for its ticket again."""
MAX_INVITE = 512


@dataclass(frozen=True)
class Receipt:
    """What was sent, and what that and everything before it has spent.

    >>> receipt = Receipt("https://c.example", "k3v9", (2,), 4, Fraction(1), Fraction(3, 2), False)
    >>> receipt.to_dict()["total"]
    1.5
    """

    collector: str
    campaign: str
    groups: tuple[int, ...]
    reports: int
    epsilon: Fraction
    total: Fraction
    """What all campaigns together have spent."""
    already: bool
    """Whether all this had been sent before, so that nothing was sent now."""

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON, with budgets as plain numbers."""
        budgets = {"epsilon": float(self.epsilon), "total": float(self.total)}
        return {**vars(self), "groups": list(self.groups), **budgets}


class Device:
    """Reports a value to a collector that it does not trust.

    Without a ledger it uses the user's own; without a transport, HTTP. `report` does all of it;
    `enrol`, `draw` and `send` are its steps.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.5, min_epsilon=0.5, low=0, high=10)
    >>> class Collector:
    ...     def exchange(self, method, path, body=None):
    ...         keys = {"id": "k3v9", "campaign": "k3v9", "fingerprint": plan.fingerprint}
    ...         keys |= {"access": "open", "plan": plan.to_dict(), "tier": 0, "ticket": "t"}
    ...         keys |= {"groups": [{"group": 0, "reports": 1}], "expires_at": "later"}
    ...         keys |= {"status": "accepted"}
    ...         return Answer(200, json.dumps(keys).encode())
    >>> from unpoison.client import Answer
    >>> policy = Policy(low=0, high=10)
    >>> with Ledger(None) as ledger:
    ...     device = Device("https://c.example", policy, ledger, Collector())
    ...     device.report("k3v9", 7.5).epsilon
    Fraction(1, 2)
    """

    def __init__(
        self,
        collector: str,
        policy: Policy,
        ledger: Ledger | None = None,
        transport: Exchange | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        self.collector = str(Address.parse(collector))
        self.policy = policy
        self._own = ExitStack()
        if transport is None:
            transport = self._own.enter_context(Transport(collector, insecure=insecure))
        if ledger is None:
            ledger = self._own.enter_context(Ledger.default())
        self.transport, self.ledger = transport, ledger

    def report(self, campaign: str, value: object, invite: str | None = None) -> Receipt:
        """Report a value once, whatever happens in between and however often this is called."""
        place = self.policy.place(value)
        check_campaign(campaign)
        entry = self.ledger.entry(self.collector, campaign)
        if entry is not None and entry.state == "sent":
            return self._receipt(entry, already=True)
        if entry is None or entry.state == "enrolled":
            entry = self._draw(self.enrol(campaign, invite), place)
        return self.send(entry, invite)

    def enrol(self, campaign: str, invite: str | None = None) -> Enrolment:
        """Get a ticket, from a collector whose plan and ticket pass every check."""
        check_campaign(campaign)
        offer = self._offer(campaign, invite)
        left, limit = self._left()
        tier = chosen_tier(offer.plan, left, limit)
        entry = self.ledger.enrol(self.collector, campaign, offer.plan.fingerprint, tier)
        _check_same_plan(entry, offer)
        budget = exact(offer.plan.all_tiers[entry.tier].epsilon)
        if budget > left:
            raise BudgetExceeded(limit, budget, left)
        return self._ticket(offer, entry, invite)

    def draw(self, enrolment: Enrolment, value: object) -> Entry:
        """Draw the reports of a value and write them down; if they are drawn already, those."""
        return self._draw(enrolment, self.policy.place(value))

    def send(self, entry: Entry, invite: str | None = None) -> Receipt:
        """Send what was drawn; for an expired ticket, get another for the same groups."""
        self._check_still_allowed(entry)
        try:
            self._submit(entry)
        except CollectorRefused as refusal:
            if refusal.code not in RENEWED:
                raise
            entry = self._renewed(entry, invite)
            self._submit(entry)
        return self._receipt(self.ledger.sent(entry), already=False)

    def close(self) -> None:
        """Close the ledger and the connection, where they were not given."""
        self._own.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _left(self) -> tuple[Fraction, str]:
        """The most that a campaign may spend now, and which limit says so."""
        ever = exact(self.policy.lifetime_epsilon) - self.ledger.spent()
        left = max(ever, Fraction(0))
        return min((exact(self.policy.max_epsilon), "max_epsilon"), (left, "lifetime_epsilon"))

    def _offer(self, campaign: str, invite: str | None) -> Offer:
        _check_invite(invite)
        answer = decoded(self.transport.exchange("GET", f"/v1/campaigns/{campaign}"))
        offer = checked_offer(answer, campaign, self.policy)
        if offer.needs_invite and invite is None:
            raise InvalidParameter("invite", "is needed for this campaign", "none")
        return offer

    def _ticket(self, offer: Offer, entry: Entry, invite: str | None) -> Enrolment:
        wish = {"device": entry.device, "tier": entry.tier}
        if offer.needs_invite:
            wish["invite"] = str(invite)
        answer = self._post(offer.campaign, "tickets", wish)
        return checked_ticket(answer, offer, entry.tier, self.policy)

    def _draw(self, enrolment: Enrolment, place: float) -> Entry:
        offer = enrolment.offer
        entry = self.ledger.entry(self.collector, offer.campaign)
        if entry is None:
            raise InvalidParameter("enrolment", "must be one of this device", "another")
        _check_same_plan(entry, offer)
        cells = draw_cells(offer.plan, enrolment.groups, place, SystemGenerator())
        draw = Draw(enrolment.ticket, enrolment.groups, cells, enrolment.epsilon)
        return self.ledger.record(entry, draw, exact(self.policy.lifetime_epsilon))

    def _check_still_allowed(self, entry: Entry) -> None:
        """A policy that has become stricter holds for what is drawn and not sent, too."""
        if entry.state == "enrolled":
            raise InvalidParameter("entry", "must be drawn before it is sent", entry.state)
        most, spent = exact(self.policy.max_epsilon), entry.draw.epsilon
        if spent > most:
            raise BudgetExceeded("max_epsilon", spent, most)
        left = exact(self.policy.lifetime_epsilon) - self.ledger.spent() + spent
        if spent > left:
            raise BudgetExceeded("lifetime_epsilon", spent, left)

    def _submit(self, entry: Entry) -> None:
        answer = self._post(entry.campaign, "reports", submission(entry))
        if answer.get("status") != "accepted":
            raise CollectorNotTrusted("the answer to a report is not that it is accepted")

    def _renewed(self, entry: Entry, invite: str | None) -> Entry:
        offer = self._offer(entry.campaign, invite)
        _check_same_plan(entry, offer)
        enrolment = self._ticket(offer, entry, invite)
        if enrolment.groups != entry.draw.groups:
            raise CollectorNotTrusted("the new ticket is for other groups than the first")
        return self.ledger.renew(entry, enrolment.ticket)

    def _post(self, campaign: str, what: str, wish: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(wish, separators=(",", ":"), sort_keys=True).encode()
        return decoded(self.transport.exchange("POST", f"/v1/campaigns/{campaign}/{what}", body))

    def _receipt(self, entry: Entry, *, already: bool) -> Receipt:
        draw, total = entry.draw, self.ledger.spent()
        return Receipt(*entry.key, draw.groups, len(draw.cells), draw.epsilon, total, already)


def draw_cells(
    plan: Plan, groups: tuple[int, ...], place: float, rng: Generator
) -> tuple[int, ...]:
    """The noisy cells of one value, group after group; `place` is what `Policy.place` makes of it.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> len(draw_cells(plan, (2,), 7.5, SystemGenerator()))
    4
    """
    inputs = plan.normalise(np.array([place]))
    parts = [perturb_group(plan, group, inputs, rng) for group in groups]
    return tuple(int(cell) for cell in np.concatenate(parts))


def submission(entry: Entry) -> dict[str, Any]:
    """What is sent for a draw, and nothing else.

    >>> with Ledger(None) as ledger:
    ...     entry = ledger.enrol("https://collector.example", "k3v9", "f00", tier=0)
    ...     drawn = ledger.record(entry, Draw("t", (2,), (17, 4), Fraction(1, 2)), Fraction(8))
    ...     sorted(submission(drawn)), submission(drawn)["values"]
    (['device', 'ticket', 'values'], [17, 4])
    """
    draw = entry.draw
    return {"ticket": draw.ticket, "device": entry.device, "values": list(draw.cells)}


def _check_same_plan(entry: Entry, offer: Offer) -> None:
    if entry.fingerprint != offer.plan.fingerprint:
        raise CollectorNotTrusted("the plan has changed since this device enrolled")


def _check_invite(invite: str | None) -> None:
    """An invite is a secret, which no message repeats."""
    if invite is not None and not (1 <= len(invite) <= MAX_INVITE and invite.isprintable()):
        rule = f"must be printable text of at most {MAX_INVITE} letters"
        raise InvalidParameter("invite", rule, "something else")
