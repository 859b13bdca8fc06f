"""Campaigns in the database: add, find, open, close, extend and delete them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from unpoison.collector.campaigns.campaign import CLOSED, DRAFT, OPEN, Campaign
from unpoison.collector.campaigns.group_counters import add_group_counters
from unpoison.collector.campaigns.locks import lock_campaign, lock_campaigns
from unpoison.collector.credentials import is_campaign_id
from unpoison.collector.faults import Fault
from unpoison.collector.storage.schema import campaigns


class Campaigns:
    """The table of campaigns; each function is one step of a transaction.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     Campaigns.close(connection, campaign.id).state
    'closed'
    """

    @staticmethod
    def add(connection: Connection, campaign: Campaign) -> None:
        """Store a new campaign, with counters of zero for every group."""
        connection.execute(insert(campaigns), _row(campaign))
        add_group_counters(connection, campaign)

    @staticmethod
    def find(connection: Connection, campaign: str) -> Campaign | None:
        """The campaign with an id, if there is one."""
        if not is_campaign_id(campaign):
            return None
        row = connection.execute(select(campaigns).where(campaigns.c.id == campaign)).first()
        return None if row is None else _campaign(row)

    @staticmethod
    def get(connection: Connection, campaign: str) -> Campaign:
        """The campaign with an id; it is a fault if there is none."""
        stored = Campaigns.find(connection, campaign)
        if stored is None:
            raise no_such_campaign()
        return stored

    @staticmethod
    def open(connection: Connection, campaign: str, now: int) -> Campaign:
        """Let devices in, for the first time or again."""
        stored = Campaigns.get(connection, campaign)
        if stored.closes_at is not None and stored.closes_at <= now:
            raise Fault("wrong-state", "The campaign's end has passed: extend it first.")
        return _changed(connection, stored, state=OPEN)

    @staticmethod
    def close(connection: Connection, campaign: str) -> Campaign:
        """Let no device in any more; counts stay as they are."""
        stored = _locked(connection, campaign)
        if stored.state == DRAFT:
            raise Fault("wrong-state", "The campaign has not been opened.")
        return _changed(connection, stored, state=CLOSED)

    @staticmethod
    def extend(connection: Connection, campaign: str, closes_at: int | None, now: int) -> Campaign:
        """Move the end; a closed campaign stays closed until it is opened again."""
        stored = Campaigns.get(connection, campaign)
        if closes_at is not None and closes_at <= now:
            raise Fault("invalid-request", "The new end must lie in the future.", "closes_at")
        return _changed(connection, stored, closes_at=closes_at)

    @staticmethod
    def close_due(connection: Connection, now: int) -> list[str]:
        """Close the campaigns whose end has passed; returns their ids.

        `accepts` refuses devices after the end anyway. The state is stored as well, so that a
        clock that is set back opens nothing again.
        """
        due = (campaigns.c.state == OPEN) & (campaigns.c.closes_at <= now)
        ids = connection.execute(select(campaigns.c.id).where(due)).scalars().all()
        lock_campaigns(connection, ids)
        if ids:
            connection.execute(update(campaigns).where(due).values(state=CLOSED))
        return list(ids)

    @staticmethod
    def delete(connection: Connection, campaign: str) -> None:
        """Delete a campaign and, by the tables' cascades, all that belongs to it."""
        stored = _locked(connection, campaign)
        if stored.state == OPEN:
            raise Fault("wrong-state", "An open campaign cannot be deleted: close it first.")
        connection.execute(delete(campaigns).where(campaigns.c.id == campaign))


def no_such_campaign() -> Fault:
    """The refusal of an id that no campaign has.

    >>> no_such_campaign().status
    404
    """
    return Fault("not-found", "There is no such campaign.")


def _locked(connection: Connection, campaign: str) -> Campaign:
    """The campaign as it is once its lock is held, so that nothing is being counted in it."""
    Campaigns.get(connection, campaign)
    lock_campaign(connection, campaign)
    # Read again: another server may have changed or deleted it before the lock was granted.
    return Campaigns.get(connection, campaign)


def _changed(connection: Connection, campaign: Campaign, **values: Any) -> Campaign:
    connection.execute(update(campaigns).where(campaigns.c.id == campaign.id).values(**values))
    return replace(campaign, **values)


def _row(campaign: Campaign) -> dict[str, Any]:
    return {
        "id": campaign.id,
        "name": campaign.name,
        "plan": campaign.plan_json,
        "state": campaign.state,
        "access": campaign.access,
        "min_users": campaign.min_users,
        "assignment_secret": campaign.assignment_secret,
        "created_at": campaign.created_at,
        "closes_at": campaign.closes_at,
    }


def _campaign(row: Row[Any]) -> Campaign:
    return Campaign(
        row.id,
        row.name,
        row.plan,
        row.state,
        row.access,
        row.min_users,
        bytes(row.assignment_secret),
        row.created_at,
        row.closes_at,
    )
