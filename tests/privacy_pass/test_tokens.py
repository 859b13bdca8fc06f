"""Challenges, keys, requests and tokens are those of RFC 9577 and RFC 9578."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import InvalidParameter
from unpoison.privacy_pass import (
    IssuerKey,
    PendingToken,
    Token,
    TokenChallenge,
    TokenRequest,
    blind_signature,
    campaign_challenge,
    from_base64url,
    load_private_key,
    new_private_key,
    to_base64url,
)
from unpoison.privacy_pass.token import TOKEN_BYTES

STORED = json.loads(
    (Path(__file__).parent / "vectors" / "rfc9578.json").read_text(encoding="utf-8")
)
"""Appendix A.2 of RFC 9578: with a redemption context, and without."""
PRIVATE = load_private_key(bytes.fromhex(STORED["skS"]))
KEY = IssuerKey.of(PRIVATE)
VECTORS = [
    {name: bytes.fromhex(text) for name, text in vector.items()} for vector in STORED["vectors"]
]
vectors = pytest.mark.parametrize("vector", VECTORS, ids=["context", "no context"])


def pending(vector: dict[str, bytes]) -> PendingToken:
    digest = TokenChallenge.decode(vector["token_challenge"]).digest
    factor = int.from_bytes(vector["blind"], "big")
    return PendingToken(KEY, digest, vector["nonce"], vector["salt"], factor)


def test_the_key_is_encoded_and_named_as_in_the_standard() -> None:
    assert KEY.der.hex() == STORED["pkS"]
    assert IssuerKey.from_der(bytes.fromhex(STORED["pkS"])) == KEY
    assert KEY.id == Token.decode(VECTORS[0]["token"]).key_id


@vectors
def test_the_challenge_is_that_of_the_standard(vector: dict[str, bytes]) -> None:
    challenge = TokenChallenge.decode(vector["token_challenge"])
    assert (challenge.issuer, challenge.origins) == ("issuer.example", ("origin.example",))
    assert challenge.encode() == vector["token_challenge"]
    assert challenge.digest == Token.decode(vector["token"]).challenge_digest


@vectors
def test_the_request_is_that_of_the_standard(vector: dict[str, bytes]) -> None:
    assert pending(vector).request().encode() == vector["token_request"]


@vectors
def test_the_response_is_that_of_the_standard(vector: dict[str, bytes]) -> None:
    request = TokenRequest.decode(vector["token_request"])
    assert blind_signature(PRIVATE, request) == vector["token_response"]


@vectors
def test_the_token_is_that_of_the_standard(vector: dict[str, bytes]) -> None:
    token = pending(vector).finalise(vector["token_response"])
    assert token.encode() == vector["token"]
    assert token.is_valid(KEY, TokenChallenge.decode(vector["token_challenge"]))


def test_a_token_is_valid_for_its_key_and_challenge_alone() -> None:
    token = Token.decode(VECTORS[0]["token"])
    right, other = (TokenChallenge.decode(vector["token_challenge"]) for vector in VECTORS)
    assert token.is_valid(KEY, right)
    assert not token.is_valid(KEY, other)
    assert not token.is_valid(IssuerKey.of(new_private_key()), right)


@given(place=st.integers(0, 8 * TOKEN_BYTES - 1))
def test_no_bit_of_a_token_can_be_changed(place: int) -> None:
    data = bytearray(VECTORS[0]["token"])
    data[place // 8] ^= 1 << place % 8
    challenge = TokenChallenge.decode(VECTORS[0]["token_challenge"])
    try:
        changed = Token.decode(bytes(data))
    except InvalidParameter:
        return  # Of another type.
    assert not changed.is_valid(KEY, challenge)


def test_another_signature_of_the_same_nonce_is_the_same_token() -> None:
    challenge = TokenChallenge("issuer.example")
    one = PendingToken.new(KEY, challenge)
    two = PendingToken(KEY, challenge.digest, one.nonce, bytes(48), one.factor)
    tokens = [item.finalise(blind_signature(PRIVATE, item.request())) for item in (one, two)]
    assert tokens[0].signature != tokens[1].signature
    assert tokens[0].spending_hash == tokens[1].spending_hash


def test_the_context_of_a_campaign_is_its_own() -> None:
    one, two = (campaign_challenge(name, "login.example") for name in ("a1", "a2"))
    assert one.digest != two.digest
    assert campaign_challenge("a1", "login.example", ("c.example",)).digest != one.digest
    assert campaign_challenge("a1", "other.example").digest != one.digest


@given(st.binary(max_size=80))
def test_bytes_that_are_no_challenge_are_refused_by_name(data: bytes) -> None:
    try:
        challenge = TokenChallenge.decode(b"\x00\x02" + data)
    except InvalidParameter:
        return
    assert challenge.encode() == b"\x00\x02" + data


@pytest.mark.parametrize(
    "name",
    ["", "https://login.example", "login.example/", "Login.example", "a b", "a,b", "é.example"],
)
def test_names_of_issuers_and_origins_are_hosts(name: str) -> None:
    with pytest.raises(InvalidParameter, match="issuer name must be a host name"):
        TokenChallenge(name)
    with pytest.raises(InvalidParameter, match="origin must be a host name"):
        TokenChallenge("login.example", origins=(name,))


@pytest.mark.parametrize("data", [b"", bytes(TOKEN_BYTES), VECTORS[0]["token"] + b"!"])
def test_bytes_that_are_no_token_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidParameter, match="token must be 354 bytes of type 2"):
        Token.decode(data)


@pytest.mark.parametrize("data", [b"", bytes(259), VECTORS[0]["token_request"][:-1]])
def test_bytes_that_are_no_request_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidParameter, match="token request must be 259 bytes of type 2"):
        TokenRequest.decode(data)


@pytest.mark.parametrize(
    "der", [b"", KEY.der[:-1], KEY.der + b"!", KEY.der[:-1] + b"\x03", b"!" + KEY.der[1:]]
)
def test_keys_in_another_encoding_are_refused(der: bytes) -> None:
    with pytest.raises(InvalidParameter, match="in the encoding of RFC 9578"):
        IssuerKey.from_der(der)


def test_keys_of_other_sizes_and_kinds_are_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    keys: list[PublicKeyTypes] = [
        rsa.generate_private_key(65537, 1024).public_key(),
        rsa.generate_private_key(3, 2048).public_key(),
        ec.generate_private_key(ec.SECP256R1()).public_key(),
    ]
    for key in keys:
        pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        with pytest.raises(InvalidParameter, match="key must be an RSA key of 2048 bits"):
            IssuerKey.from_pem(pem)
    for text in ("", "no key", KEY.pem.replace("A", "é", 1)):
        with pytest.raises(InvalidParameter, match="key must be a public key in PEM"):
            IssuerKey.from_pem(text)
    with pytest.raises(InvalidParameter, match="key must be a private key in PEM"):
        load_private_key(KEY.pem.encode())


def test_a_key_marked_for_any_use_is_the_same_key() -> None:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_public_key,
    )

    loaded = load_pem_public_key(KEY.pem.encode())
    plain = loaded.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    assert plain != KEY.pem
    assert IssuerKey.from_pem(plain) == KEY


@given(st.binary())
def test_base64url_comes_back(data: bytes) -> None:
    text = to_base64url(data)
    assert from_base64url(text) == from_base64url(text.rstrip("=")) == data


@pytest.mark.parametrize("text", ["a", "a+b/", "a b ", "YQ=\n", "YR", "é"])
def test_a_value_has_one_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="must be base64url"):
        from_base64url(text)


def test_nothing_secret_is_shown() -> None:
    item = PendingToken.new(KEY, TokenChallenge("login.example"))
    for secret in (item.nonce.hex(), str(item.factor), repr(item.nonce)):
        assert secret not in repr(item)
