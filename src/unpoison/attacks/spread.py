"""What attacks on a range share: poison spread over [low, high] by some law."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from unpoison.attacks.base import Attack, Target
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray, IntArray


class Spread(Attack):
    """Poison on [low, high]: an attack says how it draws shares of the way from low to high.

    `below` is the distribution function of these shares, from which counts are drawn directly.

    >>> from unpoison.mechanisms import make
    >>> class LowerHalf(Spread):
    ...     low, high = "L", "R"
    ...     def shares(self, target, count, rng):
    ...         return rng.random(count) / 2
    ...     def below(self, target, shares):
    ...         return np.minimum(2 * shares, 1)
    >>> target = Target(make("piecewise", 1.0, 4), honest_mean=0.1)
    >>> LowerHalf().poison_counts(target, 1000, np.random.default_rng(1))[2:].tolist()
    [0, 0]
    """

    low: str
    high: str

    @abstractmethod
    def shares(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """As many numbers from 0 (low) to 1 (high) as asked."""

    @abstractmethod
    def below(self, target: Target, shares: FloatArray) -> FloatArray:
        """How likely a drawn share is at most each of `shares`, which are in [0, 1]."""

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Stretch the shares over the range."""
        low, high = self.ends(target)
        places = low + (high - low) * self.shares(target, count, rng)
        return target.report(np.clip(places, low, high))

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Each cell has as much of the poison as the law puts between its edges."""
        low, high = self.ends(target)
        if low == high:
            return super().poison_counts(target, count, rng)
        edges = np.clip((target.mechanism.grid() - low) / (high - low), 0.0, 1.0)
        weights = np.maximum(np.diff(self.below(target, edges)), 0.0)
        return rng.multinomial(count, weights / weights.sum())

    def ends(self, target: Target) -> tuple[float, float]:
        """Where the range lies in the report domain."""
        low, high = target.position(self.low), target.position(self.high)
        if low > high:
            raise InvalidParameter("attack range", "must go upwards", f"{self.low}, {self.high}")
        return low, high
