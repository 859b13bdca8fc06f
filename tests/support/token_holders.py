"""An issuer's key in the hands of a test: it makes tokens for campaigns without a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from support.running_collectors import RunningCampaign, RunningCollector
from unpoison.privacy_pass import (
    IssuerKey,
    PendingToken,
    RsaPrivateKey,
    Token,
    TokenChallenge,
    blind_signature,
    from_base64url,
    new_private_key,
    to_base64url,
)

ISSUER_NAME = "login.example"


@dataclass(frozen=True)
class KeyHolder:
    """An issuer that signs whatever it is asked to."""

    private: RsaPrivateKey

    @cached_property
    def key(self) -> IssuerKey:
        return IssuerKey.of(self.private)

    def body(self, **fields: Any) -> dict[str, Any]:
        """The issuer as an operator names it in a new campaign."""
        return {"name": ISSUER_NAME, "key": self.key.pem, **fields}

    def token(self, challenge: TokenChallenge) -> Token:
        """A new token for a challenge."""
        pending = PendingToken.new(self.key, challenge)
        return pending.finalise(blind_signature(self.private, pending.request()))

    def token_for(self, campaign: RunningCampaign) -> str:
        """A new token for a running campaign, as a device sends it."""
        return to_base64url(self.token(challenge_of(campaign)).encode())

    def create_campaign(self, server: RunningCollector, **fields: Any) -> RunningCampaign:
        """A campaign whose devices need a token of this issuer."""
        return server.create_campaign(**{"access": "token", "issuer": self.body(), **fields})


def challenge_of(campaign: RunningCampaign) -> TokenChallenge:
    """The challenge that a campaign's devices are told."""
    offered = campaign.server.request("GET", campaign.path).json["token_challenge"]
    return TokenChallenge.decode(from_base64url(offered))


@cache
def key_holder(name: str = "") -> KeyHolder:
    """An issuer, the same for each name: to make a key takes a tenth of a second."""
    return KeyHolder(new_private_key())
