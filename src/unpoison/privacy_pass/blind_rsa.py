"""Blind RSA signatures: RSABSSA-SHA384-PSS-Deterministic of RFC 9474.

The device multiplies the encoded message by r^e, the issuer raises the product to d, and the device
divides by r. What the issuer sees is uniformly random whatever the message is, so that it cannot
recognise the signature later.

OpenSSL verifies; Python's integers do the rest. Their running time depends on the numbers. On the
device these are its own, each used once. On the issuer `RsaPrivateKey.raw_sign` blinds base and
exponents, so that the time does not follow from the key and a number that a device has chosen; that
is weaker than an implementation in constant time.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from unpoison.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

HASH = "sha384"
HASH_BYTES = 48
"""Bytes of SHA-384."""
SALT_BYTES = 48
"""As long as the hash: the variant PSS of RFC 9474, where PSSZERO has none."""
TRAILER = b"\xbc"
"""The last byte of an encoded message (RFC 8017, section 9.1.1)."""
CACHED_KEYS = 64
"""Keys that OpenSSL keeps ready, one for each running campaign: to check a key takes longer than to
verify a signature with it."""
EXPONENT_BLINDING_BITS = 64
"""Random bits that lengthen the private exponents: two signatures never use the same ones."""


@dataclass(frozen=True)
class RsaPublicKey:
    """An RSA key that verifies signatures and blinds messages.

    >>> key = RsaPrivateKey.generate(1024).public
    >>> key.length, key.verify(b"message", bytes(128))
    (128, False)
    """

    modulus: int
    exponent: int

    @property
    def length(self) -> int:
        """Bytes of a signature."""
        return (self.modulus.bit_length() + 7) // 8

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether a signature of the message is valid: RSASSA-PSS-VERIFY with SHA-384."""
        try:
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
            from cryptography.hazmat.primitives.hashes import SHA384
        except ImportError:
            raise MissingExtra("a token", "tokens") from None
        try:
            key = _openssl_key(self.modulus, self.exponent)
            key.verify(signature, message, PSS(MGF1(SHA384()), SALT_BYTES), SHA384())
        # ValueError: OpenSSL refuses numbers that are no RSA key.
        except (InvalidSignature, ValueError):
            return False
        return True

    def new_factor(self) -> int:
        """A random r to blind a message with; it has an inverse.

        >>> key = RsaPublicKey(modulus=35, exponent=5)
        >>> math.gcd(key.new_factor(), 35)
        1
        """
        while True:
            factor = 1 + secrets.randbelow(self.modulus - 1)
            if math.gcd(factor, self.modulus) == 1:
                return factor

    def blind(self, message: bytes, salt: bytes, factor: int) -> bytes:
        """The message, encoded with the salt and times factor^e (RFC 9474, section 4.2)."""
        bits = self.modulus.bit_length() - 1
        number = int.from_bytes(encode_pss(message, bits, salt), "big")
        # A common divisor would be a prime factor of the key, which nobody meets by chance.
        if math.gcd(number, self.modulus) != 1:
            raise InvalidParameter("key", "must be a product of two large primes", "another")
        blinded = number * pow(factor, self.exponent, self.modulus) % self.modulus
        return blinded.to_bytes(self.length, "big")

    def finalise(self, message: bytes, blind_signature: bytes, factor: int) -> bytes:
        """The signature without its blinding, verified (RFC 9474, section 4.4).

        >>> private = RsaPrivateKey.generate(1024)
        >>> key, salt = private.public, secrets.token_bytes(SALT_BYTES)
        >>> factor = key.new_factor()
        >>> blind_signature = private.blind_sign(key.blind(b"message", salt, factor))
        >>> key.verify(b"message", key.finalise(b"message", blind_signature, factor))
        True
        """
        if len(blind_signature) != self.length:
            rule = f"must have {self.length} bytes"
            raise InvalidParameter("blind signature", rule, len(blind_signature))
        inverse = pow(factor, -1, self.modulus)
        number = int.from_bytes(blind_signature, "big") * inverse % self.modulus
        signature = number.to_bytes(self.length, "big")
        if not self.verify(message, signature):
            raise InvalidParameter("blind signature", "must be one of this key", "another")
        return signature


@dataclass(frozen=True)
class RsaPrivateKey:
    """The two primes and the public exponent of an RSA key.

    >>> RsaPrivateKey.generate(1024).public.modulus.bit_length()
    1024
    """

    first_prime: int = field(repr=False)
    second_prime: int = field(repr=False)
    exponent: int

    @classmethod
    def generate(cls, bits: int) -> RsaPrivateKey:
        """A new key, made by OpenSSL."""
        try:
            from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
        except ImportError:
            raise MissingExtra("a key", "tokens") from None
        # The exponent that all libraries use; smaller ones have been misused too often.
        numbers = generate_private_key(65537, bits).private_numbers()
        return cls(numbers.p, numbers.q, numbers.public_numbers.e)

    @property
    def public(self) -> RsaPublicKey:
        """The key that verifies."""
        return RsaPublicKey(self.first_prime * self.second_prime, self.exponent)

    def blind_sign(self, blinded: bytes) -> bytes:
        """The signature of a blinded message (RFC 9474, section 4.3)."""
        public = self.public
        number = int.from_bytes(blinded, "big")
        if len(blinded) != public.length or number >= public.modulus:
            rule = f"must have {public.length} bytes and be below the modulus"
            raise InvalidParameter("blinded message", rule, f"{len(blinded)} bytes")
        signature = self.raw_sign(number)
        # A signature with a bit error in it would reveal the primes.
        if pow(signature, public.exponent, public.modulus) != number:
            raise ArithmeticError("the signature does not verify")
        return signature.to_bytes(public.length, "big")

    def raw_sign(self, number: int) -> int:
        """number^d modulo the modulus, with blinded base and blinded exponents.

        >>> key = RsaPrivateKey(first_prime=11, second_prime=23, exponent=3)
        >>> pow(key.raw_sign(42), 3, 253)
        42
        """
        public = self.public
        factor = public.new_factor()
        base = number * pow(factor, public.exponent, public.modulus) % public.modulus
        p, q = self.first_prime, self.second_prime
        below_p, below_q = self._power(base, p), self._power(base, q)
        # The Chinese remainder theorem, by Garner: a number with these two remainders.
        blinded = below_q + q * ((below_p - below_q) * pow(q, -1, p) % p)
        return blinded * pow(factor, -1, public.modulus) % public.modulus

    def _power(self, base: int, prime: int) -> int:
        exponent = pow(self.exponent, -1, prime - 1)
        lengthened = exponent + secrets.randbits(EXPONENT_BLINDING_BITS) * (prime - 1)
        return pow(base % prime, lengthened, prime)


@lru_cache(maxsize=CACHED_KEYS)
def _openssl_key(modulus: int, exponent: int) -> RSAPublicKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    return RSAPublicNumbers(exponent, modulus).public_key()


def encode_pss(message: bytes, bits: int, salt: bytes) -> bytes:
    """EMSA-PSS-ENCODE of RFC 8017 with SHA-384: the message's padded hash, of so many bits.

    >>> encode_pss(b"message", 1023, bytes(SALT_BYTES))[-1:] == TRAILER
    True
    """
    length = (bits + 7) // 8
    digest = hashlib.new(HASH, bytes(8) + hashlib.new(HASH, message).digest() + salt).digest()
    block = bytes(length - len(salt) - HASH_BYTES - 2) + b"\x01" + salt
    masked = bytes(a ^ b for a, b in zip(block, mask(digest, len(block)), strict=True))
    # The first byte has bits beyond `bits`, which must be zero.
    first = masked[0] & (0xFF >> (8 * length - bits))
    return bytes([first]) + masked[1:] + digest + TRAILER


def mask(seed: bytes, length: int) -> bytes:
    """MGF1 of RFC 8017 with SHA-384: bytes that a seed expands to.

    >>> len(mask(b"seed", 100)), mask(b"seed", 100)[:50] == mask(b"seed", 50)
    (100, True)
    """
    blocks = -(-length // HASH_BYTES)
    counters = (number.to_bytes(4, "big") for number in range(blocks))
    return b"".join(hashlib.new(HASH, seed + counter).digest() for counter in counters)[:length]
