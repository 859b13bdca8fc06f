"""Clients of a collector: the device, which does not trust it, and its operator.

Names load their modules when they are first used: a collector needs the addresses alone.
"""

from typing import TYPE_CHECKING

from unpoison.lazy_names import lazy_names

if TYPE_CHECKING:
    from unpoison.client.address import Address, check_campaign_id
    from unpoison.client.device import Device, draw_cells, submission
    from unpoison.client.enrolment import Enrolment
    from unpoison.client.issuer import Issuer
    from unpoison.client.ledger import Draw, Entry, Ledger
    from unpoison.client.ledger_file import default_ledger_path
    from unpoison.client.offer import Offer
    from unpoison.client.policy import Policy
    from unpoison.client.receipt import Receipt
    from unpoison.client.responses import Response, decode_response
    from unpoison.client.retries import Retries
    from unpoison.client.transport import Exchange, Transport

__all__ = [
    "Address",
    "Device",
    "Draw",
    "Enrolment",
    "Entry",
    "Exchange",
    "Issuer",
    "Ledger",
    "Offer",
    "Policy",
    "Receipt",
    "Response",
    "Retries",
    "Transport",
    "check_campaign_id",
    "decode_response",
    "default_ledger_path",
    "draw_cells",
    "submission",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "unpoison.client.address": ["Address", "check_campaign_id"],
        "unpoison.client.device": ["Device", "draw_cells", "submission"],
        "unpoison.client.enrolment": ["Enrolment"],
        "unpoison.client.issuer": ["Issuer"],
        "unpoison.client.ledger": ["Draw", "Entry", "Ledger"],
        "unpoison.client.ledger_file": ["default_ledger_path"],
        "unpoison.client.offer": ["Offer"],
        "unpoison.client.policy": ["Policy"],
        "unpoison.client.receipt": ["Receipt"],
        "unpoison.client.responses": ["Response", "decode_response"],
        "unpoison.client.retries": ["Retries"],
        "unpoison.client.transport": ["Exchange", "Transport"],
    },
)
