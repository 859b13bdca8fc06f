"""Issuance of RFC 9578, type 2: a device blinds a token, and an issuer signs it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from unpoison.privacy_pass.blind_rsa import SALT_BYTES, RsaPrivateKey
from unpoison.privacy_pass.challenge import TokenChallenge
from unpoison.privacy_pass.fixed_fields import TYPE_BYTES, typed_fields
from unpoison.privacy_pass.keys import SIGNATURE_BYTES, IssuerKey
from unpoison.privacy_pass.token import NONCE_BYTES, Token, token_input

REQUEST_BYTES = len(TYPE_BYTES) + 1 + SIGNATURE_BYTES
"""The length of a request: type, the last byte of the key's id, and the blinded message."""
REQUEST_TYPE = "application/private-token-request"
RESPONSE_TYPE = "application/private-token-response"
DIRECTORY_TYPE = "application/private-token-issuer-directory"
DIRECTORY_PATH = "/.well-known/private-token-issuer-directory"


@dataclass(frozen=True)
class TokenRequest:
    """What a device sends to an issuer: which key shall sign, and a blinded message.

    >>> request = TokenRequest(7, bytes(256))
    >>> TokenRequest.decode(request.encode()) == request
    True
    """

    truncated_key_id: int
    blinded: bytes = field(repr=False)

    @classmethod
    def decode(cls, data: bytes) -> TokenRequest:
        """The request in bytes."""
        key_id, blinded = typed_fields("token request", data, 1, SIGNATURE_BYTES)
        return cls(key_id[0], blinded)

    def encode(self) -> bytes:
        """The request as bytes."""
        return TYPE_BYTES + bytes([self.truncated_key_id]) + self.blinded


@dataclass(frozen=True)
class PendingToken:
    """A token that its issuer has not signed yet: what a device keeps until it has the answer.

    The same PendingToken makes the same request to the byte, so that a request whose answer was
    lost can be sent again.

    >>> from unpoison.privacy_pass.keys import new_private_key
    >>> private, challenge = new_private_key(), TokenChallenge("login.example")
    >>> key = IssuerKey.of(private)
    >>> pending = PendingToken.new(key, challenge)
    >>> token = pending.finalise(blind_signature(private, pending.request()))
    >>> token.is_valid(key, challenge), PendingToken.from_hex(key, pending.to_hex()) == pending
    (True, True)
    """

    key: IssuerKey
    challenge_digest: bytes
    nonce: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    factor: int = field(repr=False)

    @classmethod
    def new(cls, key: IssuerKey, challenge: TokenChallenge) -> PendingToken:
        """A pending token with a new nonce, salt and blinding factor."""
        nonce, salt = secrets.token_bytes(NONCE_BYTES), secrets.token_bytes(SALT_BYTES)
        return cls(key, challenge.digest, nonce, salt, key.rsa.new_factor())

    @property
    def message(self) -> bytes:
        """What the issuer signs without seeing it."""
        return token_input(self.nonce, self.challenge_digest, self.key.id)

    def request(self) -> TokenRequest:
        """The request to the issuer."""
        blinded = self.key.rsa.blind(self.message, self.salt, self.factor)
        return TokenRequest(self.key.truncated_id, blinded)

    def finalise(self, response: bytes) -> Token:
        """The token, from the issuer's response, whose signature is verified."""
        signature = self.key.rsa.finalise(self.message, response, self.factor)
        return Token(self.nonce, self.challenge_digest, self.key.id, signature)

    def to_hex(self) -> str:
        """Everything but the key, as text for a file."""
        factor = self.factor.to_bytes(SIGNATURE_BYTES, "big")
        return (self.challenge_digest + self.nonce + self.salt + factor).hex()

    @classmethod
    def from_hex(cls, key: IssuerKey, text: str) -> PendingToken:
        """The pending token of `to_hex`; ValueError for any other text."""
        data = bytes.fromhex(text)
        digest, nonce = data[:32], data[32:64]
        salt, factor = data[64 : 64 + SALT_BYTES], data[64 + SALT_BYTES :]
        if len(factor) != SIGNATURE_BYTES:
            raise ValueError("must be a pending token")
        return cls(key, digest, nonce, salt, int.from_bytes(factor, "big"))


def blind_signature(key: RsaPrivateKey, request: TokenRequest) -> bytes:
    """An issuer's response to a request: its signature of the blinded message.

    >>> from unpoison.privacy_pass.keys import new_private_key
    >>> len(blind_signature(new_private_key(), TokenRequest(7, bytes(255) + bytes([1]))))
    256
    """
    return key.blind_sign(request.blinded)
