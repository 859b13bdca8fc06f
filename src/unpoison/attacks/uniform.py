"""Poison spread evenly over a range: the paper's default attack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, Target, attacks
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray, IntArray


@attacks.register("uniform")
@dataclass(frozen=True)
class Uniform(Attack):
    """Uniform on [low, high], for example [3C/4, C] or [O, C/2].

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Uniform("3C/4", "C").poison(target, 1000, np.random.default_rng(1))
    >>> bool(poison.min() >= 0.75 * target.mechanism.C)
    True
    """

    low: str = "3C/4"
    high: str = "C"

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw evenly between the two ends."""
        low, high = self._range(target)
        return target.report(low + (high - low) * rng.random(count))

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Each cell has as much of the poison as it has of the range."""
        low, high = self._range(target)
        if low == high:
            return super().poison_counts(target, count, rng)
        covered = np.diff(np.clip(target.mechanism.grid(), low, high))
        return rng.multinomial(count, covered / covered.sum())

    def _range(self, target: Target) -> tuple[float, float]:
        low, high = target.position(self.low), target.position(self.high)
        if low > high:
            raise InvalidParameter("attack range", "must go upwards", f"{self.low}, {self.high}")
        return low, high
