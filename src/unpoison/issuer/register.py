"""The register of an issuer: its accounts, and how many tokens each has had of each key.

A key that replaces another counts together with it: who has had a token of the old key gets none of
the new one.

Accounts and requests are stored as SHA-256 hashes. Account tokens have 256 random bits and blinded
messages 2048, so that no dictionary leads back from a hash.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from unpoison.errors import InvalidFile
from unpoison.issuer.refusals import Refusal
from unpoison.system.closing import Closing
from unpoison.system.sqlite_transactions import exclusive_transaction

ACCOUNT_BYTES = 32
"""256 random bits: the token of an account cannot be guessed."""
APPLICATION_ID = 0x756E7069
"""SQLite's mark of whose file it is: the letters unpi."""
SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE IF NOT EXISTS accounts (account BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS issued (
    account BLOB NOT NULL REFERENCES accounts,
    key_id BLOB NOT NULL,
    request BLOB NOT NULL,
    PRIMARY KEY (account, key_id, request)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replaced (
    key_id BLOB PRIMARY KEY,
    counts_as BLOB NOT NULL
) WITHOUT ROWID;
"""


class Register(Closing):
    """Accounts and what was issued to them, in an SQLite file; without a path in memory.

    >>> with Register(None) as register:
    ...     [account] = register.add_accounts(1)
    ...     register.count(account, b"key", b"request", most=1)
    ...     register.count(account, b"key", b"request", most=1)  # The same request again.
    ...     register.count(account, b"key", b"another", most=1)
    Traceback (most recent call last):
        ...
    unpoison.issuer.refusals.Refusal: This account has had all its tokens of this key.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self._lock = path, Lock()
        self._connection = _open(path)

    def add_accounts(self, count: int) -> list[str]:
        """Make accounts; returns their tokens, which are not stored and cannot be read again."""
        tokens = [secrets.token_hex(ACCOUNT_BYTES) for _ in range(count)]
        with self._transaction() as database:
            database.executemany(
                "INSERT INTO accounts VALUES (?)", [(_hash(token),) for token in tokens]
            )
        return tokens

    def remove_accounts(self, tokens: Sequence[str]) -> int:
        """Remove accounts and what was counted for them; returns how many there were.

        >>> with Register(None) as register:
        ...     [account] = register.add_accounts(1)
        ...     register.remove_accounts([account, "nobody"]), register.knows(account)
        (1, False)
        """
        accounts = [(_hash(token),) for token in tokens]
        with self._transaction() as database:
            database.executemany("DELETE FROM issued WHERE account = ?", accounts)
            return database.executemany("DELETE FROM accounts WHERE account = ?", accounts).rowcount

    def replace_key(self, old: bytes, new: bytes) -> None:
        """Count tokens of the key with the id `new` together with those of the key `old`.

        >>> with Register(None) as register:
        ...     [account] = register.add_accounts(1)
        ...     register.replace_key(b"old", b"new")
        ...     register.count(account, b"old", b"request", most=1)
        ...     register.count(account, b"new", b"another", most=1)
        Traceback (most recent call last):
            ...
        unpoison.issuer.refusals.Refusal: This account has had all its tokens of this key.
        """
        with self._transaction() as database:
            row = (new, self._counts_as(old))
            database.execute("INSERT INTO replaced VALUES (?, ?)", row)

    def knows(self, token: str) -> bool:
        """Whether there is an account with this token."""
        with self._lock:
            return self._has_account(_hash(token))

    def count(self, token: str, key_id: bytes, request: bytes, most: int) -> None:
        """Count a request for a token of a key, unless the same one was counted before.

        The request is counted before it is answered. If the answer is lost, the device sends the
        identical request again, and gets the same signature.
        """
        account, digest = _hash(token), hashlib.sha256(request).digest()
        with self._transaction() as database:
            if not self._has_account(account):
                raise Refusal("unauthorized")
            key_id = self._counts_as(key_id)
            issued = {
                bytes(row[0])
                for row in database.execute(
                    "SELECT request FROM issued WHERE account = ? AND key_id = ?",
                    (account, key_id),
                )
            }
            if digest in issued:
                return
            if len(issued) >= most:
                raise Refusal("no-tokens-left")
            database.execute("INSERT INTO issued VALUES (?, ?, ?)", (account, key_id, digest))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _has_account(self, account: bytes) -> bool:
        known = "SELECT 1 FROM accounts WHERE account = ?"
        return self._connection.execute(known, (account,)).fetchone() is not None

    def _counts_as(self, key_id: bytes) -> bytes:
        """The id of the first key of those that replaced one another."""
        replaced = "SELECT counts_as FROM replaced WHERE key_id = ?"
        row = self._connection.execute(replaced, (key_id,)).fetchone()
        return key_id if row is None else bytes(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # Exclusive: two requests must not both be an account's last one.
        with self._lock, exclusive_transaction(self._connection) as connection:
            yield connection


def _open(path: Path | None) -> sqlite3.Connection:
    name = ":memory:" if path is None else str(path)
    try:
        if path is not None:
            # Readable by the issuer's user only, from the moment it exists.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        # The lock takes the place of sqlite3's check for one thread.
        connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        _check_is_register(connection)
        # Accounts that are removed are overwritten, not only marked as free.
        connection.execute("PRAGMA secure_delete = ON")
        connection.executescript(SCHEMA)
    except (OSError, sqlite3.Error) as fault:
        raise InvalidFile(name, f"cannot be opened as a register ({fault})") from None
    return connection


def _check_is_register(connection: sqlite3.Connection) -> None:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and mark != APPLICATION_ID:
        connection.close()
        raise sqlite3.DatabaseError("it is a database of something else")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
