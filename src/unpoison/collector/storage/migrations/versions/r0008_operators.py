"""Give operators a name and a role, and create the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Tokens that exist already may do what they could before."""
    for name, length in (("name", 64), ("role", 8)):
        column = sa.Column(name, sa.String(length), nullable=False, server_default="operator")
        op.add_column("operators", column)
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("operator", sa.String(64), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("campaign", sa.String(32)),
        sa.Column("detail", sa.Text),
    )
