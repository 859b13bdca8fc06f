"""The file behind a ledger: SQLite, created whole or not at all, opened only if it is a ledger.

A damaged or foreign file is an error, never a reason to begin anew: an empty ledger would allow the
whole lifetime budget a second time.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.system.atomic_files import name_once

APPLICATION_ID = 0x756E706C
"""SQLite's mark of whose file it is: the letters unpl."""
FORMAT = 2
"""Version of the schema, as SQLite's user_version; files of a later version are refused."""
FIRST_FORMAT = 1
"""Without questions and parameters of draws; such files are upgraded when they are opened."""
NOT_FILES = (":memory:", "file:")
"""How names begin that SQLite itself would take for something else than a file of that name."""
BUSY_SECONDS = 30.0
"""How long to wait for another process's transaction, each of which takes milliseconds."""
SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
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
    question TEXT,
    parameters TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (collector, campaign)
);
COMMIT;
"""
TOKENS = """
CREATE TABLE IF NOT EXISTS tokens (
    collector TEXT NOT NULL,
    campaign TEXT NOT NULL,
    key TEXT NOT NULL,
    pending TEXT NOT NULL,
    token TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (collector, campaign)
)
"""
"""Tokens of campaigns that need one. The table is made when it is first missing, in ledgers of any
age: programs that do not know it leave it alone, so that the format stays the same."""


UPGRADE = (
    "ALTER TABLE entries ADD COLUMN question TEXT",
    "ALTER TABLE entries ADD COLUMN parameters TEXT NOT NULL DEFAULT ''",
    f"PRAGMA user_version = {FORMAT}",
)
"""From the first format. Draws of that time are never sent again for another campaign."""


def ledger_path(path: str | Path) -> Path:
    """The path of a ledger's file; names that SQLite gives another meaning to are refused.

    A file of such a name would be found by nobody who looks for it, and a ledger in memory forgets
    what was spent, which only `Ledger(None)` should be able to do.

    >>> ledger_path(":memory:")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: ledger must be the name of a file, or None for one ...
    """
    if str(path).startswith(NOT_FILES):
        rule = "must be the name of a file, or None for one in memory that forgets what was spent"
        raise InvalidParameter("ledger", rule, repr(str(path)))
    return Path(path)


def default_ledger_path(
    system: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Path:
    """The user's ledger, where the platform keeps state that programs must not lose.

    >>> default_ledger_path("linux", {"XDG_STATE_HOME": "/home/user/.state"}).as_posix()
    '/home/user/.state/unpoison/ledger.db'
    """
    home = Path.home()
    if system == "win32":
        folder = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif system == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        # The XDG specification says to ignore paths that are not absolute.
        state_home = Path(environment.get("XDG_STATE_HOME", ""))
        folder = state_home if state_home.is_absolute() else home / ".local" / "state"
    return folder / "unpoison" / "ledger.db"


def open_ledger_file(path: Path | None) -> sqlite3.Connection:
    """Open the database in a file, which is created if it is missing; without a path in memory.

    >>> with closing(open_ledger_file(None)) as memory:
    ...     memory.execute("SELECT count(*) FROM entries").fetchone()
    (0,)
    """
    if path is None:
        memory = _connect(":memory:")
        memory.executescript(SCHEMA)
        memory.execute(TOKENS)
        return memory
    try:
        if not path.exists():
            _create(path)
        # mode=rw: SQLite must not create a file that has gone since, as an empty database.
        connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
    except (OSError, sqlite3.Error) as fault:
        raise InvalidFile(path, f"cannot be opened as a ledger ({fault})") from None
    try:
        _check_is_ledger(connection, path)
        _add_tokens(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(name: str) -> sqlite3.Connection:
    # isolation_level None: the ledger begins its transactions itself, as IMMEDIATE ones. Its lock
    # takes the place of the check for one thread.
    connection = sqlite3.connect(
        name,
        uri=name != ":memory:",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    # What is committed must outlast a power cut, or a report could be drawn twice: EXTRA also
    # writes out the folder, from which a finished journal would otherwise come back.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")
    return connection


def _check_is_ledger(connection: sqlite3.Connection, path: Path) -> None:
    try:
        application_id, version, integrity = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "quick_check")
        )
    except sqlite3.Error as fault:
        raise InvalidFile(path, f"cannot be read as a ledger ({fault})") from None
    if application_id != APPLICATION_ID:
        raise InvalidFile(path, "is not a ledger")
    if version not in (FIRST_FORMAT, FORMAT):
        raise InvalidFile(path, f"has the format {version}; known is {FORMAT}")
    if integrity != "ok":
        raise InvalidFile(path, f"is damaged ({integrity})")
    if version == FIRST_FORMAT:
        _upgrade(connection, path)


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade a file of the first format, unless another process has done so meanwhile."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == FIRST_FORMAT:
            for statement in UPGRADE:
                connection.execute(statement)
        connection.execute("COMMIT")
    except sqlite3.Error as fault:
        raise InvalidFile(path, f"cannot be upgraded ({fault})") from None


def _add_tokens(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute(TOKENS)
    except sqlite3.Error as fault:
        raise InvalidFile(path, f"cannot be used as a ledger ({fault})") from None


def _create(path: Path) -> None:
    """Create an empty ledger beside the path and rename it, unless the name is taken by now."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    # The mode is set at creation: only the user may ever read what was spent and the secrets.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(_connect(f"{draft.absolute().as_uri()}?mode=rw")) as connection:
            connection.executescript(SCHEMA)
        name_once(draft, path)
    except FileExistsError:
        pass  # Another process was faster; its ledger is opened next.
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Write the folder to disk, where the system can: the new name must outlast a power cut too."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
