"""A probe that tells whether a write of the size of a batch would succeed now."""

from __future__ import annotations

import os

from sqlalchemy import Connection, delete, insert, text

from unpoison.collector.storage.schema import write_probes

BYTES_PER_REQUEST = 512
"""Room that a request takes at most in a batch: the row of a submission with some tens of cells,
its entries in two indexes, and its part of the counts."""


class WriteProbe:
    """Writes as much as a batch does, and takes it back.

    On SQLite `fill` has to be committed, since nothing is written to the disk before that; `clear`
    removes it in a second transaction. On PostgreSQL `fill` leaves nothing behind by itself.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database:
    ...     probe = WriteProbe(requests=512)
    ...     for step in (probe.fill, probe.clear):
    ...         with database.writing() as connection:
    ...             step(connection)
    """

    def __init__(self, requests: int) -> None:
        # Random, so that no database compresses it.
        self.filler = os.urandom(requests * BYTES_PER_REQUEST)

    def fill(self, connection: Connection) -> None:
        """Write a batch's worth of bytes; fails where a batch would."""
        if connection.dialect.name != "postgresql":
            connection.execute(insert(write_probes), {"filler": self.filler})
            return
        # A new table has a new file, which must grow by real blocks; a table that stays would keep
        # room of earlier probes. Rolled back, the file is removed. It is not in the database's log
        # (UNLOGGED), and takes no lock that a backup under way holds.
        with connection.begin_nested() as savepoint:
            connection.execute(text("CREATE UNLOGGED TABLE write_probe (filler bytea)"))
            fill = text("INSERT INTO write_probe VALUES (:filler)")
            connection.execute(fill, {"filler": self.filler})
            savepoint.rollback()

    def clear(self, connection: Connection) -> None:
        """Remove what `fill` wrote, also what a server left behind that was killed meanwhile."""
        if connection.dialect.name != "postgresql":
            connection.execute(delete(write_probes))
