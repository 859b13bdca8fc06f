"""Schema upgrades at start, by Alembic; an SQLite file is copied first.

Alembic is imported only to upgrade: it takes a tenth of a server's start. An empty database gets
the newest schema at once.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, text

from unpoison.collector.storage.database import Database, make_private, sqlite_file
from unpoison.collector.storage.schema import metadata
from unpoison.errors import InvalidFile

SCRIPTS = Path(__file__).parent / "migrations"
VERSION_TABLE = "alembic_version"
"""Alembic's table; a database without it was not made by a collector."""
ADVISORY_LOCK = 0x756E706F
"""PostgreSQL lock under which servers that start together migrate one after the other.

Any number serves that no other program on the database uses; these are the letters "unpo"."""


def newest() -> str:
    """The schema revision that this version of the library works with.

    >>> len(newest())
    4
    """
    return max(_known_revisions())


def revision(database: Database) -> str | None:
    """The schema revision of a database; None if it is empty.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.storage.database import database_url
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/reports.db"))
    ...     before, _, after = revision(database), migrate(database), revision(database)
    ...     database.close()
    >>> before, after == newest()
    (None, True)
    """
    with database.reading() as connection:
        return _revision(connection)


def migrate(database: Database, target: str | None = None) -> Path | None:
    """Upgrade if needed; returns the copy that was made of an SQLite file, if any.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.collector.storage.database import database_url
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/reports.db"))
    ...     copies = [migrate(database, "0001"), migrate(database)]
    ...     database.close()
    >>> copies[0], copies[1].name == f"reports.db.before-{newest()}"
    (None, True)
    """
    wanted = target or newest()
    if checked_revision(database) == wanted:
        return None
    with database.writing() as connection:
        lock_against_other_servers(connection)
        # Read again under the lock: another server may have migrated while this one waited.
        present = _revision(connection)
        copy = None if present in (None, wanted) else _copied(sqlite_file(database.url), wanted)
        if target is None and _is_empty(connection):
            _create(connection, wanted)
        else:
            _upgrade(connection, wanted)
    return copy


def checked_revision(database: Database) -> str | None:
    """The schema revision of a database; an error if it is of a newer version of the library.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     checked_revision(database) == newest()
    True
    """
    present = revision(database)
    if present is not None and present not in _known_revisions():
        name = database.url.render_as_string(hide_password=True)
        raise InvalidFile(name, f"is of a newer version of unpoison (schema {present})")
    return present


def refuse_foreign(file: Path | None) -> None:
    """Refuse an SQLite file of another program before anything in it is changed.

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
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name for (name,) in rows}
    except sqlite3.Error as fault:
        raise InvalidFile(file, f"cannot be read as a database ({fault})") from None
    if tables and VERSION_TABLE not in tables:
        raise InvalidFile(file, "is a database of another program")


def lock_against_other_servers(connection: Connection) -> None:
    """Hold off other servers that start until the transaction ends; SQLite has one writer anyway.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     lock_against_other_servers(connection)
    """
    if connection.dialect.name == "postgresql":
        # A migration may take longer than the usual wait for a lock.
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    present = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return None if present is None else str(present)


def _known_revisions() -> set[str]:
    """The revisions that there are scripts for, by the names of the scripts: `r0001_….py`."""
    return {path.name[1:].partition("_")[0] for path in (SCRIPTS / "versions").glob("r*_*.py")}


def _is_empty(connection: Connection) -> bool:
    """Whether no collector has used a database yet."""
    return not inspect(connection).has_table(VERSION_TABLE)


def _create(connection: Connection, newest_revision: str) -> None:
    """Make all tables as the scripts would leave them, and note their revision for Alembic."""
    metadata.create_all(connection, checkfirst=False)
    # As Alembic makes it; the name of its key is Alembic's too.
    version = Table(
        VERSION_TABLE,
        MetaData(naming_convention={"pk": "%(table_name)s_pkc"}),
        Column("version_num", String(32), primary_key=True),
    )
    version.create(connection)
    connection.execute(insert(version), {"version_num": newest_revision})


def _upgrade(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _copied(file: Path | None, wanted: str) -> Path | None:
    """Copy by SQLite's backup: a copy of the file alone would lack the write-ahead log."""
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
