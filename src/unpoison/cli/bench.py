"""`unpoison bench`: speed as ratios, measured in one run."""

from __future__ import annotations


def bench() -> None:
    """Placeholder."""
