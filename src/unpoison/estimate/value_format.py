"""Numbers in natural units as people read them, with digits by the width of an interval.

`collector/page/static/value-format.js` follows the same rule, so that a verdict and the page around
it write the same number alike; shared test vectors hold the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

from unpoison.plan import Plan

DIGITS_OF_WIDTH = 3
"""Digits of an interval's width that are shown: further ones are noise."""
PART_OF_RANGE = 100
"""Without an interval, digits are those of one as wide as this part of the range."""
LEAST_WIDTH = 1e-9
"""An interval narrower than this share of the range is taken as none: that is rounding error."""
MOST_DECIMALS = 12
"""With more decimals than this, a number is written with a power of ten."""
LARGEST_WHOLE = 1e15
"""From here on a number is written with a power of ten: float64 has no more than 15 digits."""
MOST_DIGITS = 15
"""Decimals before a power of ten, at most: float64 has no more."""


@dataclass(frozen=True)
class ValueFormat:
    """How the values of one estimate are written: down to 10^`place`, with commas and the unit.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=86_400, unit="s")
    >>> write = ValueFormat.of(plan, (23_456.7, 24_505.9))
    >>> write(23_980.6), write.between((23_456.7, 24_505.9))
    ('23,981 s', '23,457 to 24,506 s')
    >>> ValueFormat.of(Plan.new(epsilon=1.0, low=0, high=1), (0.2511, 0.2639))(0.25754)
    '0.2575'
    """

    place: int
    unit: str | None = None

    @classmethod
    def of(cls, plan: Plan, interval: tuple[float, float] | None = None) -> ValueFormat:
        """The format of values whose interval is given, or else of any values of the plan."""
        low, high = plan.bounds
        width = 0.0 if interval is None else interval[1] - interval[0]
        if not LEAST_WIDTH * (high - low) < width < float("inf"):
            width = (high - low) / PART_OF_RANGE
        # The shortest text of a float, which JavaScript writes too: a logarithm may be off by one.
        return cls(Decimal(repr(width)).adjusted() - DIGITS_OF_WIDTH + 1, plan.unit)

    def __call__(self, value: float) -> str:
        """A number with its unit, if it has one."""
        return f"{self.number(value)}{self._suffix}"

    def between(self, interval: tuple[float, float]) -> str:
        """Two ends with their unit."""
        return f"{self.number(interval[0])} to {self.number(interval[1])}{self._suffix}"

    def number(self, value: float) -> str:
        """A number without its unit."""
        exact = Decimal(value)
        # Halves are rounded up, as JavaScript does; Python's own formats round them to even.
        with localcontext(rounding=ROUND_HALF_UP):
            if self.place >= -MOST_DECIMALS and abs(value) < LARGEST_WHOLE:
                return _plain_zero(f"{exact:,.{max(0, -self.place)}f}")
            if not value:
                return "0"
            decimals = min(MOST_DIGITS, max(0, exact.adjusted() - self.place))
            return f"{exact:.{decimals}e}"

    @property
    def _suffix(self) -> str:
        return "" if self.unit is None else f" {self.unit}"


def _plain_zero(text: str) -> str:
    """Zero without a sign, such as a small negative number is rounded to."""
    return text if text.strip("-0.") else text.lstrip("-")
