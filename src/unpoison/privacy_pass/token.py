"""The Token of RFC 9577: a nonce, a challenge and a key, with the issuer's signature."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from unpoison.privacy_pass.challenge import TokenChallenge
from unpoison.privacy_pass.fixed_fields import TYPE_BYTES, typed_fields
from unpoison.privacy_pass.keys import SIGNATURE_BYTES, IssuerKey

NONCE_BYTES = 32
"""256 random bits: two tokens never have the same."""
DIGEST_BYTES = 32
"""Bytes of SHA-256: of a challenge's hash and of a key's id."""
INPUT_BYTES = len(TYPE_BYTES) + NONCE_BYTES + 2 * DIGEST_BYTES
"""What the issuer signs: type, nonce, hash of the challenge, id of the key."""
TOKEN_BYTES = INPUT_BYTES + SIGNATURE_BYTES
"""The length of a token; in base64url it has 472 letters and no padding."""


@dataclass(frozen=True)
class Token:
    """A token: whoever has it may take part once, and nobody can tell who asked for it.

    >>> from unpoison.privacy_pass.keys import new_private_key
    >>> key, challenge = IssuerKey.of(new_private_key()), TokenChallenge("login.example")
    >>> token = Token(bytes(32), challenge.digest, key.id, bytes(256))
    >>> Token.decode(token.encode()) == token, token.is_valid(key, challenge)
    (True, False)
    """

    nonce: bytes = field(repr=False)
    challenge_digest: bytes
    key_id: bytes
    signature: bytes = field(repr=False)

    @classmethod
    def decode(cls, data: bytes) -> Token:
        """The token in bytes."""
        lengths = (NONCE_BYTES, DIGEST_BYTES, DIGEST_BYTES, SIGNATURE_BYTES)
        return cls(*typed_fields("token", data, *lengths))

    def encode(self) -> bytes:
        """The token as bytes."""
        return self.signed + self.signature

    @property
    def signed(self) -> bytes:
        """What the issuer has signed."""
        return token_input(self.nonce, self.challenge_digest, self.key_id)

    @property
    def spending_hash(self) -> bytes:
        """What a verifier keeps of a token that was spent.

        Without the signature: another valid signature of the same nonce is no other token.
        """
        return hashlib.sha256(self.signed).digest()

    def is_valid(self, key: IssuerKey, challenge: TokenChallenge) -> bool:
        """Whether the token is for this challenge, and signed with this key."""
        if self.challenge_digest != challenge.digest or self.key_id != key.id:
            return False
        return key.rsa.verify(self.signed, self.signature)


def token_input(nonce: bytes, challenge_digest: bytes, key_id: bytes) -> bytes:
    """What an issuer signs blindly (RFC 9578, section 6.1).

    >>> len(token_input(bytes(32), bytes(32), bytes(32))) == INPUT_BYTES
    True
    """
    return TYPE_BYTES + nonce + challenge_digest + key_id
