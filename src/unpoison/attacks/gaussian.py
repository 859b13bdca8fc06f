"""Gaussian attack: poison around the middle of a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.attacks.base import attacks
from unpoison.attacks.ranges import RangeAttack
from unpoison.attacks.target import Target
from unpoison.types import FloatArray

HALF_RANGE = 3.0
"""Half of the range in standard deviations: 99.7 % of a normal distribution lie within it."""


@attacks.register("gaussian")
@dataclass(frozen=True)
class Gaussian(RangeAttack):
    """Normal on [low, high]: centred in the middle, a sixth of the length as standard deviation.

    What would lie outside is drawn again, so that the distribution is the truncated normal one.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Gaussian("C/2", "C").poison(target, 10_000, np.random.default_rng(1))
    >>> (np.array([poison.mean(), poison.std()]) / target.mechanism.C).round(2).tolist()
    [0.75, 0.08]
    """

    low: str = "C/2"
    high: str = "C"

    def draw_fractions(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw by the inverse of the distribution function, which equals drawing again."""
        tail = _beyond_one_end()
        probabilities = tail + (1 - 2 * tail) * rng.random(count)
        return np.asarray(
            (scipy.special.ndtri(probabilities) + HALF_RANGE) / (2 * HALF_RANGE), dtype=np.float64
        )

    def distribution_function(self, target: Target, fractions: FloatArray) -> FloatArray:
        """The truncated normal distribution function."""
        tail, probabilities = (
            _beyond_one_end(),
            scipy.special.ndtr(HALF_RANGE * (2 * fractions - 1)),
        )
        return np.asarray((probabilities - tail) / (1 - 2 * tail), dtype=np.float64)


def _beyond_one_end() -> float:
    """The probability that a normal number lies beyond one end of the range."""
    return float(scipy.special.ndtr(-HALF_RANGE))
