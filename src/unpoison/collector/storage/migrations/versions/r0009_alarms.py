"""Store how sure an estimate is: its p-value and its doubt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Estimates that are stored already have neither."""
    op.add_column("estimates", sa.Column("nobody_attacks_p_value", sa.Float))
    op.add_column("estimates", sa.Column("doubt", sa.Boolean))
