"""The ledger: exact sums, atomic changes, one draw a campaign, damaged files refused."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.waiting import HANG_SECONDS
from unpoison import BudgetExceeded, InvalidFile, InvalidParameter
from unpoison.client import Draw, Entry, Ledger, default_ledger_path
from unpoison.client.ledger_file import APPLICATION_ID

COLLECTOR = "https://collector.example"
LIFETIME = Fraction(8)
posix = pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")


def enrolled(ledger: Ledger, campaign: str = "k3v9") -> Entry:
    return ledger.enrol(COLLECTOR, campaign, "f00", tier=0)


def draw(epsilon: str = "1", cells: tuple[int, ...] = (17, 4011)) -> Draw:
    return Draw("a ticket", (2,), cells, Fraction(epsilon))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_a_row_goes_from_enrolled_to_drawn_to_sent_and_survives(path: Path) -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    with Ledger(path, lambda: now) as ledger:
        assert ledger.entry(COLLECTOR, "k3v9") is None
        first = enrolled(ledger)
        assert first.state == "enrolled"
        assert not first.draw.cells
        assert ledger.spent() == 0
        recorded = ledger.record(first, draw(), LIFETIME)
        assert (recorded.state, recorded.draw) == ("drawn", draw())
        assert recorded.device == first.device
    with Ledger(path) as ledger:
        assert ledger.entry(COLLECTOR, "k3v9") == recorded
        assert ledger.mark_sent(recorded).state == "sent"
    with Ledger(path) as ledger, closing(sqlite3.connect(path)) as file:
        assert ledger.entry(COLLECTOR, "k3v9") == ledger.mark_sent(recorded)
        times = file.execute("SELECT enrolled_at, drawn_at FROM entries").fetchone()
        assert times == ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z")


def test_what_is_drawn_is_never_drawn_again(path: Path) -> None:
    with Ledger(path) as ledger:
        entry = enrolled(ledger)
        first = ledger.record(entry, draw(), LIFETIME)
        assert ledger.record(entry, draw(cells=(1, 2)), LIFETIME) == first
        assert ledger.record(entry, draw("7", cells=(3,)), LIFETIME) == first
        sent = ledger.mark_sent(first)
        assert ledger.record(entry, draw(cells=(1, 2)), LIFETIME) == sent
        assert ledger.spent() == 1


def test_a_new_ticket_changes_nothing_else() -> None:
    with Ledger(None) as ledger:
        first = ledger.record(enrolled(ledger), draw(), LIFETIME)
        again = ledger.replace_ticket(first, "another ticket")
        assert again.draw == Draw("another ticket", (2,), (17, 4011), Fraction(1))


def test_only_what_is_drawn_can_be_sent() -> None:
    with Ledger(None) as ledger:
        assert ledger.mark_sent(enrolled(ledger)).state == "enrolled"


def test_enrolling_again_keeps_secret_and_tier() -> None:
    with Ledger(None) as ledger:
        first = enrolled(ledger)
        assert ledger.enrol(COLLECTOR, "k3v9", "ba5", tier=1) == first
        assert enrolled(ledger, "other").device != first.device
        assert ledger.enrol("https://else.example", "k3v9", "f00", 0).device != first.device


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.fractions(Fraction(1, 10**9), 3, max_denominator=10**9), max_size=8))
def test_the_total_is_exact(budgets: list[Fraction]) -> None:
    with Ledger(None) as ledger:
        for number, epsilon in enumerate(budgets):
            entry = enrolled(ledger, str(number))
            ledger.record(entry, Draw("t", (0,), (1,), epsilon), Fraction(100))
        assert ledger.spent() == sum(budgets)


def test_the_last_digit_of_the_lifetime_budget_counts() -> None:
    with Ledger(None) as ledger:
        for number, epsilon in enumerate(("0.1", "0.2")):
            ledger.record(enrolled(ledger, str(number)), draw(epsilon), Fraction("0.3"))
        entry = enrolled(ledger, "more")
        with pytest.raises(BudgetExceeded, match="lifetime_epsilon leaves epsilon 0, "):
            ledger.record(entry, draw("1/1000000000000"), Fraction("0.3"))
        assert ledger.entry(*entry.key) == entry
        assert ledger.spent() == Fraction("0.3")


def test_ledgers_that_race_for_the_last_of_the_budget_do_not_overspend(path: Path) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(6)

    def run(campaign: str) -> None:
        with Ledger(path) as ledger:
            entry = enrolled(ledger, campaign)
            start.wait(HANG_SECONDS)
            try:
                outcomes.append(ledger.record(entry, draw("0.5"), Fraction("1.2")).state)
            except BudgetExceeded:
                outcomes.append("refused")

    threads = [threading.Thread(target=run, args=(str(number),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == 2 * ["drawn"] + 4 * ["refused"]
    with Ledger(path) as ledger:
        assert ledger.spent() == 1


def test_one_ledger_serves_several_threads() -> None:
    with Ledger(None) as ledger:
        threads = [
            threading.Thread(target=lambda name=str(number): enrolled(ledger, name))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(ledger.entry(COLLECTOR, str(number)) for number in range(8))


KILLED = """
import os, sys
from fractions import Fraction
from unpoison.client import Draw, Ledger

ledger = Ledger(sys.argv[1])
entry = ledger.enrol("https://collector.example", "k3v9", "f00", 0)
if sys.argv[2] == "after":
    ledger.record(entry, Draw("t", (2,), (17,), Fraction(1)), Fraction(8))
else:
    ledger._connection.execute("BEGIN IMMEDIATE")
    ledger._connection.execute("UPDATE entries SET state = 'drawn', epsilon = '1'")
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize(("when", "spent"), [("before", 0), ("after", 1)])
def test_a_killed_process_leaves_all_of_a_draw_or_nothing(
    when: str, spent: int, path: Path
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), when], check=False)
    assert done.returncode == -9
    with Ledger(path) as ledger:
        entry = ledger.entry(COLLECTOR, "k3v9")
        assert entry is not None
        assert entry.state == ("drawn" if spent else "enrolled")
        assert ledger.spent() == spent


# The file


@posix
def test_only_the_user_may_read_the_file(path: Path) -> None:
    before = os.umask(0)
    try:
        Ledger(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_a_ledger_is_created_where_files_cannot_be_linked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with Ledger(path) as ledger:
        ledger.record(enrolled(ledger), draw(), LIFETIME)
    with Ledger(path) as ledger:
        assert ledger.spent() == 1
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("linked", [True, False])
def test_a_ledger_that_appears_meanwhile_is_not_replaced(
    linked: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(path) as ledger:
        ledger.record(enrolled(ledger), draw(), LIFETIME)
    real_exists, paths_checked = Path.exists, []

    def exists(self: Path) -> bool:
        paths_checked.append(self)
        return real_exists(self) and self != path

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(Path, "exists", exists)
    if not linked:
        monkeypatch.setattr(os, "link", refuse)
    with Ledger(path) as ledger:
        assert ledger.spent() == 1
    assert path in paths_checked


@pytest.mark.parametrize("content", [b"", b"spent: 1", 4096 * b"\x00", b"SQLite format 3\x00"])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=r"ledger\.db: .*ledger"):
        Ledger(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE entries (epsilon)")
    with pytest.raises(InvalidFile, match="is not a ledger"):
        Ledger(path)


def test_a_later_format_is_refused(path: Path) -> None:
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 3")
    with pytest.raises(InvalidFile, match="has the format 3; known is 2"):
        Ledger(path)


FIRST_FORMAT = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
CREATE TABLE entries (
    collector TEXT NOT NULL,
    campaign TEXT NOT NULL,
    device TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('enrolled', 'drawn', 'sent')),
    fingerprint TEXT NOT NULL,
    tier INTEGER NOT NULL,
    ticket TEXT NOT NULL DEFAULT '',
    groups TEXT NOT NULL DEFAULT '[]',
    cells TEXT NOT NULL DEFAULT '[]',
    epsilon TEXT NOT NULL DEFAULT '0',
    enrolled_at TEXT NOT NULL,
    drawn_at TEXT,
    sent_at TEXT,
    PRIMARY KEY (collector, campaign)
);
INSERT INTO entries VALUES ('https://collector.example', 'k3v9', 'secret', 'drawn', 'f00', 0,
    'a ticket', '[2]', '[17, 4011]', '1/2', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z', NULL);
"""
"""A ledger as the first version wrote it."""


def test_a_ledger_of_the_first_format_is_upgraded_with_all_it_holds(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.executescript(FIRST_FORMAT)
    for _ in range(2):
        with Ledger(path) as ledger:
            entry = ledger.entry(COLLECTOR, "k3v9")
            assert entry is not None
            assert (entry.state, entry.device, entry.draw) == ("drawn", "secret", draw("1/2"))
            assert ledger.spent() == Fraction(1, 2)
            assert ledger.memoised(COLLECTOR, "age") == set()
    with Ledger(path) as ledger:
        again = Draw("another", (2,), (1, 2), Fraction(1, 2), "age", "")
        recorded = ledger.record(enrolled(ledger, "new"), again, LIFETIME, reuse=True)
        assert recorded.draw == again, "a draw without parameters is never sent again"


@pytest.mark.parametrize("name", [":memory:", "file::memory:", "file:ledger.db?mode=memory"])
def test_names_that_mean_something_else_to_sqlite_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for given_name in (name, Path(name)):
        with pytest.raises(InvalidParameter, match="ledger must be the name of a file"):
            Ledger(given_name)
    assert not list(tmp_path.iterdir())


def test_a_collector_s_share_is_checked_with_the_draw(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.record(enrolled(ledger, "one"), draw("1"), LIFETIME, Fraction(2))
        ledger.record(enrolled(ledger, "two"), draw("1"), LIFETIME, Fraction(2))
        third = enrolled(ledger, "three")
        with pytest.raises(BudgetExceeded, match=r"collector_epsilon leaves epsilon 0, .* needs 1"):
            ledger.record(third, draw("1"), LIFETIME, Fraction(2))
        other = ledger.enrol("https://other.example", "one", "f00", tier=0)
        ledger.record(other, draw("1"), LIFETIME, Fraction(2))
        assert [ledger.spent(), ledger.spent(COLLECTOR)] == [Fraction(3), Fraction(2)]
        assert ledger.entry(COLLECTOR, "three") == third


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_ledger_is_refused(share: float, path: Path) -> None:
    with Ledger(path) as ledger:
        for number in range(100):
            enrolled(ledger, str(number))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InvalidFile):
        Ledger(path)


@pytest.mark.parametrize(
    "change",
    [
        "epsilon = 'much'",
        "epsilon = '-1'",
        "epsilon = '1/0'",
        "cells = '[1.5]'",
        "cells = '{'",
        "groups = '2'",
    ],
)
def test_a_row_that_makes_no_sense_is_refused(change: str, path: Path) -> None:
    with Ledger(path) as ledger:
        entry = ledger.record(enrolled(ledger), draw(), LIFETIME)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"UPDATE entries SET {change}")
        file.commit()
    with Ledger(path) as ledger, pytest.raises(InvalidFile, match="cannot be used as a ledger"):
        ledger.entry(*entry.key)
    with Ledger(path) as ledger, pytest.raises(InvalidFile, match="cannot be used as a ledger"):
        ledger.record(entry, draw(), LIFETIME)


def test_a_row_that_has_gone_is_noticed() -> None:
    with (
        Ledger(None) as ledger,
        Ledger(None) as other,
        pytest.raises(InvalidFile, match=r"ledger in memory: .* has gone"),
    ):
        other.record(enrolled(ledger), draw(), LIFETIME)


def test_a_full_disk_is_an_error_before_anything_is_sent(path: Path) -> None:
    with Ledger(path) as ledger:
        entry = enrolled(ledger)
        pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
        cells = tuple(range(100_000))
        with pytest.raises(InvalidFile, match="full"):
            ledger.record(entry, draw(cells=cells), LIFETIME)
        assert ledger.spent() == 0


def test_a_path_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    for location in (tmp_path, tmp_path / "nowhere" / "ledger.db"):
        with pytest.raises(InvalidFile, match="cannot be opened as a ledger"):
            Ledger(location)


def test_a_file_name_may_hold_characters_of_urls(tmp_path: Path) -> None:
    path = tmp_path / "what? 100%#1 é.db"
    with Ledger(path) as ledger:
        ledger.record(enrolled(ledger), draw(), LIFETIME)
    assert path.is_file()
    with Ledger(path) as ledger:
        assert ledger.spent() == 1


def test_the_default_is_where_the_platform_keeps_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path.home()
    on_linux = home / ".local/state/unpoison/ledger.db"
    assert default_ledger_path("linux", {}) == on_linux
    assert default_ledger_path("linux", {"XDG_STATE_HOME": "not/absolute"}) == on_linux
    on_a_mac = default_ledger_path("darwin", {})
    assert on_a_mac.parts[-3:] == ("Application Support", "unpoison", "ledger.db")
    local = default_ledger_path("win32", {"LOCALAPPDATA": str(tmp_path)})
    assert local == tmp_path / "unpoison" / "ledger.db"
    patched = "unpoison.client.ledger.default_ledger_path"
    monkeypatch.setattr(patched, lambda: tmp_path / "a" / "b.db")
    with Ledger.default() as ledger:
        assert ledger.path == tmp_path / "a" / "b.db"
    monkeypatch.setattr(patched, lambda: tmp_path / "a" / "b.db" / "c" / "d.db")
    with pytest.raises(InvalidFile, match="cannot be made"):
        Ledger.default()
