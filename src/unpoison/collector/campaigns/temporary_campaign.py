"""A campaign in a temporary database, for examples and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.storage.temporary_database import temporary_database
from unpoison.plan import Plan


@contextmanager
def temporary_campaign() -> Iterator[tuple[Connection, Campaign]]:
    """An open campaign about tea and coffee, in two groups, and a write transaction on it.

    >>> with temporary_campaign() as (connection, campaign):
    ...     Campaigns.find(connection, campaign.id) == campaign
    True
    """
    plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=0.5, categories=["tea", "coffee"])
    campaign = Campaign.new("Drinks", plan, now=0, min_users=1)
    with temporary_database() as database, database.writing() as connection:
        Campaigns.add(connection, campaign)
        yield connection, Campaigns.open(connection, campaign.id, now=0)
