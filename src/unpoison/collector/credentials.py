"""Random secrets that people carry (operator tokens, invites), campaign ids, and their hashes.

Only hashes are stored. Every secret has at least 128 random bits, so SHA-256 without salt or
stretching is enough: a dictionary attack has no dictionary to try.
"""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 32
"""An operator's token is copied by machines, so its length costs nothing: 256 bits."""
INVITE_BYTES = 16
"""An invite may be typed by hand; 128 bits still cannot be guessed."""
CAMPAIGN_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o or u, which are mistaken for other characters."""
CAMPAIGN_LENGTH = 12
"""60 random bits: a mistyped id practically never is the id of another campaign."""


def new_token() -> str:
    """Draw a token for an operator.

    >>> len(new_token())
    64
    """
    return secrets.token_hex(TOKEN_BYTES)


def new_invite() -> str:
    """Draw an invite for one device.

    >>> new_invite() == new_invite()
    False
    """
    return secrets.token_hex(INVITE_BYTES)


def new_campaign_id() -> str:
    """Draw an id for a campaign.

    >>> len(new_campaign_id())
    12
    """
    return "".join(secrets.choice(CAMPAIGN_ALPHABET) for _ in range(CAMPAIGN_LENGTH))


def is_campaign_id(text: str) -> bool:
    """Whether a text has the form of a campaign's id; any other text needs no database lookup.

    >>> is_campaign_id(new_campaign_id()), is_campaign_id("' OR 1 = 1 --")
    (True, False)
    """
    return len(text) == CAMPAIGN_LENGTH and set(text) <= set(CAMPAIGN_ALPHABET)


def hashed(secret: str) -> bytes:
    """Hash a secret for storage (SHA-256).

    >>> len(hashed("anything"))
    32
    """
    return hashlib.sha256(secret.encode()).digest()
