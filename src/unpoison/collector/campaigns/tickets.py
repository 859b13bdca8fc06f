"""Tickets: the signed right of one device to report once, in one group, in one campaign."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from itsdangerous import BadData, Signer

from unpoison.collector.credentials import hashed
from unpoison.collector.faults import Fault

SEPARATOR = "."
DEVICE_DIGITS = 32


@dataclass(frozen=True)
class Ticket:
    """What a ticket fixes. `number` counts the campaign's tickets, `device` is a hash.

    >>> ticket = Ticket("k3v9x2m4q7w1", 7, 2, device_mark("ab" * 32), 1_800_000_000)
    >>> signer = TicketSigner(["one key"])
    >>> signer.read(signer.sign(ticket)) == ticket
    True
    """

    campaign: str
    number: int
    group: int
    device: str
    expires_at: int

    def check(self, campaign: str, device: str) -> None:
        """Refuse it elsewhere, and from others."""
        same_device = hmac.compare_digest(self.device, device_mark(device))
        if self.campaign != campaign or not same_device:
            raise Fault("invalid-ticket")


def device_mark(device: str) -> str:
    """What a ticket says of a device's secret: enough to tell it, not enough to be it.

    >>> len(device_mark("ab" * 32))
    32
    """
    return hashed(device).hex()[:DEVICE_DIGITS]


class TicketSigner:
    """Signs with the last key, believes all (HMAC-SHA256).

    >>> old, both = TicketSigner(["old"]), TicketSigner(["old", "new"])
    >>> text = old.sign(Ticket("k3v9x2m4q7w1", 7, 2, "aa", 0))
    >>> both.read(text).group, both.sign(both.read(text)) == text
    (2, False)
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.signer = Signer(
            list(keys), sep=SEPARATOR, key_derivation="none", digest_method=hashlib.sha256
        )

    def sign(self, ticket: Ticket) -> str:
        """The ticket as text."""
        fields = SEPARATOR.join(str(each) for each in astuple(ticket))
        return self.signer.sign(fields).decode()

    def read(self, text: str) -> Ticket:
        """The ticket that we signed; anything else is no ticket."""
        try:
            fields = self.signer.unsign(text).decode()
            campaign, number, group, device, expires_at = fields.split(SEPARATOR)
            return Ticket(campaign, int(number), int(group), device, int(expires_at))
        except (BadData, ValueError):
            raise Fault("invalid-ticket") from None
