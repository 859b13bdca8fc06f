"""A device's record of what it has spent: one row for each campaign of each collector, on disk.

A row begins as `enrolled` (the device has a secret, nothing is spent), becomes `drawn` (the noisy
cells and what they spend are recorded in one transaction) and ends as `sent`.

Cells are recorded before anything is sent. If they were sent first, a device that died in between
would draw again, and the collector would have two independent reports of one value for the budget
of one. A device that dies after recording sends the same cells later. The value itself is never
here.

Budgets are exact fractions, stored as text. Sums of floats drift: 0.1 + 0.2 is more than 0.3, and a
lifetime budget could be refused too early, or overspent.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from threading import RLock

from unpoison.client.ledger_file import default_ledger_path, ledger_path, open_ledger_file
from unpoison.client.wallet import Wallet
from unpoison.errors import BudgetExceeded, InvalidFile
from unpoison.system.closing import Closing
from unpoison.system.sqlite_transactions import exclusive_transaction

SECRET_BYTES = 32
"""256 random bits: a device's secret cannot be guessed, and two devices never draw the same one."""
COLUMNS = "device, state, fingerprint, tier, ticket, groups, cells, epsilon, question, parameters"
WHERE_KEY = "WHERE collector = ? AND campaign = ?"


@dataclass(frozen=True)
class Draw:
    """Noisy cells, the ticket and groups that they are for, and the budget that they spend.

    >>> Draw("ticket", (2,), (17, 4011), Fraction(1, 2)).cells
    (17, 4011)
    """

    ticket: str = field(repr=False)
    groups: tuple[int, ...]
    cells: tuple[int, ...]
    epsilon: Fraction
    """What the cells spend; 0 for cells that were drawn for an earlier campaign."""
    question: str | None = None
    parameters: str = ""
    """What the draw depended on, by `draw_parameters`; cells are only ever sent again under equal
    ones."""


@dataclass(frozen=True)
class Entry:
    """A row of the ledger: the state of a device in one campaign.

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
        """The primary key of the row."""
        return self.collector, self.campaign


class Ledger(Closing):
    """The ledger of a device, in a file; with None for a path in memory, for tests and simulations.

    >>> with Ledger(None) as ledger:
    ...     entry = ledger.enrol("https://collector.example", "k3v9", "f00", tier=0)
    ...     recorded = ledger.record(entry, Draw("t", (2,), (17,), Fraction(1, 2)), Fraction(8))
    ...     ledger.spent(), recorded.state
    (Fraction(1, 2), 'drawn')
    """

    def __init__(
        self, path: str | Path | None, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.path = None if path is None else ledger_path(path)
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = RLock()
        self._connection = open_ledger_file(self.path)

    @classmethod
    def default(cls) -> Ledger:
        """The user's own ledger, in the folder where the platform keeps programs' state."""
        path = default_ledger_path()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise InvalidFile(path, f"cannot be made ({fault.strerror})") from None
        return cls(path)

    def entry(self, collector: str, campaign: str) -> Entry | None:
        """The row of a campaign; None if the device has not enrolled in it."""
        with self._guarded():
            return self._entry((collector, campaign))

    def enrol(self, collector: str, campaign: str, fingerprint: str, tier: int) -> Entry:
        """The row of a campaign; if there is none, a new one with a new secret."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR IGNORE INTO entries "
                "(collector, campaign, device, state, fingerprint, tier, enrolled_at) "
                "VALUES (?, ?, ?, 'enrolled', ?, ?, ?)",
                (collector, campaign, _new_secret(), fingerprint, tier, self._now()),
            )
            return self._existing_entry((collector, campaign))

    def record(
        self,
        entry: Entry,
        draw: Draw,
        lifetime: Fraction,
        collector: Fraction | None = None,
        *,
        reuse: bool = False,
    ) -> Entry:
        """Record a draw and what it spends; if there is one already, that one stands.

        With `reuse`, the cells that this collector has had for the same question under the same
        parameters take the place of the new ones, and spend nothing. Budgets are checked within the
        transaction, so that two processes cannot both spend the last of them.
        """
        with self._transaction() as database:
            if self._existing_entry(entry.key).state == "enrolled":
                earlier = self._memoised_cells(entry.collector, draw) if reuse else None
                if earlier is None:
                    _check_left("lifetime_epsilon", draw, lifetime, self._spent())
                    if collector is not None:
                        at_collector = self._spent(entry.collector)
                        _check_left("collector_epsilon", draw, collector, at_collector)
                else:
                    draw = replace(draw, cells=earlier, epsilon=Fraction(0))
                database.execute(
                    "UPDATE entries SET state = 'drawn', ticket = ?, groups = ?, cells = ?, "
                    f"epsilon = ?, question = ?, parameters = ?, drawn_at = ? {WHERE_KEY}",
                    (
                        draw.ticket,
                        json.dumps(draw.groups),
                        json.dumps(draw.cells),
                        str(draw.epsilon),
                        draw.question,
                        draw.parameters,
                        self._now(),
                        *entry.key,
                    ),
                )
            return self._existing_entry(entry.key)

    def memoised(self, collector: str, question: str | None) -> set[str]:
        """The parameters under which cells were drawn for a collector that asked a question."""
        with self._guarded():
            rows = self._connection.execute(
                "SELECT parameters FROM entries WHERE collector = ? AND question = ? "
                "AND state != 'enrolled'",
                (collector, question),
            )
            return {text for (text,) in rows}

    def replace_ticket(self, entry: Entry, ticket: str) -> Entry:
        """Record another ticket for the same cells."""
        with self._transaction() as database:
            database.execute(f"UPDATE entries SET ticket = ? {WHERE_KEY}", (ticket, *entry.key))
            return self._existing_entry(entry.key)

    def mark_sent(self, entry: Entry) -> Entry:
        """Record that the collector has accepted the cells; a row without cells stays as it is."""
        with self._transaction() as database:
            database.execute(
                f"UPDATE entries SET state = 'sent', sent_at = ? {WHERE_KEY} AND state = 'drawn'",
                (self._now(), *entry.key),
            )
            return self._existing_entry(entry.key)

    def spent(self, collector: str | None = None) -> Fraction:
        """The budget that all campaigns, or all of one collector, have spent, exactly."""
        with self._guarded():
            return self._spent(collector)

    @property
    def wallet(self) -> Wallet:
        """The tokens in the same file."""
        return Wallet(self._transaction)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _spent(self, collector: str | None = None) -> Fraction:
        rows = self._connection.execute(
            "SELECT epsilon FROM entries WHERE collector = coalesce(?, collector)", (collector,)
        ).fetchall()
        return sum((_spent_fraction(text) for (text,) in rows), Fraction(0))

    def _memoised_cells(self, collector: str, draw: Draw) -> tuple[int, ...] | None:
        """The first cells that a collector got for a question under the parameters of a draw."""
        # A question that is NULL equals none, and rows of the first format have no parameters.
        row = self._connection.execute(
            "SELECT cells FROM entries WHERE collector = ? AND question = ? AND parameters = ? "
            "AND state != 'enrolled' ORDER BY drawn_at, rowid LIMIT 1",
            (collector, draw.question, draw.parameters),
        ).fetchone()
        return None if row is None else _whole_numbers(row[0])

    def _existing_entry(self, key: tuple[str, str]) -> Entry:
        entry = self._entry(key)
        if entry is None:
            raise ValueError("an entry has gone")
        return entry

    def _entry(self, key: tuple[str, str]) -> Entry | None:
        row = self._connection.execute(f"SELECT {COLUMNS} FROM entries {WHERE_KEY}", key).fetchone()
        if row is None:
            return None
        device, state, fingerprint, tier, ticket, groups, cells, epsilon, *memo = row
        numbers = _whole_numbers(groups), _whole_numbers(cells)
        draw = Draw(ticket, *numbers, _spent_fraction(epsilon), *memo)
        return Entry(*key, device, state, fingerprint, tier, draw)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: committed whole or rolled back, and exclusive among processes."""
        # Exclusive: what is spent cannot change between the check of a budget and the draw that it
        # allows.
        with self._guarded(), exclusive_transaction(self._connection) as connection:
            yield connection

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let one thread at a time use the file; content that makes no sense raises InvalidFile."""
        with self._lock:
            try:
                yield
            except BudgetExceeded:
                raise
            except (sqlite3.Error, ValueError, TypeError, ZeroDivisionError) as fault:
                path = self.path or "ledger in memory"
                raise InvalidFile(path, f"cannot be used as a ledger ({fault})") from None

    def _now(self) -> str:
        return self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_left(limit: str, draw: Draw, most: Fraction, spent: Fraction) -> None:
    if draw.epsilon > most - spent:
        raise BudgetExceeded(limit, draw.epsilon, max(most - spent, Fraction(0)))


def _new_secret() -> str:
    return secrets.token_hex(SECRET_BYTES)


def _spent_fraction(text: str) -> Fraction:
    spent = Fraction(text)
    if spent < 0:
        raise ValueError("the spent budget must not be negative")
    return spent


def _whole_numbers(text: str) -> tuple[int, ...]:
    numbers = json.loads(text)
    if not isinstance(numbers, list) or any(type(number) is not int for number in numbers):
        raise ValueError("must be a JSON list of whole numbers")
    return tuple(numbers)
