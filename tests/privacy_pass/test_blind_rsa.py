"""Blind RSA signatures are those of RFC 9474, and reveal nothing to the issuer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unpoison import InvalidParameter
from unpoison.privacy_pass import RsaPrivateKey
from unpoison.privacy_pass.blind_rsa import SALT_BYTES, encode_pss

VECTOR: dict[str, str] = json.loads(
    (Path(__file__).parent / "vectors" / "rfc9474.json").read_text(encoding="utf-8")
)
"""Appendix A.3 of RFC 9474: RSABSSA-SHA384-PSS-Deterministic with a key of 4096 bits."""
MESSAGE, SALT = bytes.fromhex(VECTOR["msg"]), bytes.fromhex(VECTOR["salt"])
PRIVATE = RsaPrivateKey(*(int(VECTOR[name], 16) for name in ("p", "q", "e")))
PUBLIC = PRIVATE.public
FACTOR = pow(int(VECTOR["inv"], 16), -1, PUBLIC.modulus)
SMALL = RsaPrivateKey.generate(1024)


def test_the_message_is_blinded_as_in_the_standard() -> None:
    assert PUBLIC.blind(MESSAGE, SALT, FACTOR).hex() == VECTOR["blinded_msg"]


def test_the_blinded_message_is_signed_as_in_the_standard() -> None:
    assert PRIVATE.blind_sign(bytes.fromhex(VECTOR["blinded_msg"])).hex() == VECTOR["blind_sig"]


def test_the_signature_is_that_of_the_standard() -> None:
    signature = PUBLIC.finalise(MESSAGE, bytes.fromhex(VECTOR["blind_sig"]), FACTOR)
    assert signature.hex() == VECTOR["sig"]
    assert PUBLIC.verify(MESSAGE, signature)
    assert not PUBLIC.verify(MESSAGE + b"!", signature)


def test_openssl_accepts_the_encoding_for_any_size() -> None:
    for bits in (1024, 1031):
        key = RsaPrivateKey.generate(bits)
        encoded = encode_pss(b"message", key.public.modulus.bit_length() - 1, SALT)
        signature = key.raw_sign(int.from_bytes(encoded, "big"))
        assert key.public.verify(b"message", signature.to_bytes(key.public.length, "big"))


def test_blinding_of_the_private_operation_changes_no_result() -> None:
    numbers = range(2, 12)
    modulus = SMALL.public.modulus
    exponent = pow(65537, -1, (SMALL.first_prime - 1) * (SMALL.second_prime - 1))
    assert [SMALL.raw_sign(number) for number in numbers] == [
        pow(number, exponent, modulus) for number in numbers
    ]


def test_two_blinded_messages_of_one_message_have_nothing_in_common() -> None:
    key, salt = SMALL.public, bytes(SALT_BYTES)
    assert key.blind(b"message", salt, key.new_factor()) != key.blind(
        b"message", salt, key.new_factor()
    )


def test_any_signature_could_be_of_any_blinded_message() -> None:
    """For a blinded message and another message's signature there is a factor that joins them."""
    key, salt = SMALL.public, bytes(SALT_BYTES)
    blinded = int.from_bytes(key.blind(b"one", salt, key.new_factor()), "big")
    other = int.from_bytes(key.blind(b"two", salt, 1), "big")
    factor = SMALL.raw_sign(blinded * pow(other, -1, key.modulus) % key.modulus)
    assert int.from_bytes(key.blind(b"two", salt, factor), "big") == blinded


def test_a_signature_of_another_message_or_key_is_not_used() -> None:
    key, salt, factor = SMALL.public, bytes(SALT_BYTES), SMALL.public.new_factor()
    signature = SMALL.blind_sign(key.blind(b"message", salt, factor))
    with pytest.raises(InvalidParameter, match="blind signature must be one of this key"):
        key.finalise(b"another", signature, factor)
    foreign = RsaPrivateKey.generate(1024).blind_sign(bytes(127) + b"\x02")
    with pytest.raises(InvalidParameter, match="blind signature must be one of this key"):
        key.finalise(b"message", foreign, factor)
    with pytest.raises(InvalidParameter, match="must have 128 bytes"):
        key.finalise(b"message", signature[:-1], factor)


@pytest.mark.parametrize("blinded", [b"", bytes(127), bytes(129), b"\xff" * 128])
def test_only_numbers_below_the_modulus_are_signed(blinded: bytes) -> None:
    with pytest.raises(InvalidParameter, match="blinded message must have 128 bytes"):
        SMALL.blind_sign(blinded)


def test_primes_are_not_shown() -> None:
    assert str(SMALL.first_prime) not in repr(SMALL)
