"""Base64url text of keys, challenges and tokens in JSON."""

from __future__ import annotations

import base64
import binascii
import re

BASE64URL = re.compile(r"[A-Za-z0-9_-]*={0,2}")


def to_base64url(data: bytes) -> str:
    """Bytes as base64url text with padding, as RFC 9577 and 9578 write them.

    >>> to_base64url(bytes([255, 254, 253, 252]))
    '__79_A=='
    """
    return base64.urlsafe_b64encode(data).decode()


def from_base64url(text: str) -> bytes:
    """The bytes of base64url text, with or without padding; ValueError for any other text.

    >>> from_base64url("__79_A") == from_base64url("__79_A==") == bytes([255, 254, 253, 252])
    True
    """
    # Python's decoder skips characters that are none of the alphabet: one value would have many
    # spellings.
    if not BASE64URL.fullmatch(text):
        raise ValueError("must be base64url")
    bare = text.rstrip("=")
    try:
        data = base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        raise ValueError("must be base64url") from None
    if to_base64url(data).rstrip("=") != bare:
        raise ValueError("must be base64url")
    return data
