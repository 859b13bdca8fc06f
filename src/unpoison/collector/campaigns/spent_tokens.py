"""Spent tokens: the hash of each, with the ticket that it was spent on.

A hash tells nobody to whom the token was issued: the issuer signed it without seeing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from unpoison.collector.storage.dialects import insert_rows
from unpoison.collector.storage.schema import spent_tokens


def tickets_of_tokens(
    connection: Connection, campaign: str, tokens: Sequence[bytes]
) -> dict[bytes, int]:
    """The tickets on which those of these tokens were spent that were spent already.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     add_spent_tokens(connection, campaign.id, {b"one": 17})
    ...     tickets_of_tokens(connection, campaign.id, [b"one", b"two"])
    {b'one': 17}
    """
    if not tokens:
        return {}
    rows = connection.execute(
        select(spent_tokens.c.token_hash, spent_tokens.c.ticket).where(
            (spent_tokens.c.campaign == campaign) & spent_tokens.c.token_hash.in_(tokens)
        )
    )
    return {bytes(row.token_hash): row.ticket for row in rows}


def add_spent_tokens(connection: Connection, campaign: str, tickets: Mapping[bytes, int]) -> None:
    """Store tokens that are spent now, each with its ticket.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     add_spent_tokens(connection, campaign.id, {})
    """
    if tickets:
        rows = [(campaign, token, number) for token, number in tickets.items()]
        insert_rows(connection, spent_tokens, ("campaign", "token_hash", "ticket"), rows)
