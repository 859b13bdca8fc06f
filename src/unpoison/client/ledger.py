"""What a device has spent, on disk: one row for each campaign of each collector.

A row begins as `enrolled` (the device has a secret, nothing is spent), becomes `drawn` (the noisy
cells and what they spend are written down in one transaction, before anything is sent) and ends as
`sent`. Cells are never drawn anew: whatever happens afterwards, the same ones are sent. The value
itself is never here.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from threading import RLock

from unpoison.client.ledger_file import connect, default_path
from unpoison.errors import BudgetExceeded, InvalidFile

SECRET_BYTES = 32
COLUMNS = "device, state, fingerprint, tier, ticket, groups, cells, epsilon"
ROW = "WHERE collector = ? AND campaign = ?"


@dataclass(frozen=True)
class Draw:
    """Noisy cells with the ticket and groups that they are for, and what they spend.

    >>> Draw("ticket", (2,), (17, 4011), Fraction(1, 2)).cells
    (17, 4011)
    """

    ticket: str = field(repr=False)
    groups: tuple[int, ...]
    cells: tuple[int, ...]
    epsilon: Fraction


@dataclass(frozen=True)
class Entry:
    """A row: how far a device has come in a campaign.

    >>> with Ledger(None) as ledger:
    ...     ledger.enrol("https://collector.example", "k3v9", "f00", tier=0).state
    'enrolled'
    """

    collector: str
    campaign: str
    device: str = field(repr=False)
    state: str
    fingerprint: str
    tier: int
    draw: Draw

    @property
    def key(self) -> tuple[str, str]:
        """What a row is found by."""
        return self.collector, self.campaign


class Ledger:
    """All that a device has spent; in memory, for tests and simulations, without a path.

    >>> with Ledger(None) as ledger:
    ...     entry = ledger.enrol("https://collector.example", "k3v9", "f00", tier=0)
    ...     drawn = ledger.record(entry, Draw("t", (2,), (17,), Fraction(1, 2)), Fraction(8))
    ...     ledger.spent(), drawn.state
    (Fraction(1, 2), 'drawn')
    """

    def __init__(
        self, path: str | Path | None, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = RLock()
        self._connection = connect(self.path)

    @classmethod
    def default(cls) -> Ledger:
        """The user's own ledger, in the folder where the platform keeps such things."""
        path = default_path()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise InvalidFile(path, f"cannot be made ({fault.strerror})") from None
        return cls(path)

    def entry(self, collector: str, campaign: str) -> Entry | None:
        """How far the device has come in a campaign; nothing if it has not begun."""
        with self._guarded():
            return self._entry((collector, campaign))

    def enrol(self, collector: str, campaign: str, fingerprint: str, tier: int) -> Entry:
        """The campaign's entry; if there is none, a new one with a new secret."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR IGNORE INTO entries "
                "(collector, campaign, device, state, fingerprint, tier, enrolled_at) "
                "VALUES (?, ?, ?, 'enrolled', ?, ?, ?)",
                (collector, campaign, _secret(), fingerprint, tier, self._now()),
            )
            return self._known((collector, campaign))

    def record(self, entry: Entry, draw: Draw, lifetime: Fraction) -> Entry:
        """Write down a draw and what it spends; if there is one already, that one stands."""
        with self._transaction() as database:
            if self._known(entry.key).state == "enrolled":
                left = lifetime - self._spent()
                if draw.epsilon > left:
                    raise BudgetExceeded("lifetime_epsilon", draw.epsilon, left)
                database.execute(
                    "UPDATE entries SET state = 'drawn', ticket = ?, groups = ?, cells = ?, "
                    f"epsilon = ?, drawn_at = ? {ROW}",
                    (
                        draw.ticket,
                        json.dumps(draw.groups),
                        json.dumps(draw.cells),
                        str(draw.epsilon),
                        self._now(),
                        *entry.key,
                    ),
                )
            return self._known(entry.key)

    def renew(self, entry: Entry, ticket: str) -> Entry:
        """Take another ticket for the same cells."""
        with self._transaction() as database:
            database.execute(f"UPDATE entries SET ticket = ? {ROW}", (ticket, *entry.key))
            return self._known(entry.key)

    def sent(self, entry: Entry) -> Entry:
        """Note that the collector has the cells."""
        with self._transaction() as database:
            database.execute(
                f"UPDATE entries SET state = 'sent', sent_at = ? {ROW} AND state = 'drawn'",
                (self._now(), *entry.key),
            )
            return self._known(entry.key)

    def spent(self) -> Fraction:
        """What all campaigns together have spent, exactly."""
        with self._guarded():
            return self._spent()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spent(self) -> Fraction:
        rows = self._connection.execute("SELECT epsilon FROM entries").fetchall()
        return sum((_fraction(text) for (text,) in rows), Fraction(0))

    def _known(self, key: tuple[str, str]) -> Entry:
        found = self._entry(key)
        if found is None:
            raise ValueError("an entry has gone")
        return found

    def _entry(self, key: tuple[str, str]) -> Entry | None:
        row = self._connection.execute(f"SELECT {COLUMNS} FROM entries {ROW}", key).fetchone()
        if row is None:
            return None
        device, state, fingerprint, tier, ticket, groups, cells, epsilon = row
        draw = Draw(ticket, _whole_numbers(groups), _whole_numbers(cells), _fraction(epsilon))
        return Entry(*key, device, state, fingerprint, tier, draw)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and one process at a time."""
        with self._guarded():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One thread at a time; whatever is wrong with the file is a fault of the file."""
        with self._lock:
            try:
                yield
            except BudgetExceeded:
                raise
            except (sqlite3.Error, ValueError, TypeError, ZeroDivisionError) as fault:
                place = self.path or "ledger in memory"
                raise InvalidFile(place, f"cannot be used as a ledger ({fault})") from None

    def _now(self) -> str:
        return self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")


def _secret() -> str:
    return secrets.token_hex(SECRET_BYTES)


def _fraction(text: str) -> Fraction:
    number = Fraction(text)
    if number < 0:
        raise ValueError("what is spent must not be negative")
    return number


def _whole_numbers(text: str) -> tuple[int, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or any(type(each) is not int for each in found):
        raise ValueError("a list of numbers is not one")
    return tuple(found)
