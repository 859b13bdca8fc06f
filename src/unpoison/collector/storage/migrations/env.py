"""Alembic's environment: runs migrations on the connection that `storage.migration` passes."""

from __future__ import annotations

from alembic import context

# Other tools import this file too, and then Alembic has set nothing up.
if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    context.run_migrations()
