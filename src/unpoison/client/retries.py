"""When a request is sent again: which responses allow it, how long to wait, when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom

from unpoison.errors import InvalidParameter

RETRIED_STATUSES = frozenset((408, 429, 500, 502, 503, 504))
"""Statuses of a collector, or a proxy before it, that is overloaded or restarting: the identical
request may succeed later. All other statuses are final."""
MAX_ATTEMPTS = 100
"""The most that may be configured: at the longest default wait they take half an hour."""
MAX_SECONDS = 24 * 60 * 60.0
"""A day: no configured wait, and no Retry-After, is taken to be longer."""
MAX_DOUBLINGS = 30
"""Keeps 2.0**doublings finite at any number of attempts; `longest` cuts in long before."""
MAX_RETRY_AFTER_DIGITS = 12
"""More digits are cut off before they become a float: a header line may be 64 KiB of digits."""


@dataclass(frozen=True)
class Retries:
    """Exponential back-off: waits double up to a bound, and each is scaled by a random factor.

    The random factor keeps devices that failed together, when a collector restarts, from coming
    back together.

    >>> retries = Retries(attempts=3, first=0.5, longest=4.0)
    >>> all(0 <= retries.wait(3) <= 4 for _ in range(100))
    True
    >>> 20 <= retries.wait(0, retry_after=20.0) <= 20.5
    True
    """

    attempts: int = 6
    """How often a request is sent in all."""
    patience: float = 60.0
    """The most seconds for all attempts, waits and a Retry-After that is asked for included."""
    first: float = 0.5
    """The upper bound of the first wait, in seconds."""
    longest: float = 20.0
    """The upper bound of every wait, in seconds."""
    random: Callable[[], float] = field(default=SystemRandom().random, repr=False)
    """Gives the factor of a wait, in [0, 1)."""

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
        return self.random() * bound + (retry_after or 0.0)


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """The seconds of a Retry-After header, which may be a number or a date.

    >>> retry_after_seconds("120"), retry_after_seconds("soon"), retry_after_seconds(None)
    (120.0, None, None)
    >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    >>> retry_after_seconds("Sat, 31 Jan 2026 12:00:30 GMT", noon)
    30.0
    """
    text = (header or "").strip()
    # isdigit alone would also take superscripts such as ², of which float makes no number.
    if text.isascii() and text.isdigit():
        return min(float(text[:MAX_RETRY_AFTER_DIGITS]), MAX_SECONDS)
    try:
        remaining = parsedate_to_datetime(text) - (now or datetime.now(UTC))
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, remaining.total_seconds()), MAX_SECONDS)
