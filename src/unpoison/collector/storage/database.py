"""The database: SQLite in a file, or PostgreSQL by URL; both through SQLAlchemy Core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from unpoison.collector.faults import Fault
from unpoison.errors import InvalidParameter

BUSY_SECONDS = 3.0
"""SQLite: longest wait for the write lock. A device that has to wait twice still gets its answer
before its own timeout."""
CONNECT_SECONDS = 5
"""PostgreSQL: longest wait for a connection, unless the URL says otherwise."""
PRIVATE = 0o600
"""File mode: readable and writable by the owner only."""
LOCK_SECONDS, IDLE_SECONDS = 10.0, 60.0
"""PostgreSQL: longest wait for a row lock, and longest idle time within a transaction.

A server that loses its network inside a transaction keeps its locks; without these limits all
other servers would wait for it until TCP gives the connection up."""
POOL_SIZE = 4
"""PostgreSQL connections kept open: one for the writer thread, the others for readers."""
CHECKPOINT_MILLISECONDS = 100
"""SQLite: longest wait for readers when the log is emptied; if they stay, it is tried again."""
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
SQLITE_SETTINGS = (
    # Readers see the last commit while the writer writes.
    "PRAGMA journal_mode = WAL",
    # The log is fsynced at every commit: a device that was told "accepted" never sends again, so
    # what was answered must survive a power cut. NORMAL, WAL's usual companion, may lose it.
    "PRAGMA synchronous = FULL",
    # Off by default in SQLite; deleting a campaign relies on ON DELETE CASCADE.
    "PRAGMA foreign_keys = ON",
    # What is deleted is overwritten with zeros; else forgotten cells stay in the file's free pages.
    "PRAGMA secure_delete = ON",
)


def database_url(database: str) -> URL:
    """Parse the setting `database`; a path without a scheme is an SQLite file.

    >>> str(database_url("reports.db")), database_url("postgresql://host/name").drivername
    ('sqlite:///reports.db', 'postgresql+psycopg')
    """
    url_text = database if "://" in database else f"sqlite:///{database}"
    try:
        url = make_url(url_text)
    except ArgumentError:
        # The text itself may hold a password.
        raise InvalidParameter("database", "must be a path or a URL", "another text") from None
    name = url.drivername.partition("+")[0]
    if name not in DRIVERS:
        raise InvalidParameter("database", "must be SQLite or PostgreSQL", name)
    if name == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidParameter("database", "must be a file: others could not read it", "memory")
    return url.set(drivername=DRIVERS[name])


def sqlite_file(url: URL) -> Path | None:
    """The file of an SQLite database; None for PostgreSQL.

    >>> sqlite_file(database_url("reports.db")).name
    'reports.db'
    """
    return Path(str(url.database)) if url.drivername == "sqlite" else None


class Database:
    """A pool of connections; every database error is raised as the fault `unavailable`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/reports.db"))
    ...     with database.writing() as connection:
    ...         connection.execute(text("SELECT 1")).scalar()
    ...     database.close()
    1
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        make_private(sqlite_file(url))
        self.engine = _engine(url)
        # A page is read by several statements, which must agree with one another. SQLite's read
        # transactions see one state anyway; PostgreSQL's do at this level only.
        options = {} if url.drivername == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        self.readers = self.engine.execution_options(**options)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read transaction, which sees one state of the database throughout."""
        with _as_unavailable(), self.readers.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction: committed at the end, rolled back on any exception."""
        writers = self.engine.execution_options(writing=True)
        with _as_unavailable(), writers.begin() as connection:
            yield connection

    def is_writable(self) -> bool:
        """Whether a write transaction can be begun now."""
        try:
            with self.writing() as connection:
                connection.execute(text("SELECT 1"))
        except Fault:
            return False
        return True

    def truncate_log(self) -> bool:
        """Empty SQLite's write-ahead log, where old versions of pages are; False if it is in use.

        PostgreSQL reuses its log by itself, and keeps as much of it as its administrator says.
        """
        if self.url.drivername != "sqlite":
            return True
        with _as_unavailable(), closing(self.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            # Readers who are under way are not waited for: devices would wait as well.
            cursor.execute(f"PRAGMA busy_timeout = {CHECKPOINT_MILLISECONDS}")
            busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            cursor.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")
            return not busy

    def close(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()


def log_reason(fault: BaseException) -> str:
    """Describe a fault for the log: the database's error code, or the exception's class.

    Never its text, which may quote parameters and with them what devices sent.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/missing/reports.db"))
    ...     try:
    ...         with database.reading():
    ...             pass
    ...     except Fault as fault:
    ...         print(log_reason(fault))
    SQLITE_CANTOPEN
    """
    cause = fault.__cause__ or fault
    driver_error = getattr(cause, "orig", None)
    sqlite_code = getattr(driver_error, "sqlite_errorname", None)
    return str(sqlite_code or getattr(driver_error, "sqlstate", None) or type(cause).__name__)


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Raise errors of a database that is gone, locked or full as the fault `unavailable`."""
    try:
        yield
    except (DBAPIError, NoConnection) as fault:
        raise Fault("unavailable") from fault


def make_private(file: Path | None) -> None:
    """Create a missing SQLite file with mode 0600; SQLite gives its log files the same mode.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_private(Path(folder, "reports.db"))
    ...     oct(Path(folder, "reports.db").stat().st_mode & 0o777)
    '0o600'
    """
    if file is not None and file.parent.is_dir() and not file.exists():
        with suppress(FileExistsError, PermissionError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, PRIVATE))


def _engine(url: URL) -> Engine:
    # Parameters are hidden: they would stand in the texts of errors, and so in logs.
    if url.drivername != "sqlite":
        timeout = {"connect_timeout": url.query.get("connect_timeout", CONNECT_SECONDS)}
        engine = create_engine(
            url,
            hide_parameters=True,
            # A database that was restarted is noticed before a transaction fails on it.
            pool_pre_ping=True,
            pool_size=POOL_SIZE,
            connect_args=timeout,
        )
        event.listen(engine, "connect", _set_up_postgresql)
        return engine
    options = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(url, hide_parameters=True, connect_args=options)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    # The driver's own transaction control is switched off: `_begin_sqlite` says when a
    # transaction begins and of which kind.
    connection.isolation_level = None
    for setting in SQLITE_SETTINGS:
        connection.execute(setting)


def _set_up_postgresql(connection: Any, _: Any) -> None:
    timeouts = {"lock_timeout": LOCK_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS}
    for name, seconds in timeouts.items():
        connection.execute(f"SET {name} = {int(1000 * seconds)}")
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once. A transaction that has read and then wants the lock does
    # not wait for it: if somebody wrote meanwhile, SQLite fails it at once (SQLITE_BUSY).
    kind = "IMMEDIATE" if connection.get_execution_options().get("writing") else "DEFERRED"
    connection.exec_driver_sql(f"BEGIN {kind}")
