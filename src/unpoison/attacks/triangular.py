"""Triangular attack: poison densest at one point of a range, thinning out towards its ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import attacks
from unpoison.attacks.ranges import RangeAttack
from unpoison.attacks.target import Target
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray


@attacks.register("triangular")
@dataclass(frozen=True)
class Triangular(RangeAttack):
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

    def draw_fractions(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Numbers of the triangular distribution."""
        return rng.triangular(0.0, self._mode(target), 1.0, count)

    def distribution_function(self, target: Target, fractions: FloatArray) -> FloatArray:
        """A parabola up to the peak, and another one after it."""
        mode = self._mode(target)
        rising = fractions**2 / mode if mode else np.zeros_like(fractions)
        falling = 1 - (1 - fractions) ** 2 / (1 - mode) if mode < 1 else np.ones_like(fractions)
        return np.where(fractions < mode, rising, falling)

    def _mode(self, target: Target) -> float:
        """The peak as a fraction of the way from low to high."""
        low, high = self.ends(target)
        if not self.peak:
            return 0.5
        peak = target.position(self.peak)
        if not low <= peak <= high:
            rule = f"must be from {self.low} to {self.high}"
            raise InvalidParameter("peak", rule, self.peak)
        return (peak - low) / (high - low) if low < high else 0.5
