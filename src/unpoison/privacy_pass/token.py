"""The Token of RFC 9577: a nonce, a challenge and a key, with the issuer's signature."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from unpoison.errors import InvalidParameter
from unpoison.privacy_pass.challenge import TOKEN_TYPE, TokenChallenge
from unpoison.privacy_pass.keys import SIGNATURE_BYTES, IssuerKey

NONCE_BYTES = 32
"""256 random bits: two tokens never have the same."""
DIGEST_BYTES = 32
"""Bytes of SHA-256: of a challenge's hash and of a key's id."""
INPUT_BYTES = 2 + NONCE_BYTES + 2 * DIGEST_BYTES
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
        if len(data) != TOKEN_BYTES or data[:2] != TOKEN_TYPE.to_bytes(2, "big"):
            rule = f"must be {TOKEN_BYTES} bytes of type {TOKEN_TYPE}"
            raise InvalidParameter("token", rule, f"{len(data)} bytes")
        nonce, digest = data[2:34], data[34:66]
        return cls(nonce, digest, data[66:INPUT_BYTES], data[INPUT_BYTES:])

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
    return TOKEN_TYPE.to_bytes(2, "big") + nonce + challenge_digest + key_id
