"""The campaign that a collector offers, checked before a device asks for a ticket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unpoison.client.offered_plan import offered_plan
from unpoison.client.policy import Policy
from unpoison.client.responses import required_member
from unpoison.errors import CollectorNotTrusted
from unpoison.plan import Plan

ACCESS = ("invite", "open", "token")


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
    token_challenge: str = ""
    """What tokens must be for, in base64url; empty if devices need none."""
    token_key: str = ""
    """The key that signs them, in base64url."""

    @property
    def needs_token(self) -> bool:
        """Whether only devices with a token may take part."""
        return self.access == "token"

    @property
    def needs_invite(self) -> bool:
        """Whether only devices with an invite may take part."""
        return self.access == "invite"


def checked_offer(body: dict[str, Any], campaign: str, policy: Policy) -> Offer:
    """The offer in a response, if it is for that campaign and its plan has its fingerprint.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> body = {"id": "k3v9", "access": "open", "plan": plan.to_dict(), "fingerprint": "f00"}
    >>> checked_offer(body, "k3v9", Policy(low=0, high=10))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the plan is not the one that its fingerprint names
    """
    if required_member(body, "id", str) != campaign:
        raise CollectorNotTrusted("the answer is about another campaign")
    access = required_member(body, "access", str)
    if access not in ACCESS:
        raise CollectorNotTrusted("the campaign is neither open nor by invite or token")
    plan = offered_plan(required_member(body, "plan", dict), policy)
    # Tickets and the ledger name a plan by its fingerprint, so it must be the plan's own.
    if required_member(body, "fingerprint", str) != plan.fingerprint:
        raise CollectorNotTrusted("the plan is not the one that its fingerprint names")
    if access != "token":
        return Offer(campaign, access, plan)
    challenge, key = (required_member(body, f"token_{name}", str) for name in ("challenge", "key"))
    return Offer(campaign, access, plan, challenge, key)
