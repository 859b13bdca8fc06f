"""Create the tables of campaigns, invites, tickets, submissions and counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _of_campaign() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["campaign"], ["campaigns.id"], ondelete="CASCADE")


def upgrade() -> None:
    """Create all tables that the protocol needs."""
    op.create_table(
        "operators",
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "campaigns",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("access", sa.String(8), nullable=False),
        sa.Column("min_users", sa.BigInteger, nullable=False),
        sa.Column("assignment_secret", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("closes_at", sa.BigInteger),
    )
    op.create_table(
        "invites",
        sa.Column("invite_hash", sa.LargeBinary, primary_key=True),
        sa.Column("campaign", sa.String(32), nullable=False),
        sa.Column("issued_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("ticket", sa.BigInteger),
        _of_campaign(),
    )
    op.create_index("invites_of_campaign", "invites", ["campaign"])
    op.create_table(
        "tickets",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("ticket", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("group_number", sa.Integer, nullable=False),
        sa.Column("device_hash", sa.LargeBinary, nullable=False),
        sa.Column("issued_at", sa.BigInteger, nullable=False),
        _of_campaign(),
    )
    op.create_index("tickets_of_device", "tickets", ["campaign", "device_hash"], unique=True)
    op.create_table(
        "seats",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("group_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("enrolled", sa.BigInteger, nullable=False),
        sa.Column("submissions", sa.BigInteger, nullable=False),
        _of_campaign(),
    )
    op.create_table(
        "submissions",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("ticket", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("cells", sa.LargeBinary),
        sa.Column("proof", sa.LargeBinary, nullable=False),
        _of_campaign(),
    )
    op.create_index("submissions_by_age", "submissions", ["received_at"])
    op.create_table(
        "tallies",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("campaign", sa.String(32), nullable=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
        _of_campaign(),
    )
    op.create_index("tallies_of_campaign", "tallies", ["campaign"])
