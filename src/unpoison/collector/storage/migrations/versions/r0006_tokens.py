"""Create the tables of campaigns by token: their issuers, and the tokens that were spent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"


def _of_campaign() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["campaign"], ["campaigns.id"], ondelete="CASCADE")


def upgrade() -> None:
    """Create two tables; no campaign that exists already has rows in them."""
    op.create_table(
        "token_issuers",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("challenge", sa.LargeBinary, nullable=False),
        sa.Column("public_key", sa.LargeBinary, nullable=False),
        _of_campaign(),
    )
    op.create_table(
        "spent_tokens",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("ticket", sa.BigInteger, nullable=False),
        _of_campaign(),
    )
