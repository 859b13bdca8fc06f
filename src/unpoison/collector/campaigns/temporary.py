"""A database for a moment, for examples and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection

from unpoison.collector.campaigns.campaigns import Campaign, Campaigns
from unpoison.collector.storage.database import Database, database_url
from unpoison.collector.storage.migration import migrate
from unpoison.plan import Plan


@contextmanager
def scratch_database() -> Iterator[Database]:
    """An empty SQLite database with the present schema, gone at the end.

    >>> from unpoison.collector.campaigns.campaigns import Campaigns
    >>> with scratch_database() as database, database.reading() as connection:
    ...     Campaigns.all(connection)
    []
    """
    with TemporaryDirectory() as folder:
        database = Database(database_url(str(Path(folder, "scratch.db"))))
        migrate(database)
        try:
            yield database
        finally:
            database.close()


@contextmanager
def scratch_campaign() -> Iterator[tuple[Connection, Campaign]]:
    """An open campaign about tea and coffee, in two groups, in a transaction on such a database.

    >>> with scratch_campaign() as (connection, campaign):
    ...     Campaigns.find(connection, campaign.id) == campaign
    True
    """
    plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=0.5, categories=["tea", "coffee"])
    campaign = Campaign.new("Drinks", plan, now=0, min_users=1)
    with scratch_database() as database, database.writing() as connection:
        Campaigns.add(connection, campaign)
        yield connection, Campaigns.open(connection, campaign.id, now=0)
