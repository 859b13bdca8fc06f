"""The file behind a ledger: SQLite, made whole or not at all, and opened only if it is ours."""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from unpoison.errors import InvalidFile
from unpoison.system.atomic_files import name_once

APPLICATION = 0x756E706C
"""Marks a SQLite file as a ledger: the letters unpl."""
FORMAT = 1
BUSY_SECONDS = 30.0
SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION};
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
    PRIMARY KEY (collector, campaign)
);
COMMIT;
"""


def default_path(system: str = sys.platform, environment: Mapping[str, str] = os.environ) -> Path:
    """Where this platform keeps what programs must remember for a user.

    >>> default_path("linux", {"XDG_STATE_HOME": "/home/ada/.state"}).as_posix()
    '/home/ada/.state/unpoison/ledger.db'
    """
    home = Path.home()
    if system == "win32":
        folder = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif system == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        given = Path(environment.get("XDG_STATE_HOME", ""))
        folder = given if given.is_absolute() else home / ".local" / "state"
    return folder / "unpoison" / "ledger.db"


def connect(path: Path | None) -> sqlite3.Connection:
    """The database in a file, which is made if it is not there; in memory without a path.

    >>> with closing(connect(None)) as memory:
    ...     memory.execute("SELECT count(*) FROM entries").fetchone()
    (0,)
    """
    if path is None:
        memory = _opened(":memory:")
        memory.executescript(SCHEMA)
        return memory
    try:
        if not path.exists():
            _create(path)
        connection = _opened(f"{path.absolute().as_uri()}?mode=rw")
    except (OSError, sqlite3.Error) as fault:
        raise InvalidFile(path, f"cannot be opened as a ledger ({fault})") from None
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _opened(name: str) -> sqlite3.Connection:
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


def _check(connection: sqlite3.Connection, path: Path) -> None:
    try:
        marks = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        ]
        whole = connection.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.Error as fault:
        raise InvalidFile(path, f"cannot be read as a ledger ({fault})") from None
    if marks[0] != APPLICATION:
        raise InvalidFile(path, "is not a ledger")
    if marks[1] != FORMAT:
        raise InvalidFile(path, f"has the format {marks[1]}; known is {FORMAT}")
    if whole != "ok":
        raise InvalidFile(path, f"is damaged ({whole})")


def _create(path: Path) -> None:
    """Make an empty ledger beside the path, then give it its name, unless another has it by now."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(_opened(f"{draft.absolute().as_uri()}?mode=rw")) as connection:
            connection.executescript(SCHEMA)
        name_once(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    _write_out(path.parent)


def _write_out(folder: Path) -> None:
    """Let the folder outlast a power cut too, where the system can do that."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
