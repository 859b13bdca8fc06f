"""The keys that sign tickets, in a file of their own.

They are not in the database, so that whoever gets a copy of it still cannot forge tickets.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unpoison.collector.campaigns.tickets import TicketSigner
from unpoison.errors import InvalidFile
from unpoison.system.atomic_files import name_once

KEY_BYTES = 32
"""256 bits, as long as the output of HMAC-SHA256: longer keys would not be stronger."""
PRIVATE = 0o600
"""File mode: readable and writable by the owner only."""
FINGERPRINT_TEXT = b"unpoison key fingerprint"
"""What a key's fingerprint signs. It has no full stop, so it is the text of no ticket."""
FINGERPRINT_DIGITS = 32
"""Hex digits of a fingerprint: 128 bits, by which no two keys are mistaken for one another."""
Publish = Callable[[Path, Path], None]
"""Gives a finished file its final name."""


@dataclass(frozen=True)
class SigningKey:
    """A key, and the moment from which it signs; it verifies tickets from when it is read.

    >>> key = SigningKey("ab" * 32, signs_from=1_800_000_000)
    >>> key, len(key.fingerprint)
    (SigningKey(signs_from=1800000000), 32)
    """

    secret: str = field(repr=False)
    signs_from: int = 0
    """Seconds since 1970; 0 for the first key of a file, which signs from the beginning."""

    @property
    def fingerprint(self) -> str:
        """What identifies the key without revealing it: a keyed hash of a fixed text."""
        digest = hmac.digest(self.secret.encode(), FINGERPRINT_TEXT, "sha256")
        return digest.hex()[:FINGERPRINT_DIGITS]


def signing_key(keys: Sequence[SigningKey], now: int) -> SigningKey:
    """The key that signs at a moment: the newest whose time has come, else the oldest.

    >>> old, new = SigningKey("old"), SigningKey("new", signs_from=100)
    >>> signing_key([old, new], now=99) == old, signing_key([old, new], now=100) == new
    (True, True)
    """
    return [keys[0], *(key for key in keys if key.signs_from <= now)][-1]


def ticket_signer(keys: Sequence[SigningKey], now: int) -> TicketSigner:
    """A signer that verifies with all keys, and signs with the one whose turn it is.

    >>> from unpoison.collector.campaigns.tickets import Ticket
    >>> old, new = SigningKey("old"), SigningKey("new", signs_from=100)
    >>> text = ticket_signer([old, new], now=100).sign(Ticket("k3v9x2m4q7w1", 7, 2, "aa", 0))
    >>> ticket_signer([old, new], now=99).read(text).number
    7
    """
    signing = signing_key(keys, now)
    # The signer takes the last of its keys to sign.
    return TicketSigner([*(key.secret for key in keys if key != signing), signing.secret])


class KeyFile:
    """A JSON file of keys, oldest first; all of them verify, `signing_key` says which one signs.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = KeyFile(Path(folder, "tickets.keys"))
    ...     first = file.load_or_make()
    ...     both = file.rotate(signs_from=1_800_000_000)
    ...     last = file.forget(now=1_700_000_000)
    >>> both[:1] == first, last[0].secret == both[1].secret, last[0].signs_from
    (True, True, 1700000000)
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load_or_make(self) -> list[SigningKey]:
        """The keys; if there is no file yet, it is made with one key."""
        if not self.path.exists():
            # Of servers that start together, one makes the file and the others read it: a key that
            # was replaced would have signed tickets that nobody can verify.
            with suppress(FileExistsError):
                self._save([_new_key(0)], name_once)
        return self.load()

    def rotate(self, signs_from: int) -> list[SigningKey]:
        """Add a key that signs from a moment on; tickets of the other keys stay valid."""
        keys = self.load()
        # Later than the newest there is: servers tell by these times which key is the newest.
        return self._save([*keys, _new_key(max(signs_from, keys[-1].signs_from + 1))])

    def forget(self, now: int) -> list[SigningKey]:
        """Drop all keys but the newest, which signs at once; older tickets become invalid."""
        newest = self.load()[-1]
        return self._save([SigningKey(newest.secret, min(newest.signs_from, now))])

    def load(self) -> list[SigningKey]:
        """Read and check the file."""
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))["keys"]
            keys = [_parsed_key(entry, i) for i, entry in enumerate(entries)]
        except OSError as fault:
            raise InvalidFile(self.path, f"cannot be read ({fault.strerror})") from None
        except (LookupError, TypeError, ValueError):
            raise InvalidFile(self.path, "is not a file of keys") from None
        if not keys or not all(len(key.secret) == 2 * KEY_BYTES for key in keys):
            raise InvalidFile(self.path, "is not a file of keys")
        return keys

    def _save(self, keys: list[SigningKey], publish: Publish = os.replace) -> list[SigningKey]:
        """Write to a draft, then give it its name: the file is never seen half written."""
        draft = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.part")
        entries = [{"key": key.secret, "signs_from": key.signs_from} for key in keys]
        try:
            # Private from the moment it exists: a later chmod would leave a gap.
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as file:
                file.write(json.dumps({"keys": entries}, indent=1) + "\n")
                file.flush()
                # Before it is named: after a power cut the name must not point to an empty file.
                os.fsync(file.fileno())
            publish(draft, self.path)
        finally:
            draft.unlink(missing_ok=True)
        return keys


def _new_key(signs_from: int) -> SigningKey:
    return SigningKey(secrets.token_hex(KEY_BYTES), signs_from)


def _parsed_key(entry: Any, place: int) -> SigningKey:
    """A key of the file; earlier versions wrote keys as plain texts, the newest of which signs."""
    if isinstance(entry, str):
        return SigningKey(entry, signs_from=place)
    secret, signs_from = entry["key"], entry["signs_from"]
    if not isinstance(secret, str) or not isinstance(signs_from, int):
        raise TypeError("a key is a text, with the whole number of its moment")
    return SigningKey(secret, signs_from)
