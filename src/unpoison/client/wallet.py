"""The tokens of a device: kept before they are signed and after, so that none is lost or doubled.

A row begins with a pending token, which is written before the issuer is asked. If the answer is
lost, the identical request is sent again, and the issuer counts it once. The token that it becomes
is the only one that the campaign's collector is ever shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from unpoison.privacy_pass import IssuerKey, PendingToken, Token, from_base64url, to_base64url

Transaction = Callable[[], AbstractContextManager[sqlite3.Connection]]
Key = tuple[str, str]
"""A collector's address and a campaign's id."""
WHERE_KEY = "WHERE collector = ? AND campaign = ?"


@dataclass(frozen=True)
class HeldToken:
    """A row of the wallet: a pending token, and the token that it became, if it has.

    >>> from unpoison.privacy_pass import TokenChallenge, new_private_key
    >>> key = IssuerKey.of(new_private_key())
    >>> HeldToken(PendingToken.new(key, TokenChallenge("login.example")), None).token is None
    True
    """

    pending: PendingToken
    token: str | None = field(repr=False)


class Wallet:
    """The table of tokens of a ledger's file.

    >>> from unpoison.client.ledger import Ledger
    >>> from unpoison.privacy_pass import TokenChallenge, new_private_key
    >>> key, place = IssuerKey.of(new_private_key()), ("https://c.example", "k3v9")
    >>> with Ledger(None) as ledger:
    ...     first, second = (PendingToken.new(key, TokenChallenge("a.example")) for _ in range(2))
    ...     kept = [ledger.wallet.begin(place, pending) for pending in (first, second)]
    >>> [held.pending == first for held in kept]
    [True, True]
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def held(self, key: Key) -> HeldToken | None:
        """The token of a campaign, pending or signed."""
        with self._transaction() as database:
            return _held(database, key)

    def begin(self, key: Key, pending: PendingToken) -> HeldToken:
        """Keep a pending token; if there is one for the campaign already, that one stands."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR IGNORE INTO tokens (collector, campaign, key, pending) "
                "VALUES (?, ?, ?, ?)",
                (*key, pending.key.der.hex(), pending.to_hex()),
            )
            return _held(database, key) or HeldToken(pending, None)

    def record(self, key: Key, token: Token) -> str:
        """Keep a signed token; returns the text that is shown to the collector."""
        text = to_base64url(token.encode())
        with self._transaction() as database:
            database.execute(f"UPDATE tokens SET token = ? {WHERE_KEY}", (text, *key))
        return text


def _held(database: sqlite3.Connection, key: Key) -> HeldToken | None:
    statement = f"SELECT key, pending, token FROM tokens {WHERE_KEY}"
    row = database.execute(statement, key).fetchone()
    if row is None:
        return None
    issuer_key, pending, token = row
    if token:
        Token.decode(from_base64url(token))
    stored = PendingToken.from_hex(IssuerKey.from_der(bytes.fromhex(issuer_key)), pending)
    return HeldToken(stored, token or None)
