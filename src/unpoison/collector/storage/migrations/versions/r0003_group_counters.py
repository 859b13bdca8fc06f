"""Rename the table `seats` to `group_counters`: it holds counts by group, not seats of devices."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Rename the table; all rows stay."""
    op.rename_table("seats", "group_counters")
    if op.get_bind().dialect.name == "postgresql":
        # PostgreSQL keeps the names that it derived from the old table's name.
        for suffix in ("pkey", "campaign_fkey"):
            op.execute(
                f"ALTER TABLE group_counters"
                f" RENAME CONSTRAINT seats_{suffix} TO group_counters_{suffix}"
            )
