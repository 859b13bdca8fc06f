"""Point attack: all poison at one position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.target import Target
from unpoison.types import FloatArray, IntArray


@attacks.register("point")
@dataclass(frozen=True)
class Point(Attack):
    """Every poison value is `at`.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> bool((Point("C").poison(target, 3, np.random.default_rng(1)) == target.mechanism.C).all())
    True
    """

    at: str = "C"
    random = False

    @classmethod
    def example(cls, target: Target) -> Point:
        """The upper end of any report domain: the default is C, which only PM has."""
        return cls("R")

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Repeat one position as often as there are reports."""
        return target.report(np.full(count, target.position(self.at)))

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Put all reports into the position's cell."""
        counts = np.zeros(target.mechanism.cells, dtype=np.int64)
        counts[target.cell_of(self.poison(target, 1, rng))] = count
        return counts
