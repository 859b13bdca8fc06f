"""Runs migrations on the connection that is given; there is no other way to run them."""

from __future__ import annotations

from alembic import context

if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    context.run_migrations()
