"""Store with each estimate its answer as people read it, the finding, and frequencies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add columns that are null for estimates of earlier versions."""
    op.add_column("estimates", sa.Column("finding", sa.String(16)))
    op.add_column("estimates", sa.Column("answer", sa.Text))
    op.add_column("estimates", sa.Column("answer_interval", sa.Text))
    op.add_column("estimates", sa.Column("frequencies", sa.Text))
