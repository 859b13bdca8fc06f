"""Poison around the middle of a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from unpoison.attacks.base import Target, attacks
from unpoison.attacks.spread import Spread
from unpoison.types import FloatArray

HALF = 3.0
"""Half of the range, in standard deviations."""
OUTSIDE = float(ndtr(-HALF))
"""How likely a normal number lies beyond one end."""


@attacks.register("gaussian")
@dataclass(frozen=True)
class Gaussian(Spread):
    """Normal on [low, high]: centred in the middle, a sixth of the length as standard deviation.

    What would lie outside is drawn again, so that the law is the truncated normal one.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Gaussian("C/2", "C").poison(target, 10_000, np.random.default_rng(1))
    >>> (np.array([poison.mean(), poison.std()]) / target.mechanism.C).round(2).tolist()
    [0.75, 0.08]
    """

    low: str = "C/2"
    high: str = "C"

    def shares(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """By the inverse of the distribution function, which is as good as drawing again."""
        chances = OUTSIDE + (1 - 2 * OUTSIDE) * rng.random(count)
        return np.asarray((ndtri(chances) + HALF) / (2 * HALF), dtype=np.float64)

    def below(self, target: Target, shares: FloatArray) -> FloatArray:
        """The truncated normal distribution function."""
        chances = ndtr(HALF * (2 * shares - 1))
        return np.asarray((chances - OUTSIDE) / (1 - 2 * OUTSIDE), dtype=np.float64)
