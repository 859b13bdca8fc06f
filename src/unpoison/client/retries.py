"""How long to wait before asking again, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom

from unpoison.errors import InvalidParameter

RETRIED = frozenset((408, 429, 500, 502, 503, 504))
"""Answers after which the identical request may be sent again."""
MAX_ATTEMPTS = 100
MAX_SECONDS = 24 * 60 * 60.0
MAX_DOUBLINGS = 30


@dataclass(frozen=True)
class Retries:
    """Waits that double up to a bound, each shortened at random, so that devices do not march.

    >>> retries = Retries(attempts=3, first=0.5, longest=4.0)
    >>> all(0 <= retries.wait(3) <= 4 for _ in range(100))
    True
    >>> 20 <= retries.wait(0, retry_after=20.0) <= 20.5
    True
    """

    attempts: int = 6
    """How often a request is sent in all."""
    patience: float = 60.0
    """The most seconds for all of it, waits and a Retry-After that is asked for included."""
    first: float = 0.5
    longest: float = 20.0
    chance: Callable[[], float] = field(default=SystemRandom().random, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise InvalidParameter("attempts", f"must be from 1 to {MAX_ATTEMPTS}", self.attempts)
        for name in ("patience", "first", "longest"):
            if not 0 < getattr(self, name) <= MAX_SECONDS:
                rule = f"must be seconds, positive and at most {MAX_SECONDS:g}"
                raise InvalidParameter(name, rule, getattr(self, name))

    def wait(self, retried: int, retry_after: float | None = None) -> float:
        """Seconds to wait after so many retries; never less than the collector asks for."""
        bound = min(self.longest, self.first * 2.0 ** min(retried, MAX_DOUBLINGS))
        return self.chance() * bound + (retry_after or 0.0)


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date.

    >>> retry_after("120"), retry_after("soon"), retry_after(None)
    (120.0, None, None)
    >>> retry_after("Sat, 31 Jan 2026 12:00:30 GMT", datetime(2026, 1, 31, 12, tzinfo=UTC))
    30.0
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_SECONDS)
    try:
        left = parsedate_to_datetime(text) - (now or datetime.now(UTC))
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, left.total_seconds()), MAX_SECONDS)
