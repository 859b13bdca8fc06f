"""The token service: which account asks, how many tokens it has had, and the signature."""

from __future__ import annotations

from typing import Any

from unpoison.errors import InvalidParameter
from unpoison.issuer.refusals import Refusal
from unpoison.issuer.register import Register
from unpoison.issuer.signing_keys import SigningKeys
from unpoison.privacy_pass import TokenRequest, blind_signature, to_base64url
from unpoison.privacy_pass.challenge import TOKEN_TYPE

REQUEST_PATH = "/token-request"


class TokenService:
    """Signs blinded tokens for accounts, at most some of each key for each account.

    >>> from unpoison.privacy_pass import PendingToken, TokenChallenge, new_private_key
    >>> keys, challenge = SigningKeys([new_private_key()]), TokenChallenge("login.example")
    >>> with Register(None) as register:
    ...     [account] = register.add_accounts(1)
    ...     pending = PendingToken.new(keys.public[0], challenge)
    ...     response = TokenService(keys, register, 1).issue(account, pending.request().encode())
    >>> pending.finalise(response).is_valid(keys.public[0], challenge)
    True
    """

    def __init__(self, keys: SigningKeys, register: Register, tokens: int) -> None:
        self.keys, self.register, self.tokens = keys, register, tokens

    def directory(self) -> dict[str, Any]:
        """The issuer's directory (RFC 9578, section 4): where to ask, and its public keys."""
        return {
            "issuer-request-uri": REQUEST_PATH,
            "token-keys": [
                {"token-type": TOKEN_TYPE, "token-key": to_base64url(key.der)}
                for key in self.keys.public
            ],
        }

    def issue(self, account: str, body: bytes) -> bytes:
        """The signature that a request asks for, if the account may have it."""
        try:
            request = TokenRequest.decode(body)
        except InvalidParameter:
            raise Refusal("invalid-request") from None
        key = self.keys.private(request.truncated_key_id)
        if key is None or int.from_bytes(request.blinded, "big") >= key[0].modulus:
            raise Refusal("invalid-request")
        public, private = key
        self.register.count(account, public.id, body, self.tokens)
        return blind_signature(private, request)
