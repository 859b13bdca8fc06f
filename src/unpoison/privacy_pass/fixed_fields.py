"""Structures of fields with fixed lengths, which tokens and requests for them are."""

from __future__ import annotations

from itertools import accumulate, pairwise

from unpoison.errors import InvalidParameter
from unpoison.privacy_pass.challenge import TOKEN_TYPE

TYPE_BYTES = TOKEN_TYPE.to_bytes(2, "big")
"""The type that every structure begins with."""


def typed_fields(name: str, data: bytes, *lengths: int) -> list[bytes]:
    """The fields of a structure after its type, by their lengths in bytes.

    >>> typed_fields("token request", bytes([0, 2, 7, 8, 9]), 1, 2)
    [b'\\x07', b'\\x08\\t']
    >>> typed_fields("token request", bytes([0, 1, 7, 8, 9]), 1, 2)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: token request must be 5 bytes of type 2; received 5 bytes
    """
    edges = list(accumulate(lengths, initial=len(TYPE_BYTES)))
    if len(data) != edges[-1] or not data.startswith(TYPE_BYTES):
        rule = f"must be {edges[-1]} bytes of type {TOKEN_TYPE}"
        raise InvalidParameter(name, rule, f"{len(data)} bytes")
    return [data[start:end] for start, end in pairwise(edges)]
