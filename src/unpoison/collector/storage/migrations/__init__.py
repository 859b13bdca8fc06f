"""Alembic's environment and all revisions of the schema."""
