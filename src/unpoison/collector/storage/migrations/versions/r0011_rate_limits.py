"""Create the table of rate limits, which servers of one database share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0009"


def upgrade() -> None:
    """Limits that servers counted in memory begin anew."""
    op.create_table(
        "rate_limits",
        sa.Column("action", sa.String(32), primary_key=True),
        sa.Column("address", sa.LargeBinary, primary_key=True),
        sa.Column("full_at", sa.Float, nullable=False),
    )
