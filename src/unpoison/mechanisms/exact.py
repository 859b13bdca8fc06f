"""Exact arithmetic for privacy budgets: nothing about ε is left to rounding."""

from __future__ import annotations

import math
from fractions import Fraction

SIGNIFICANT_DIGITS = 15
"""Every decimal with so many digits survives a round trip through float64."""


def exact(number: float) -> Fraction:
    """A float as the fraction that its shortest decimal text denotes, so that 0.3 / 0.1 is 3.

    >>> exact(0.3) / exact(0.1)
    Fraction(3, 1)
    """
    return Fraction(repr(float(number)))


def decimal_at_most(number: Fraction) -> float:
    """The largest float with at most 15 significant decimal digits that is not above `number`.

    >>> decimal_at_most(Fraction(3, 20)), decimal_at_most(Fraction(1, 3))
    (0.15, 0.333333333333333)
    """
    digits = SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(number))
    scaled = number * Fraction(10) ** digits
    return float(Fraction(math.floor(scaled)) / Fraction(10) ** digits)


def halvings(whole: Fraction, smallest: Fraction) -> int:
    """⌈log2(whole / smallest)⌉ without logarithms.

    >>> halvings(Fraction(3, 2), Fraction(1, 16))
    5
    """
    count = 0
    while whole > smallest:
        whole /= 2
        count += 1
    return count


def floor_times_exp(factor: int, exponent: Fraction) -> int:
    """⌊factor · e^exponent⌋ for a positive exponent, certified by bounds on both sides.

    Partial sums of the exponential series bound e^x from below; adding the last term times
    x / (terms − x) bounds the rest from above. Terms are added until both floors agree.

    >>> floor_times_exp(2**24, Fraction(1))
    45605201
    """
    term = partial = Fraction(1)
    count = 0
    while True:
        count += 1
        term *= exponent / count
        partial += term
        if count <= exponent:
            continue  # Only from here on do terms fall, which the bound on the rest needs.
        rest = term * exponent / (count + 1 - exponent)
        lower, upper = math.floor(factor * partial), math.floor(factor * (partial + rest))
        if lower == upper:
            return lower
