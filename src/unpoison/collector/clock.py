"""Clocks: the wall clock dates what is stored, the monotonic clock measures waiting times."""

from __future__ import annotations

import time
from datetime import UTC, datetime

DAY = 86400
"""Seconds in a day."""


class Clock:
    """The machine's clocks; tests pass others.

    >>> 0 <= Clock().steady()
    True
    """

    def now(self) -> int:
        """Seconds since 1970; may jump in either direction when the system's clock is set."""
        return int(time.time())

    def steady(self) -> float:
        """Seconds since an unspecified moment; never goes back, whoever sets the clock."""
        return time.monotonic()


def iso(seconds: int | None) -> str | None:
    """Format a moment as ISO 8601 text in UTC.

    >>> iso(0), iso(None)
    ('1970-01-01T00:00:00Z', None)
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
