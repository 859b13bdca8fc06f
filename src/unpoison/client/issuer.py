"""An issuer of tokens as a device sees it: which keys it has, and its blind signatures."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from unpoison.client.address import Address
from unpoison.client.offer import Offer
from unpoison.client.responses import OK, Response, decode_response, printable_excerpt
from unpoison.client.transport import Exchange, Transport
from unpoison.errors import (
    CollectorNotTrusted,
    CollectorRefused,
    InvalidParameter,
    IssuerNotTrusted,
    IssuerRefused,
)
from unpoison.privacy_pass import (
    IssuerKey,
    PendingToken,
    Token,
    TokenChallenge,
    campaign_challenge,
    from_base64url,
    to_base64url,
)
from unpoison.privacy_pass.challenge import TOKEN_TYPE
from unpoison.privacy_pass.issuance import DIRECTORY_PATH, REQUEST_TYPE, RESPONSE_TYPE
from unpoison.system.closing import Closing

MAX_ACCOUNT = 4096
"""The most characters of an account's token: services issue longer ones than ours."""


@dataclass(frozen=True)
class TokenTerms:
    """What a campaign's tokens must be for, and whose key signs them.

    >>> from unpoison.privacy_pass import new_private_key
    >>> key = IssuerKey.of(new_private_key())
    >>> TokenTerms(campaign_challenge("k3v9", "login.example"), key).new_pending().key == key
    True
    """

    challenge: TokenChallenge
    key: IssuerKey

    def new_pending(self) -> PendingToken:
        """A new token, to be signed."""
        return PendingToken.new(self.key, self.challenge)

    def are_of(self, pending: PendingToken) -> bool:
        """Whether a pending token is for this challenge and key."""
        return (pending.challenge_digest, pending.key) == (self.challenge.digest, self.key)


class Issuer(Closing):
    """An issuer at an address, and the account that asks it for tokens.

    With `key`, a public key in PEM, only tokens of that key are asked for: neither the campaign nor
    the issuer can then choose a key that marks the account.

    >>> Issuer("http://login.example", "token")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: issuer must be https:// unless insecure; received http://...
    """

    def __init__(
        self,
        url: str,
        account: str,
        *,
        key: str | None = None,
        insecure: bool = False,
        transport: Exchange | None = None,
    ) -> None:
        self.address = _address(url, insecure)
        # The account's token becomes a header: a line break in it would begin another one.
        plain = account.isascii() and account.isprintable() and " " not in account
        if not (plain and 1 <= len(account) <= MAX_ACCOUNT):
            raise InvalidParameter("account", "must be letters, digits and signs", "others")
        self.pinned = None if key is None else IssuerKey.from_pem(key)
        self._own: Transport | None = None
        if transport is None:
            # Not for the directory: it must be the same for all, so it is not told who asks.
            headers = {
                "Authorization": f"Bearer {account}",
                "Accept": f"{RESPONSE_TYPE}, application/json",
                "Content-Type": REQUEST_TYPE,
            }
            transport = self._own = Transport(url, insecure=insecure, post_headers=headers)
        self._transport = transport
        self._request_path = ""

    @property
    def name(self) -> str:
        """The name by which challenges call this issuer: its host, with a port that is unusual."""
        return server_name(self.address)

    def check(self, terms: TokenTerms) -> None:
        """Refuse terms of another issuer, or of a key that is not in its public directory."""
        if terms.challenge.issuer != self.name:
            raise CollectorNotTrusted("the campaign's tokens are of another issuer")
        if self.pinned is not None and terms.key != self.pinned:
            raise CollectorNotTrusted("the campaign's tokens are of another key than issuer's")
        directory = _object(self._transport.exchange("GET", DIRECTORY_PATH))
        if to_base64url(terms.key.der).rstrip("=") not in _listed_keys(directory):
            raise IssuerNotTrusted("the campaign's key is not in the issuer's directory")
        self._request_path = self._checked_path(directory.get("issuer-request-uri"))

    def signed(self, pending: PendingToken) -> Token:
        """The token, signed by the issuer; its signature is verified before it is used."""
        body = pending.request().encode()
        response = self._transport.exchange("POST", self._request_path, body)
        if response.status != OK:
            raise _refusal(response)
        try:
            return pending.finalise(response.body)
        except InvalidParameter:
            raise IssuerNotTrusted("the issuer's signature is not valid") from None

    def close(self) -> None:
        """Close the connection, if this object opened it."""
        if self._own is not None:
            self._own.close()

    def _checked_path(self, uri: object) -> str:
        """The path of the address for requests, which must be on the issuer's own host."""
        base = f"{self.address}/"
        try:
            target = urlsplit(urljoin(base, str(uri)))
            same = Address.parse(f"{target.scheme}://{target.netloc}") == Address(
                self.address.scheme, self.address.host, self.address.port
            )
        except ValueError:
            same = False
        prefix = self.address.prefix
        path = target.path.removeprefix(prefix) if same else ""
        if not isinstance(uri, str) or not path.startswith("/") or not path.isprintable():
            raise IssuerNotTrusted("the issuer's directory sends requests elsewhere")
        return path


def checked_terms(offer: Offer, collector: Address) -> TokenTerms:
    """The terms of an offer, if its challenge is for this campaign and this collector.

    >>> from unpoison.plan import Plan
    >>> plan = Plan.new("piecewise-integer", epsilon=0.25, low=0, high=10)
    >>> offer = Offer("k3v9", "token", plan, token_challenge="AAI", token_key="")
    >>> checked_terms(offer, Address.parse("https://collector.example"))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the campaign's challenge or key is not valid
    """
    try:
        challenge = TokenChallenge.decode(from_base64url(offer.token_challenge))
        key = IssuerKey.from_der(from_base64url(offer.token_key))
    except ValueError:
        raise CollectorNotTrusted("the campaign's challenge or key is not valid") from None
    if challenge != campaign_challenge(offer.campaign, challenge.issuer, challenge.origins):
        raise CollectorNotTrusted("the challenge is not for this campaign")
    # A collector that passes on another one's challenge would spend the token there.
    if challenge.origins and server_name(collector) not in challenge.origins:
        raise CollectorNotTrusted("the challenge is not for this collector")
    return TokenTerms(challenge, key)


def server_name(address: Address) -> str:
    """The host of an address, with its port where that is not the usual one.

    >>> server_name(Address.parse("https://login.example:8443/tokens"))
    'login.example:8443'
    """
    bare = Address(address.scheme, address.host, address.port)
    return str(bare).partition("://")[2]


def _address(url: str, insecure: bool) -> Address:
    try:
        return Address.parse_for_secrets(url, insecure)
    except InvalidParameter as fault:
        raise InvalidParameter("issuer", fault.rule, fault.received) from None


def _object(response: Response) -> dict[str, Any]:
    try:
        return decode_response(response)
    except CollectorRefused as fault:
        raise IssuerRefused(fault.status, fault.code) from None
    except CollectorNotTrusted:
        raise IssuerNotTrusted("the issuer's directory is not valid") from None


def _listed_keys(directory: dict[str, Any]) -> set[str]:
    """The keys of our token type in a directory, in base64url without padding."""
    keys = directory.get("token-keys")
    if not isinstance(keys, list):
        raise IssuerNotTrusted("the issuer's directory is not valid")
    return {
        str(key.get("token-key")).rstrip("=")
        for key in keys
        if isinstance(key, dict) and key.get("token-type") == TOKEN_TYPE
    }


def _refusal(response: Response) -> IssuerRefused:
    """The refusal of an issuer of any make, with a code if it names one as ours does."""
    code = "error"
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        code = str(json.loads(response.body)["error"]["code"])
    return IssuerRefused(response.status, printable_excerpt(code))
