"""Brings a database to the present schema on start; an SQLite file is copied before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from unpoison.collector.storage.database import Database, make_private, sqlite_file
from unpoison.errors import InvalidFile

SCRIPTS = Path(__file__).parent / "migrations"
VERSIONS = "alembic_version"
LOCK = 0x756E706F
"""PostgreSQL: two servers that start at once migrate one after the other."""


def newest() -> str:
    """The revision that this version of the library works with.

    >>> newest()
    '0002'
    """
    head = ScriptDirectory(str(SCRIPTS)).get_current_head()
    return str(head)


def revision(database: Database) -> str | None:
    """The revision that a database is at; nothing if it is empty.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.storage.database import database_url
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/reports.db"))
    ...     before, _, after = revision(database), migrate(database), revision(database)
    ...     database.close()
    >>> before, after
    (None, '0002')
    """
    with database.reading() as connection:
        return _revision(connection)


def migrate(database: Database, target: str | None = None) -> Path | None:
    """Upgrade if needed; returns the copy that was made of an SQLite file before.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.storage.database import database_url
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/reports.db"))
    ...     copies = [migrate(database, "0001"), migrate(database)]
    ...     database.close()
    >>> copies[0], copies[1].name
    (None, 'reports.db.before-0002')
    """
    wanted = target or newest()
    if checked_revision(database) == wanted:
        return None
    with database.writing() as connection:
        _wait_for_others(connection)
        found = _revision(connection)
        copy = None if found in (None, wanted) else _copied(sqlite_file(database.url), wanted)
        _upgrade(connection, wanted)
    return copy


def checked_revision(database: Database) -> str | None:
    """The revision that a database is at, if this version of the library knows it.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> with scratch_database() as database:
    ...     checked_revision(database)
    '0002'
    """
    found = revision(database)
    if found is not None and found not in _known():
        place = database.url.render_as_string(hide_password=True)
        raise InvalidFile(place, f"is of a newer version of unpoison (schema {found})")
    return found


def refuse_foreign(file: Path | None) -> None:
    """Refuse an SQLite file of another program, before anything in it is changed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "notes.db")
    ...     with closing(sqlite3.connect(path)) as notes:
    ...         made = notes.execute("CREATE TABLE notes (text)")
    ...     refuse_foreign(path)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidFile: ...notes.db: is a database of another program
    """
    if file is None or not file.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as found:
            rows = found.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name for (name,) in rows}
    except sqlite3.Error as fault:
        raise InvalidFile(file, f"cannot be read as a database ({fault})") from None
    if tables and VERSIONS not in tables:
        raise InvalidFile(file, "is a database of another program")


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _known() -> set[str]:
    return {each.revision for each in ScriptDirectory(str(SCRIPTS)).walk_revisions()}


def _wait_for_others(connection: Connection) -> None:
    """From here on nobody else migrates: SQLite has one writer, PostgreSQL a lock for this."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")


def _upgrade(connection: Connection, target: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _copied(file: Path | None, wanted: str) -> Path | None:
    """A copy by SQLite itself, which also holds what is still in the write-ahead log."""
    if file is None:
        return None
    copy = file.with_name(f"{file.name}.before-{wanted}")
    try:
        make_private(copy)
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error as fault:
        raise InvalidFile(copy, f"cannot be written ({fault})") from None
    return copy
