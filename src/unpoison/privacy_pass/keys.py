"""Keys of token issuers: RSA with 2048 bits, named by the hash of their encoding (RFC 9578)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.privacy_pass.blind_rsa import RsaPrivateKey, RsaPublicKey

BITS = 2048
"""The size of keys of token type 2."""
SIGNATURE_BYTES = BITS // 8
"""Bytes of a blinded message and of a signature (Nk in RFC 9578)."""
EXPONENT = 65537
"""The exponent of all keys that libraries make by default."""
PREFIX = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202"
    "a11a301806092a864886f70d010108300b0609608648016503040202a20302013003"
    "82010f003082010a0282010100"
)
"""DER of a SubjectPublicKeyInfo with the RSASSA-PSS identifier, SHA-384 and a salt of 48 bytes, up
to the modulus. The rest is fixed too, for keys of one size and exponent."""
SUFFIX = bytes.fromhex("0203010001")
"""DER of the exponent 65537."""
RULE = f"must be an RSA key of {BITS} bits with the exponent {EXPONENT}"


@dataclass(frozen=True)
class IssuerKey:
    """The public key of an issuer, by which anybody verifies its tokens.

    >>> key = IssuerKey.of(new_private_key())
    >>> IssuerKey.from_der(key.der) == IssuerKey.from_pem(key.pem) == key
    True
    >>> len(key.id), key.truncated_id == key.id[-1]
    (32, True)
    """

    modulus: int

    def __post_init__(self) -> None:
        if self.modulus.bit_length() != BITS or self.modulus % 2 == 0:
            raise InvalidParameter("key", RULE, "another")

    @classmethod
    def of(cls, private: RsaPrivateKey) -> IssuerKey:
        """The public part of a private key."""
        return cls._checked(private.public.modulus, private.exponent)

    @classmethod
    def from_der(cls, der: bytes) -> IssuerKey:
        """The key in the encoding of RFC 9578."""
        modulus = der[len(PREFIX) : -len(SUFFIX)]
        if der != PREFIX + modulus + SUFFIX or len(modulus) != SIGNATURE_BYTES:
            raise InvalidParameter("key", f"{RULE}, in the encoding of RFC 9578", "another")
        return cls(int.from_bytes(modulus, "big"))

    @classmethod
    def from_pem(cls, pem: str) -> IssuerKey:
        """The key in a PEM file, whether it is marked as a key for RSASSA-PSS or for any use."""
        try:
            from cryptography.exceptions import UnsupportedAlgorithm
            from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
            from cryptography.hazmat.primitives.serialization import load_pem_public_key
        except ImportError:
            raise MissingExtra("a key", "tokens") from None
        try:
            key = load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidParameter("key", "must be a public key in PEM", "something else") from None
        if not isinstance(key, RSAPublicKey):
            raise InvalidParameter("key", RULE, "a key of another kind")
        numbers = key.public_numbers()
        return cls._checked(numbers.n, numbers.e)

    @classmethod
    def _checked(cls, modulus: int, exponent: int) -> IssuerKey:
        if exponent != EXPONENT:
            raise InvalidParameter("key", RULE, "one with another exponent")
        return cls(modulus)

    @cached_property
    def der(self) -> bytes:
        """The encoding of RFC 9578, section 6.5."""
        return PREFIX + self.modulus.to_bytes(SIGNATURE_BYTES, "big") + SUFFIX

    @property
    def pem(self) -> str:
        """The same encoding as a PEM file."""
        from base64 import encodebytes
        from textwrap import wrap

        text = encodebytes(self.der).decode().replace("\n", "")
        lines = wrap(text, 64)  # The width that RFC 7468 asks for.
        return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])

    @cached_property
    def id(self) -> bytes:
        """The key's name in a token: the SHA-256 hash of its encoding."""
        return hashlib.sha256(self.der).digest()

    @property
    def truncated_id(self) -> int:
        """The key's name in a request: one byte, so that a key of its own marks no device."""
        return self.id[-1]

    @property
    def rsa(self) -> RsaPublicKey:
        """The key for blinding and verifying."""
        return RsaPublicKey(self.modulus, EXPONENT)


def new_private_key() -> RsaPrivateKey:
    """Make a key for an issuer.

    >>> new_private_key().public.length
    256
    """
    return RsaPrivateKey.generate(BITS)


def private_pem(key: RsaPrivateKey) -> bytes:
    """A private key as a PEM file, without a password.

    >>> private_pem(new_private_key())[:27]
    b'-----BEGIN PRIVATE KEY-----'
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    p, q, modulus = key.first_prime, key.second_prime, key.public.modulus
    d = pow(key.exponent, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p,
        q,
        d,
        d % (p - 1),
        d % (q - 1),
        pow(q, -1, p),
        rsa.RSAPublicNumbers(key.exponent, modulus),
    )
    return numbers.private_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def load_private_key(pem: bytes) -> RsaPrivateKey:
    """The private key in a PEM file, of the size that issuers need.

    >>> key = new_private_key()
    >>> load_private_key(private_pem(key)) == key
    True
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise MissingExtra("a key", "tokens") from None
    try:
        loaded = load_pem_private_key(pem, None)
    # TypeError: the file is encrypted.
    except (ValueError, TypeError, UnsupportedAlgorithm):
        rule = "must be a private key in PEM, without a password"
        raise InvalidParameter("key", rule, "something else") from None
    if not isinstance(loaded, RSAPrivateKey):
        raise InvalidParameter("key", RULE, "a key of another kind")
    numbers = loaded.private_numbers()
    key = RsaPrivateKey(numbers.p, numbers.q, numbers.public_numbers.e)
    IssuerKey.of(key)
    return key
