"""Create the tables of what the page shows over time: activity, rejections and estimates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _of_campaign() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["campaign"], ["campaigns.id"], ondelete="CASCADE")


def upgrade() -> None:
    """Create three tables; they are empty for campaigns that exist already."""
    op.create_table(
        "activity",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("minute", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("enrolled", sa.BigInteger, nullable=False),
        sa.Column("submissions", sa.BigInteger, nullable=False),
        _of_campaign(),
    )
    op.create_table(
        "rejections",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("cause", sa.String(32), primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
        _of_campaign(),
    )
    op.create_table(
        "estimates",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("campaign", sa.String(32), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("users", sa.BigInteger, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("mean", sa.Float),
        sa.Column("low", sa.Float),
        sa.Column("high", sa.Float),
        sa.Column("byzantine_fraction", sa.Float, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        _of_campaign(),
    )
    op.create_index("estimates_of_campaign", "estimates", ["campaign"])
