"""Create alarms and the outbox, and store how sure estimates are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Estimates that are stored already have none of the new columns."""
    for name in ("byzantine_low", "byzantine_high", "nobody_attacks_p_value"):
        op.add_column("estimates", sa.Column(name, sa.Float))
    op.add_column("estimates", sa.Column("doubt", sa.Boolean))
    campaign = sa.ForeignKey("campaigns.id", ondelete="CASCADE")
    op.create_table(
        "alarms",
        sa.Column("campaign", sa.String(32), campaign, primary_key=True),
        sa.Column("rule", sa.String(32), primary_key=True),
        sa.Column("threshold", sa.Float, nullable=False),
        sa.Column("since", sa.BigInteger),
        sa.Column("counted_from", sa.BigInteger),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("message", sa.String(32), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.BigInteger, nullable=False),
    )
