"""The device side: reports a value to a collector that it does not trust."""

from unpoison.client.address import Address
from unpoison.client.checks import Enrolment, Offer, check_campaign
from unpoison.client.device import Device, Receipt, draw_cells, submission
from unpoison.client.ledger import Draw, Entry, Ledger
from unpoison.client.ledger_file import default_path
from unpoison.client.policy import Policy
from unpoison.client.responses import Answer, decoded
from unpoison.client.retries import Retries
from unpoison.client.transport import Exchange, Transport

__all__ = [
    "Address",
    "Answer",
    "Device",
    "Draw",
    "Enrolment",
    "Entry",
    "Exchange",
    "Ledger",
    "Offer",
    "Policy",
    "Receipt",
    "Retries",
    "Transport",
    "check_campaign",
    "decoded",
    "default_path",
    "draw_cells",
    "submission",
]
