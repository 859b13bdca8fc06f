"""Revisions of the schema, one file each, numbered in their order."""
