"""Poison that is densest at one point of a range, and thins out towards its ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Target, attacks
from unpoison.attacks.spread import Spread
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray


@attacks.register("triangular")
@dataclass(frozen=True)
class Triangular(Spread):
    """Triangular on [low, high], with the `peak` at a position in it, or else in the middle.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Triangular("0", "C", peak="C").poison(target, 10_000, np.random.default_rng(1))
    >>> round(float(poison.mean()) / target.mechanism.C, 2)
    0.67
    """

    low: str = "C/2"
    high: str = "C"
    peak: str = ""

    def shares(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Triangular numbers."""
        return rng.triangular(0.0, self._top(target), 1.0, count)

    def below(self, target: Target, shares: FloatArray) -> FloatArray:
        """A parabola up to the peak, and another one after it."""
        top = self._top(target)
        rising = shares**2 / top if top else np.zeros_like(shares)
        falling = 1 - (1 - shares) ** 2 / (1 - top) if top < 1 else np.ones_like(shares)
        return np.where(shares < top, rising, falling)

    def _top(self, target: Target) -> float:
        """The peak's share of the way from low to high."""
        low, high = self.ends(target)
        if not self.peak:
            return 0.5
        place = target.position(self.peak)
        if not low <= place <= high:
            rule = f"must be from {self.low} to {self.high}"
            raise InvalidParameter("peak", rule, self.peak)
        return (place - low) / (high - low) if low < high else 0.5
