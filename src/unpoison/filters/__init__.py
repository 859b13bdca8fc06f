"""Filters: the poison in the reports, and what is left without it."""
