"""An empty database in a temporary folder, for examples and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from unpoison.collector.storage.database import Database, database_url
from unpoison.collector.storage.migration import migrate


@contextmanager
def temporary_database() -> Iterator[Database]:
    """An SQLite database with the newest schema and no rows, deleted at the end.

    >>> from unpoison.collector.storage.operator_tokens import stored_operators
    >>> with temporary_database() as database, database.reading() as connection:
    ...     stored_operators(connection)
    []
    """
    with TemporaryDirectory() as folder:
        database = Database(database_url(str(Path(folder, "temporary.db"))))
        migrate(database)
        try:
            yield database
        finally:
            database.close()
