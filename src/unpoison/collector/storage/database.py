"""The database: SQLite in a file, or PostgreSQL by URL; both through SQLAlchemy Core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from unpoison.collector.faults import Fault
from unpoison.errors import InvalidParameter

BUSY_SECONDS = 3.0
"""For a lock; a device that waits for two transactions is told before it gives up."""
CONNECT_SECONDS = 5
PRIVATE = 0o600
LOCK_SECONDS, IDLE_SECONDS = 10.0, 60.0
"""PostgreSQL: a server that vanished in a transaction must not keep others waiting for ever."""
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
SQLITE_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)


def database_url(database: str) -> URL:
    """The URL of a database; a path without a scheme is an SQLite file.

    >>> str(database_url("reports.db")), database_url("postgresql://host/name").drivername
    ('sqlite:///reports.db', 'postgresql+psycopg')
    """
    given = database if "://" in database else f"sqlite:///{database}"
    try:
        url = make_url(given)
    except ArgumentError:
        raise InvalidParameter("database", "must be a path or a URL", "another text") from None
    name = url.drivername.partition("+")[0]
    if name not in DRIVERS:
        raise InvalidParameter("database", "must be SQLite or PostgreSQL", name)
    if name == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidParameter("database", "must be a file: others could not read it", "memory")
    return url.set(drivername=DRIVERS[name])


def sqlite_file(url: URL) -> Path | None:
    """The file of an SQLite database.

    >>> sqlite_file(database_url("reports.db")).name
    'reports.db'
    """
    return Path(str(url.database)) if url.drivername == "sqlite" else None


class Database:
    """Connections to read from and to write with; faults are told as one.

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
        options = {} if url.drivername == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        self.readers = self.engine.execution_options(**options)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with _told(), self.readers.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed at the end, whole or not at all."""
        options = self.engine.execution_options(writing=True)
        with _told(), options.begin() as connection:
            yield connection

    def answers(self) -> bool:
        """Whether the database can be written to now."""
        try:
            with self.writing() as connection:
                connection.execute(text("SELECT 1"))
        except Fault:
            return False
        return True

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def reason(fault: BaseException) -> str:
    """What a log says of a fault: the database's own code for it, or its kind; never its text.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(database_url(f"{folder}/missing/reports.db"))
    ...     try:
    ...         with database.reading():
    ...             pass
    ...     except Fault as fault:
    ...         print(reason(fault))
    SQLITE_CANTOPEN
    """
    known = fault.__cause__ or fault
    driver = getattr(known, "orig", None)
    code = getattr(driver, "sqlite_errorname", None) or getattr(driver, "sqlstate", None)
    return str(code or type(known).__name__)


@contextmanager
def _told() -> Iterator[None]:
    """A database that is gone, locked or full is unavailable; what it was asked is not repeated."""
    try:
        yield
    except (DBAPIError, NoConnection) as fault:
        raise Fault("unavailable") from fault


def make_private(file: Path | None) -> None:
    """A new SQLite file is for its owner alone; what SQLite puts beside it follows suit.

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
    """Parameters are hidden: they would stand in the texts of errors, and so in logs."""
    if url.drivername != "sqlite":
        waiting = {"connect_timeout": url.query.get("connect_timeout", CONNECT_SECONDS)}
        engine = create_engine(
            url, hide_parameters=True, pool_pre_ping=True, pool_size=4, connect_args=waiting
        )
        event.listen(engine, "connect", _set_up_postgresql)
        return engine
    options = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(url, hide_parameters=True, connect_args=options)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """The driver must not begin transactions by itself: we say when, and of which kind."""
    connection.isolation_level = None
    for setting in SQLITE_SETTINGS:
        connection.execute(setting)


def _set_up_postgresql(connection: Any, _: Any) -> None:
    times = {"lock_timeout": LOCK_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS}
    for name, seconds in times.items():
        connection.execute(f"SET {name} = {int(1000 * seconds)}")
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    """Whoever will write takes the lock at once: a lock taken later could not be waited for."""
    kind = "IMMEDIATE" if connection.get_execution_options().get("writing") else "DEFERRED"
    connection.exec_driver_sql(f"BEGIN {kind}")
