"""Tickets: the signed right of one device to report once, in one group of one campaign."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from itsdangerous import BadData, Signer

from unpoison.collector.credentials import hashed
from unpoison.collector.faults import Fault

SEPARATOR = "."
"""Stands between the fields, none of which can contain it: ids, decimal numbers and hex digits."""
DEVICE_DIGITS = 32
"""Hex digits of the device's hash: 128 bits, which keeps tickets short and still fits no other
device's secret."""


@dataclass(frozen=True)
class Ticket:
    """The content of a ticket: its random number, and the group, device and time it is valid for.

    The device carries it, so that a submission can be checked without reading the database.

    >>> ticket = Ticket("k3v9x2m4q7w1", 7, 2, device_hash("ab" * 32), 1_800_000_000)
    >>> signer = TicketSigner(["one key"])
    >>> signer.read(signer.sign(ticket)) == ticket
    True
    """

    campaign: str
    number: int
    group: int
    device: str
    """The hash of the device's secret: a stolen ticket is useless without the secret."""
    expires_at: int

    def check(self, campaign: str, device: str) -> None:
        """Refuse the ticket in another campaign, or from a device with another secret."""
        same_device = hmac.compare_digest(self.device, device_hash(device))
        if self.campaign != campaign or not same_device:
            raise Fault("invalid-ticket")


def device_hash(device: str) -> str:
    """Hash a device's secret for its ticket, so that neither ticket nor database reveals it.

    >>> len(device_hash("ab" * 32))
    32
    """
    return hashed(device).hex()[:DEVICE_DIGITS]


class TicketSigner:
    """Signs tickets with the newest key, and accepts signatures of all keys (HMAC-SHA256).

    >>> old, both = TicketSigner(["old"]), TicketSigner(["old", "new"])
    >>> text = old.sign(Ticket("k3v9x2m4q7w1", 7, 2, "aa", 0))
    >>> both.read(text).group, both.sign(both.read(text)) == text
    (2, False)
    """

    def __init__(self, keys: Sequence[str]) -> None:
        # Keys are random and used for nothing else, so none has to be derived from them.
        self.signer = Signer(
            list(keys), sep=SEPARATOR, key_derivation="none", digest_method=hashlib.sha256
        )

    def sign(self, ticket: Ticket) -> str:
        """The ticket as text, with its signature."""
        fields = SEPARATOR.join(str(field) for field in astuple(ticket))
        return self.signer.sign(fields).decode()

    def read(self, text: str) -> Ticket:
        """Parse a ticket; anything that none of the keys has signed is refused."""
        try:
            fields = self.signer.unsign(text).decode()
            campaign, number, group, device, expires_at = fields.split(SEPARATOR)
            return Ticket(campaign, int(number), int(group), device, int(expires_at))
        except (BadData, ValueError):
            raise Fault("invalid-ticket") from None
