"""Values on a lattice: low, low + step, …, high, as of stars and whole numbers."""

from __future__ import annotations

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.types import BoolArray, FloatArray

WHOLE_STEPS = 1e-9
"""Distance of the number of steps from a whole number that is allowed, as a fraction: far more than
the rounding of decimals such as 0.1, and far less than a step that was mistyped."""
MOST_STEPS = 2**32
"""A device rounds its window's offset to as many places (`mechanisms.integer.FRACTION_BITS`)."""
ON_A_VALUE = 1e-6
"""Distance from a value, in steps, up to which a number is that value: decimals are rounded."""


def step_count(low: float, high: float, step: float) -> int:
    """The number of steps from low to high; an error if it is not a whole number.

    >>> step_count(0.0, 1.0, 0.1)
    10
    >>> step_count(1.0, 5.0, 3.0)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: step must divide high - low, 4, into whole steps; received 3
    """
    if not step > 0:
        raise InvalidParameter("step", "must be positive", f"{step:g}")
    ratio = (high - low) / step
    if ratio > MOST_STEPS + 0.5:
        raise InvalidParameter("step", "must leave at most 2^32 steps", f"{step:g}")
    steps = round(ratio)
    if steps < 1 or abs(ratio - steps) > WHOLE_STEPS * steps:
        rule = f"must divide high - low, {high - low:.15g}, into whole steps"
        raise InvalidParameter("step", rule, f"{step:.15g}")
    return steps


def nearest_shares(shares: FloatArray, steps: int) -> FloatArray:
    """The nearest of 0, 1/steps, …, 1 to each share of the range.

    >>> nearest_shares(np.array([0.0, 0.3, 0.9]), 4).tolist()
    [0.0, 0.25, 1.0]
    """
    nearest: FloatArray = np.rint(shares * steps) / steps
    return nearest


def between_values(shares: FloatArray, steps: int) -> BoolArray:
    """Whether each share of the range lies between two values of the lattice.

    >>> between_values(np.array([0.1 + 0.2, 0.35]), 10).tolist()
    [False, True]
    """
    place = shares * steps
    between: BoolArray = np.abs(place - np.rint(place)) > ON_A_VALUE
    return between
