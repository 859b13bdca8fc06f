"""The base class of attacks on a range: poison on [low, high] with a known distribution."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from unpoison.attacks.base import Attack
from unpoison.attacks.target import Target
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray, IntArray


class RangeAttack(Attack):
    """Poison on [low, high]: a subclass says how it draws fractions of the way from low to high.

    Counts are drawn directly from the distribution function of these fractions.

    >>> from unpoison.mechanisms import make
    >>> class LowerHalf(RangeAttack):
    ...     low, high = "L", "R"
    ...     def draw_fractions(self, target, count, rng):
    ...         return rng.random(count) / 2
    ...     def distribution_function(self, target, fractions):
    ...         return np.minimum(2 * fractions, 1)
    >>> target = Target(make("piecewise", 1.0, 4), honest_mean=0.1)
    >>> LowerHalf().poison_counts(target, 1000, np.random.default_rng(1))[2:].tolist()
    [0, 0]
    """

    low: str
    high: str

    @classmethod
    def example(cls, target: Target) -> Attack:
        """The upper third of any report domain: the defaults end at C, which only PM has."""
        ends: dict[str, Any] = {"low": "(L+2R)/3", "high": "R"}
        return cls(**ends)

    @abstractmethod
    def draw_fractions(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """`count` numbers from 0 (low) to 1 (high)."""

    @abstractmethod
    def distribution_function(self, target: Target, fractions: FloatArray) -> FloatArray:
        """The probability of a drawn fraction up to each of `fractions`, which are in [0, 1]."""

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Stretch the drawn fractions over the range."""
        low, high = self.ends(target)
        positions = low + (high - low) * self.draw_fractions(target, count, rng)
        return target.report(np.clip(positions, low, high))

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Draw how many reports each cell gets from the probability between its edges."""
        low, high = self.ends(target)
        if low == high:
            return super().poison_counts(target, count, rng)
        edges = np.clip((target.mechanism.grid() - low) / (high - low), 0.0, 1.0)
        # Rounding may make a difference of two nearly equal probabilities negative.
        weights = np.maximum(np.diff(self.distribution_function(target, edges)), 0.0)
        return rng.multinomial(count, weights / weights.sum())

    def ends(self, target: Target) -> tuple[float, float]:
        """The two ends of the range, as positions in the report domain."""
        low, high = target.position(self.low), target.position(self.high)
        if low > high:
            raise InvalidParameter("attack range", "must go upwards", f"{self.low}, {self.high}")
        return low, high
