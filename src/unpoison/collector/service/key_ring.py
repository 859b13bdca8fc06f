"""The keys that a server believes, and whether the other servers of its database have them too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection

from unpoison.collector.campaigns.tickets import TicketSigner
from unpoison.collector.service.signing_keys import KeyFile, SigningKey, ticket_signer
from unpoison.collector.storage.key_register import (
    has_tickets,
    register_keys,
    registered_keys,
    replace_registered_keys,
)
from unpoison.errors import InvalidFile

SAME, EXPECTED, DIFFERENT, UNREADABLE = "same", "expected", "different", "unreadable"
"""States of a server's keys: it has all that sign; one that will sign later is not in its file
yet; it lacks the one that signs now; its file cannot be read, and it goes on with what it read."""
WHAT_TO_DO = (
    "restore the key file, or run `unpoison serve --new-keys`, after which devices have to ask for"
    " their tickets again"
)


class KeyRing:
    """The keys of a server as its file had them when it was last read.

    >>> ring = KeyRing([SigningKey("old"), SigningKey("new", signs_from=100)])
    >>> len(ring.fingerprints), ring.state, ring.read_again()
    (2, 'same', False)
    """

    def __init__(self, keys: Sequence[SigningKey], file: KeyFile | None = None) -> None:
        self.keys, self.file = tuple(keys), file
        self.state = SAME
        # Unknown, so that the file is read once more: it may have changed since.
        self._version: tuple[int, ...] = ()

    @property
    def fingerprints(self) -> dict[str, int]:
        """The fingerprint of each key, with the moment from which it signs."""
        return {key.fingerprint: key.signs_from for key in self.keys}

    @property
    def oldest(self) -> str:
        """The secret of the first key."""
        return self.keys[0].secret

    def signer(self, now: int) -> TicketSigner:
        """A signer with the keys of this moment."""
        return ticket_signer(self.keys, now)

    def read_again(self) -> bool:
        """Read the file if it has changed; returns whether the keys are others than before."""
        if self.file is None:
            return False
        version = self._present_version(self.file)
        if version == self._version:
            return False
        before, self.keys = self.keys, tuple(self.file.load())
        self._version = version
        return self.keys != before

    @staticmethod
    def _present_version(file: KeyFile) -> tuple[int, ...]:
        """What changes whenever the file is written or replaced."""
        try:
            status = file.path.stat()
        except OSError as fault:
            raise InvalidFile(file.path, f"cannot be read ({fault.strerror})") from None
        return status.st_mtime_ns, status.st_size, status.st_ino


def key_state(registered: Mapping[str, int], held: Collection[str], now: int) -> str:
    """Compare the keys that a server holds with those that its database's servers registered.

    Only the key that signs and those that will are asked for: a server without an older one
    refuses some tickets, but their devices ask again, and get one of the newest key.

    >>> registered = {"old": 0, "present": 100, "next": 900}
    >>> [key_state(registered, held, now=500) for held in (["present", "next"], ["present"], [])]
    ['same', 'expected', 'different']
    """
    moments = sorted(registered.values())
    signing = [*moments[:1], *(moment for moment in moments if moment <= now)][-1:]
    missing = [moment for name, moment in registered.items() if name not in held]
    if any(moment in signing for moment in missing):
        return DIFFERENT
    return EXPECTED if any(moment > now for moment in missing) else SAME


def check_keys(connection: Connection, file: KeyFile, now: int) -> None:
    """Refuse a key file that is lost, or is not that of the database's other servers.

    >>> from pathlib import Path
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     register_keys(connection, {"f00d": 0})
    ...     check_keys(connection, KeyFile(Path("lost.keys")), now=0)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidFile: lost.keys: is missing, but this database has tickets ...
    """
    registered = registered_keys(connection)
    if not file.path.exists():
        if registered or has_tickets(connection):
            fault = f"is missing, but this database has tickets of its keys: {WHAT_TO_DO}"
            raise InvalidFile(file.path, fault)
        return
    held = [key.fingerprint for key in file.load()]
    if key_state(registered, held, now) == DIFFERENT:
        rule = "lacks the key that the servers of this database sign with"
        raise InvalidFile(file.path, f"{rule}: {WHAT_TO_DO}")


def claimed_keys(connection: Connection, file: KeyFile, now: int) -> KeyRing:
    """The keys to start with, registered; a file is made if this database has never had one.

    The caller's transaction must exclude other servers that start.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with TemporaryDirectory() as folder, temporary_database() as database:
    ...     with database.writing() as connection:
    ...         ring = claimed_keys(connection, KeyFile(Path(folder, "tickets.keys")), now=0)
    ...         registered_keys(connection) == ring.fingerprints
    True
    """
    check_keys(connection, file, now)
    ring = KeyRing(file.load_or_make(), file)
    register_keys(connection, ring.fingerprints)
    return ring


def accept_keys(connection: Connection, keys: Sequence[SigningKey]) -> None:
    """Make these the keys of a database's servers, in place of those that were registered.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     accept_keys(connection, [SigningKey("ab" * 32)])
    ...     len(registered_keys(connection))
    1
    """
    replace_registered_keys(connection, KeyRing(keys).fingerprints)
