"""Create the register of ticket keys, and the table that readiness probes write to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create two tables; the first server that starts registers its keys."""
    op.create_table(
        "ticket_keys",
        sa.Column("fingerprint", sa.String(32), primary_key=True),
        sa.Column("signs_from", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "write_probes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("filler", sa.LargeBinary, nullable=False),
    )
