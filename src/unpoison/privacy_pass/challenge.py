"""The TokenChallenge of RFC 9577: what a token is for, and who issues it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from unpoison.errors import InvalidParameter

TOKEN_TYPE = 2
"""Blind RSA with 2048 bits, the publicly verifiable type of RFC 9578."""
CONTEXT_BYTES = 32
"""A redemption context is empty or a hash of so many bytes."""
MAX_FIELD = 2**16 - 1
"""The longest text that the two bytes of its length can announce."""
SERVER_NAME = re.compile(
    r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?"
)
"""A host in lower case, with a port where it is not the usual one."""
NAME_RULE = "must be a host name in lower case such as login.example, perhaps with a port"
CAMPAIGN_CONTEXT = b"unpoison campaign "
"""Set before a campaign's id, so that its hash is no other program's redemption context."""


@dataclass(frozen=True)
class TokenChallenge:
    """What a token must be for: its issuer, a redemption context, and origins; none means any.

    >>> challenge = TokenChallenge("login.example", bytes(32), ("collector.example",))
    >>> TokenChallenge.decode(challenge.encode()) == challenge
    True
    """

    issuer: str
    context: bytes = b""
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_server_name(self.issuer):
            raise InvalidParameter("issuer name", NAME_RULE, "another")
        if len(self.context) not in (0, CONTEXT_BYTES):
            rule = f"must be empty or {CONTEXT_BYTES} bytes"
            raise InvalidParameter("redemption context", rule, len(self.context))
        if not all(is_server_name(origin) for origin in self.origins):
            raise InvalidParameter("origin", NAME_RULE, "another")

    def encode(self) -> bytes:
        """The challenge as bytes (RFC 9577, section 2.1)."""
        issuer, origins = self.issuer.encode(), ",".join(self.origins).encode()
        if len(origins) > MAX_FIELD:
            raise InvalidParameter("origins", f"must have at most {MAX_FIELD} letters", "more")
        return b"".join(
            [
                TOKEN_TYPE.to_bytes(2, "big"),
                len(issuer).to_bytes(2, "big") + issuer,
                len(self.context).to_bytes(1, "big") + self.context,
                len(origins).to_bytes(2, "big") + origins,
            ]
        )

    @classmethod
    def decode(cls, data: bytes) -> TokenChallenge:
        """The challenge in bytes, which must be one to the last byte."""
        if data[:2] != TOKEN_TYPE.to_bytes(2, "big"):
            raise InvalidParameter(
                "challenge", f"must be for tokens of type {TOKEN_TYPE}", "others"
            )
        issuer, rest = _field(data[2:], 2)
        context, rest = _field(rest, 1)
        origins, rest = _field(rest, 2)
        if rest:
            raise InvalidParameter("challenge", "must end after its origins", "more bytes")
        names = _text(origins).split(",") if origins else []
        return cls(_text(issuer), context, tuple(names))

    @property
    def digest(self) -> bytes:
        """The hash of the challenge, which its tokens contain."""
        return hashlib.sha256(self.encode()).digest()


def campaign_challenge(campaign: str, issuer: str, origins: tuple[str, ...] = ()) -> TokenChallenge:
    """The challenge of a campaign: its redemption context follows from the campaign's id.

    >>> campaign_challenge("k3v9x2m4q7w1", "login.example").context.hex()[:16]
    'b4d0a688b968fccd'
    """
    context = hashlib.sha256(CAMPAIGN_CONTEXT + campaign.encode()).digest()
    return TokenChallenge(issuer, context, origins)


def is_server_name(text: str) -> bool:
    """Whether a text is a host in lower case, perhaps with a port.

    >>> is_server_name("login.example:8443"), is_server_name("https://login.example")
    (True, False)
    """
    return len(text) <= MAX_FIELD and SERVER_NAME.fullmatch(text) is not None


def _field(data: bytes, size: int) -> tuple[bytes, bytes]:
    """A field whose length is in its first bytes, and what follows it."""
    end = size + int.from_bytes(data[:size], "big")
    if len(data) < max(size, end):
        raise InvalidParameter("challenge", "must be a whole TokenChallenge", "a part of one")
    return data[size:end], data[end:]


def _text(data: bytes) -> str:
    # Names are ASCII; what is none becomes a character that no name has.
    return data.decode("ascii", errors="replace")
