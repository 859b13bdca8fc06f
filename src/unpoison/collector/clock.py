"""What time it is: the wall clock for what is written down, a steady one for what is waited for."""

from __future__ import annotations

import time
from datetime import UTC, datetime

DAY = 86400


class Clock:
    """The machine's clocks; tests give others.

    >>> 0 <= Clock().steady()
    True
    """

    def now(self) -> int:
        """Seconds since 1970; may be stepped back or forward by whoever sets the clock."""
        return int(time.time())

    def steady(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()


def iso(seconds: int | None) -> str | None:
    """A moment as text, in UTC.

    >>> iso(0), iso(None)
    ('1970-01-01T00:00:00Z', None)
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
