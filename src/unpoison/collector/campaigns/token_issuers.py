"""The issuer of a campaign's tokens: which challenge they answer, and which key has signed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from unpoison.collector.faults import Fault
from unpoison.collector.storage.schema import token_issuers
from unpoison.errors import InvalidParameter
from unpoison.privacy_pass import (
    IssuerKey,
    Token,
    TokenChallenge,
    campaign_challenge,
    from_base64url,
    to_base64url,
)

FIELDS = {"issuer name": "issuer.name", "key": "issuer.key", "origin": "issuer.origins"}
"""The fields of a request, by the parameter that an error is about."""


@dataclass(frozen=True)
class TokenIssuer:
    """Challenge and public key of a campaign whose devices need tokens; neither ever changes.

    >>> from unpoison.privacy_pass import new_private_key
    >>> pem = IssuerKey.of(new_private_key()).pem
    >>> issuer = TokenIssuer.new("k3v9x2m4q7w1", "login.example", pem)
    >>> sorted(issuer.public())
    ['token_challenge', 'token_key']
    >>> issuer.checked_hash(472 * "A")
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: There is no token of the campaign's issuer for this campaign.
    """

    challenge: TokenChallenge
    key: IssuerKey

    @classmethod
    def new(cls, campaign: str, name: str, pem: str, origins: Sequence[str] = ()) -> TokenIssuer:
        """The issuer with a name and a key in PEM; a Fault if one of them makes no sense."""
        try:
            challenge = campaign_challenge(campaign, name, tuple(origins))
            return cls(challenge, IssuerKey.from_pem(pem))
        except InvalidParameter as fault:
            field = FIELDS.get(fault.parameter, "issuer")
            raise Fault("invalid-request", f"{fault.parameter} {fault.rule}.", field) from None

    @classmethod
    def find(cls, connection: Connection, campaign: str) -> TokenIssuer | None:
        """The issuer of a campaign's tokens, if it has one."""
        row = connection.execute(
            select(token_issuers).where(token_issuers.c.campaign == campaign)
        ).first()
        if row is None:
            return None
        challenge = TokenChallenge.decode(bytes(row.challenge))
        return cls(challenge, IssuerKey.from_der(bytes(row.public_key)))

    def add(self, connection: Connection, campaign: str) -> None:
        """Store the issuer of a new campaign."""
        row = {
            "campaign": campaign,
            "challenge": self.challenge.encode(),
            "public_key": self.key.der,
        }
        connection.execute(insert(token_issuers), row)

    def public(self) -> dict[str, str]:
        """What devices see: the challenge and the key, as RFC 9577 writes them."""
        return {
            "token_challenge": to_base64url(self.challenge.encode()),
            "token_key": to_base64url(self.key.der),
        }

    def checked_hash(self, text: str | None) -> bytes:
        """What is stored of a token once it is spent; a Fault if the token is not valid here."""
        try:
            token = Token.decode(from_base64url(text or ""))
        except ValueError:
            raise Fault("invalid-token") from None
        if not token.is_valid(self.key, self.challenge):
            raise Fault("invalid-token")
        return token.spending_hash
