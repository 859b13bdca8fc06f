"""Operators: people and programs that hold a token, each with a name and a role.

Only hashes of tokens are stored.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from unpoison.collector.credentials import hashed, new_token
from unpoison.collector.storage.schema import operators

READER, OPERATOR = "reader", "operator"
"""Roles: a reader watches campaigns and estimates, an operator also runs campaigns."""
ROLES = (READER, OPERATOR)
FIRST_OPERATOR = "operator"
"""The name of the operator that the first start makes."""


@dataclass(frozen=True)
class Operator:
    """Whoever holds a token.

    >>> Operator("ada", READER).may_change
    False
    """

    name: str
    role: str = OPERATOR
    token_hash: bytes = b""

    @property
    def may_change(self) -> bool:
        """Whether campaigns may be created, opened, closed, exported and deleted."""
        return self.role == OPERATOR


def add_operator(
    connection: Connection, now: int, name: str = FIRST_OPERATOR, role: str = OPERATOR
) -> str:
    """Make a token and store its hash; the token itself cannot be read again.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     token = add_operator(connection, now=0, name="ada", role=READER)
    ...     holder_of(token, stored_operators(connection)).name
    'ada'
    """
    token = new_token()
    row = {"token_hash": hashed(token), "created_at": now, "name": name, "role": role}
    connection.execute(insert(operators), row)
    return token


def stored_operators(connection: Connection) -> list[Operator]:
    """All operators, in the order of their names.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.reading() as connection:
    ...     stored_operators(connection)
    []
    """
    rows = connection.execute(select(operators).order_by(operators.c.name))
    return [Operator(row.name, row.role, bytes(row.token_hash)) for row in rows]


def holder_of(token: str, candidates: Sequence[Operator]) -> Operator | None:
    """The operator who holds a token, if there is one.

    >>> holder_of("a token", [Operator("ada", READER, hashed("a token"))]).name
    'ada'
    """
    digest = hashed(token)
    # Every comparison is made, each in constant time: stopping at the first match would tell by
    # the response time which entry matched, and how many there are.
    matches = [
        operator for operator in candidates if hmac.compare_digest(digest, operator.token_hash)
    ]
    return matches[0] if matches else None


def forget_operators(connection: Connection, name: str | None = None) -> int:
    """Revoke the tokens of one name, or all; returns how many there were.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> with temporary_database() as database, database.writing() as connection:
    ...     tokens = [add_operator(connection, 0, name) for name in ("ada", "ben")]
    ...     forget_operators(connection, "ada"), forget_operators(connection)
    (1, 1)
    """
    chosen = delete(operators)
    return connection.execute(
        chosen if name is None else chosen.where(operators.c.name == name)
    ).rowcount
