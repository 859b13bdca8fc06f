"""Secrets that people carry: operator tokens and invites. Only their hashes are kept.

All have at least 128 random bits, so a plain hash does: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

TOKEN_BYTES = 32
INVITE_BYTES = 16
CAMPAIGN_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
CAMPAIGN_LENGTH = 12


def new_token() -> str:
    """A token for an operator.

    >>> len(new_token())
    64
    """
    return secrets.token_hex(TOKEN_BYTES)


def new_invite() -> str:
    """An invite for one device.

    >>> new_invite() == new_invite()
    False
    """
    return secrets.token_hex(INVITE_BYTES)


def new_campaign_id() -> str:
    """A name for a campaign that nobody can mistype into another one.

    >>> len(new_campaign_id())
    12
    """
    return "".join(secrets.choice(CAMPAIGN_ALPHABET) for _ in range(CAMPAIGN_LENGTH))


def is_campaign_id(text: str) -> bool:
    """Whether a text can be the name of a campaign; no other has to be looked for.

    >>> is_campaign_id(new_campaign_id()), is_campaign_id("' OR 1 = 1 --")
    (True, False)
    """
    return len(text) == CAMPAIGN_LENGTH and set(text) <= set(CAMPAIGN_ALPHABET)


def hashed(secret: str) -> bytes:
    """What is kept of a secret.

    >>> len(hashed("anything"))
    32
    """
    return hashlib.sha256(secret.encode()).digest()


def is_one_of(secret: str, hashes: Iterable[bytes]) -> bool:
    """Whether a secret is among those whose hashes these are, in a time that tells nothing.

    >>> is_one_of("a", [hashed("b"), hashed("a")])
    True
    """
    given = hashed(secret)
    matches = [hmac.compare_digest(given, each) for each in hashes]
    return any(matches)
