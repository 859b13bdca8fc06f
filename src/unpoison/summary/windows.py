"""Windows of time: their bounds, their names, and the widths that users write, such as 1h."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from unpoison.errors import InvalidParameter

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""Length of each unit that a width may have. Months and years are none: their lengths vary."""
PER_SECOND = 10**6
"""Moments are whole microseconds, as Parquet and Python have them."""
SHORTEST, LONGEST = 1, 3660 * 86_400
"""Seconds: file names have whole seconds, and ten years are no window of a metric."""


@dataclass(frozen=True, order=True)
class Window:
    """A span of time, from a moment up to another one, in microseconds since 1970 (UTC).

    >>> hour = Window(0, 3600 * 10**6)
    >>> str(hour), hour.file_name
    ('1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z', '19700101T000000Z-3600s')
    """

    start: int
    end: int

    def __str__(self) -> str:
        return f"{utc_text(self.start)} to {utc_text(self.end)}"

    @property
    def file_name(self) -> str:
        """A name that sorts by time, and that every file system takes."""
        return f"{utc_datetime(self.start):%Y%m%dT%H%M%SZ}-{self.width // PER_SECOND}s"

    @property
    def width(self) -> int:
        """The length of the window in microseconds."""
        return self.end - self.start

    def hull(self, other: Window) -> Window:
        """The shortest window that holds both."""
        return Window(min(self.start, other.start), max(self.end, other.end))


def utc_datetime(micros: int) -> datetime:
    """A moment as a Python datetime, in UTC.

    >>> utc_datetime(86_400 * 10**6).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def utc_text(micros: int) -> str:
    """A moment as ISO 8601 text, in UTC.

    >>> utc_text(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return utc_datetime(micros).isoformat().replace("+00:00", "Z")


def parse_width(text: str) -> int:
    """A width in microseconds, from a number and a unit: s, m, h, d or w.

    >>> parse_width("15m") // 10**6
    900
    >>> parse_width("soon")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: window must be a number and s, m, h, d or w, ...
    """
    rule = "must be a number and s, m, h, d or w, such as 15m or 1h; at most ten years"
    match = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip())
    if match is None:
        raise InvalidParameter("window", rule, repr(text))
    seconds = int(match[1]) * UNIT_SECONDS[match[2]]
    if not SHORTEST <= seconds <= LONGEST:
        raise InvalidParameter("window", rule, repr(text))
    return seconds * PER_SECOND
