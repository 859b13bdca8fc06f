"""A device that takes part in campaigns: it checks, draws, records and only then sends."""

from __future__ import annotations

import json
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np

from unpoison.client.address import Address, check_campaign_id
from unpoison.client.enrolment import Enrolment, checked_ticket
from unpoison.client.issuer import Issuer, checked_terms
from unpoison.client.ledger import Draw, Entry, Ledger
from unpoison.client.memoised import draw_parameters, possible_parameters
from unpoison.client.offer import Offer, checked_offer
from unpoison.client.offered_plan import chosen_tier
from unpoison.client.policy import Policy
from unpoison.client.receipt import Receipt
from unpoison.client.responses import decode_response
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
from unpoison.system.closing import Closing

RENEWABLE = ("ticket-expired", "invalid-ticket")
"""Codes of refusals after which the same device may ask for its ticket again: tickets end after a
while, and become invalid with a forgotten key, or if the collector lost its record of them."""
MAX_INVITE = 512
"""The most characters of an invite that are sent. Our own collector's have at most 64; a longer
text is no invite, but perhaps a file that was pasted."""


class Device(Closing):
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
    ...         return Response(200, json.dumps(keys).encode())
    >>> from unpoison.client import Response
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
        issuer: Issuer | None = None,
    ) -> None:
        self.collector = str(Address.parse(collector))
        self.issuer = issuer
        self.policy = policy
        self._opened_here = ExitStack()
        if transport is None:
            transport = self._opened_here.enter_context(Transport(collector, insecure=insecure))
        if ledger is None:
            ledger = self._opened_here.enter_context(Ledger.default())
        self.transport, self.ledger = transport, ledger

    def report(self, campaign: str, value: object, invite: str | None = None) -> Receipt:
        """Report a value once, whatever happens in between and however often this is called.

        Cells that were drawn before are sent as they are, even if the value is another one now: a
        second draw would spend a second budget.
        """
        # Before the first request: whether a device asks for a ticket must not depend on its value.
        encoded = self.policy.encode(value)
        check_campaign_id(campaign)
        entry = self.ledger.entry(self.collector, campaign)
        if entry is not None and entry.state == "sent":
            return self._receipt(entry, already=True)
        if entry is None or entry.state == "enrolled":
            entry = self._draw(self.enrol(campaign, invite), encoded)
        return self.send(entry, invite)

    def enrol(self, campaign: str, invite: str | None = None) -> Enrolment:
        """Get a ticket, from a collector whose plan and ticket pass every check.

        The tier follows from the plan and `max_epsilon` alone, and is recorded at the first call. A
        device whose other budgets do not suffice for it declines: one that asked for a smaller tier
        would tell the collector what it has spent elsewhere.
        """
        check_campaign_id(campaign)
        offer = self._offer(campaign, invite)
        known = self.ledger.entry(self.collector, campaign)
        if known is not None:
            _check_same_plan(known, offer)
        tier = chosen_tier(offer.plan, exact(self.policy.max_epsilon))
        self._check_affordable(offer.plan, tier if known is None else known.tier)
        entry = self.ledger.enrol(self.collector, campaign, offer.plan.fingerprint, tier)
        _check_same_plan(entry, offer)
        return self._ticket(offer, entry, invite)

    def fetch_token(self, campaign: str) -> None:
        """Get the token that a campaign needs from the issuer, and keep it for `report`.

        Done some time before the report, it hides from whoever watches both the issuer and the
        collector which account the report belongs to.
        """
        check_campaign_id(campaign)
        offer = self._offer(campaign, None)
        if offer.needs_token:
            self._token(offer)

    def draw(self, enrolment: Enrolment, value: object) -> Entry:
        """Draw the reports of a value and record them; if they are drawn already, those stand."""
        return self._draw(enrolment, self.policy.encode(value))

    def send(self, entry: Entry, invite: str | None = None) -> Receipt:
        """Send what was drawn; for an expired ticket, get another for the same groups."""
        self._check_still_allowed(entry)
        try:
            self._submit(entry)
        except CollectorRefused as refusal:
            if refusal.code not in RENEWABLE:
                raise
            entry = self._renewed(entry, invite, refusal.code)
            self._submit(entry)
        return self._receipt(self.ledger.mark_sent(entry), already=False)

    def close(self) -> None:
        """Close the ledger and the connection, where the device opened them itself."""
        self._opened_here.close()

    def _check_affordable(self, plan: Plan, tier: int) -> None:
        """Refuse a tier that any budget of the policy does not suffice for."""
        needed, most = exact(plan.all_tiers[tier].epsilon), exact(self.policy.max_epsilon)
        if needed > most:
            raise BudgetExceeded("max_epsilon", needed, most)
        # Only if nothing has to be drawn in any group: a device that declined in some groups would
        # bias which groups report.
        if self.policy.reuse and self._is_memoised(plan, tier):
            return
        self._check_left(needed, Fraction(0))

    def _is_memoised(self, plan: Plan, tier: int) -> bool:
        known = self.ledger.memoised(self.collector, self.policy.question)
        return possible_parameters(plan, tier) <= known

    def _check_left(self, needed: Fraction, own: Fraction) -> None:
        """Refuse what exceeds a budget of several campaigns; `own` is in the ledger already."""
        lifetime = exact(self.policy.lifetime_epsilon) - self.ledger.spent() + own
        collector = self.policy.collector_limit - self.ledger.spent(self.collector) + own
        for limit, left in (("lifetime_epsilon", lifetime), ("collector_epsilon", collector)):
            if needed > left:
                raise BudgetExceeded(limit, needed, max(left, Fraction(0)))

    def _offer(self, campaign: str, invite: str | None) -> Offer:
        _check_invite(invite)
        body = decode_response(self.transport.exchange("GET", f"/v1/campaigns/{campaign}"))
        offer = checked_offer(body, campaign, self.policy)
        if offer.needs_invite and invite is None:
            raise InvalidParameter("invite", "is needed for this campaign", "none")
        return offer

    def _ticket(
        self, offer: Offer, entry: Entry, invite: str | None, previous: str | None = None
    ) -> Enrolment:
        request = {"device": entry.device, "tier": entry.tier}
        if previous is not None:
            request["ticket"] = previous
        # An open campaign does not need the invite, so that it does not learn it.
        if offer.needs_invite:
            request["invite"] = str(invite)
        if offer.needs_token:
            request["token"] = self._token(offer)
        body = self._post(offer.campaign, "tickets", request)
        return checked_ticket(body, offer, entry.tier, self.policy)

    def _token(self, offer: Offer) -> str:
        """The campaign's token: the one in the ledger, or else a new one from the issuer."""
        terms = checked_terms(offer, Address.parse(self.collector))
        wallet, key = self.ledger.wallet, (self.collector, offer.campaign)
        held = wallet.held(key)
        # A collector that changes its terms could otherwise use up the tokens of an account.
        if held is not None and not terms.are_of(held.pending):
            raise CollectorNotTrusted("the campaign's tokens are others than it asked for before")
        if held is not None and held.token is not None:
            return held.token
        if self.issuer is None:
            raise InvalidParameter("issuer", "is needed for this campaign", "none")
        # Checked before anything is written: a key that is not the issuer's never gets there.
        self.issuer.check(terms)
        held = held or wallet.begin(key, terms.new_pending())
        return wallet.record(key, self.issuer.signed(held.pending))

    def _draw(self, enrolment: Enrolment, encoded: float) -> Entry:
        offer = enrolment.offer
        entry = self.ledger.entry(self.collector, offer.campaign)
        if entry is None:
            raise InvalidParameter("enrolment", "must be one of this device", "another")
        _check_same_plan(entry, offer)
        cells = draw_cells(offer.plan, enrolment.groups, encoded, SystemGenerator())
        draw = Draw(
            enrolment.ticket,
            enrolment.groups,
            cells,
            enrolment.epsilon,
            self.policy.question,
            draw_parameters(offer.plan, enrolment.groups),
        )
        lifetime, collector = exact(self.policy.lifetime_epsilon), self.policy.collector_limit
        return self.ledger.record(entry, draw, lifetime, collector, reuse=self.policy.reuse)

    def _check_still_allowed(self, entry: Entry) -> None:
        """A policy that has become stricter also holds for what is drawn but not sent."""
        if entry.state == "enrolled":
            raise InvalidParameter("entry", "must be drawn before it is sent", entry.state)
        most, spent = exact(self.policy.max_epsilon), entry.draw.epsilon
        if spent > most:
            raise BudgetExceeded("max_epsilon", spent, most)
        self._check_left(spent, own=spent)

    def _submit(self, entry: Entry) -> None:
        body = self._post(entry.campaign, "reports", submission(entry))
        if body.get("status") != "accepted":
            raise CollectorNotTrusted("the answer to a report is not that it is accepted")

    def _renewed(self, entry: Entry, invite: str | None, code: str) -> Entry:
        """The entry with a new ticket, for the groups that its cells were drawn for."""
        offer = self._offer(entry.campaign, invite)
        _check_same_plan(entry, offer)
        # A collector that lost its record of the ticket issues it again for the same groups.
        previous = entry.draw.ticket if code == "invalid-ticket" else None
        enrolment = self._ticket(offer, entry, invite, previous)
        if enrolment.groups != entry.draw.groups:
            raise CollectorNotTrusted("the new ticket is for other groups than the first")
        return self.ledger.replace_ticket(entry, enrolment.ticket)

    def _post(self, campaign: str, resource: str, request: dict[str, Any]) -> dict[str, Any]:
        # Sorted and without spaces, so that a retry, also of a later process, is the same to the
        # byte: a collector that counted the first one recognises it, and counts it once.
        body = json.dumps(request, separators=(",", ":"), sort_keys=True).encode()
        path = f"/v1/campaigns/{campaign}/{resource}"
        return decode_response(self.transport.exchange("POST", path, body))

    def _receipt(self, entry: Entry, *, already: bool) -> Receipt:
        draw, total = entry.draw, self.ledger.spent()
        return Receipt(*entry.key, draw.groups, len(draw.cells), draw.epsilon, total, already)


def draw_cells(
    plan: Plan, groups: tuple[int, ...], encoded: float, rng: Generator
) -> tuple[int, ...]:
    """The noisy cells of one value, group after group; `encoded` is the value by `Policy.encode`.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> len(draw_cells(plan, (2,), 7.5, SystemGenerator()))
    4
    """
    inputs = plan.inputs_of(np.array([encoded]))
    cells_by_group = [perturb_group(plan, group, inputs, rng) for group in groups]
    return tuple(int(cell) for cell in np.concatenate(cells_by_group))


def submission(entry: Entry) -> dict[str, Any]:
    """The JSON object that is sent for a draw: ticket, secret and cells, and nothing else.

    >>> with Ledger(None) as ledger:
    ...     entry = ledger.enrol("https://collector.example", "k3v9", "f00", tier=0)
    ...     recorded = ledger.record(entry, Draw("t", (2,), (17, 4), Fraction(1, 2)), Fraction(8))
    ...     sorted(submission(recorded)), submission(recorded)["values"]
    (['device', 'ticket', 'values'], [17, 4])
    """
    draw = entry.draw
    return {"ticket": draw.ticket, "device": entry.device, "values": list(draw.cells)}


def _check_same_plan(entry: Entry, offer: Offer) -> None:
    """The plan that a device enrolled for is the one it reports under: budgets depend on it."""
    if entry.fingerprint != offer.plan.fingerprint:
        raise CollectorNotTrusted("the plan has changed since this device enrolled")


def _check_invite(invite: str | None) -> None:
    """Refuse what cannot be an invite; an invite is a secret, which no message repeats."""
    if invite is not None and not (1 <= len(invite) <= MAX_INVITE and invite.isprintable()):
        rule = f"must be printable text of at most {MAX_INVITE} letters"
        raise InvalidParameter("invite", rule, "something else")
