"""Campaigns and what happens in them, as functions of one database transaction."""
