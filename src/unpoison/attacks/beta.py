"""Beta attack: poison that leans towards one end of a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.attacks.base import attacks
from unpoison.attacks.ranges import RangeAttack
from unpoison.attacks.target import Target
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray

SHAPES = (0.01, 1e4)
"""The least and largest shape: beyond them nearly all poison is at one or two points."""


@attacks.register("beta")
@dataclass(frozen=True)
class Beta(RangeAttack):
    """Beta(a, b), stretched over [low, high]: near low if a < b, near high if a > b.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Beta("0", "C", a=6, b=2).poison(target, 10_000, np.random.default_rng(1))
    >>> round(float(poison.mean()) / target.mechanism.C, 2)
    0.75
    """

    low: str = "C/2"
    high: str = "C"
    a: float = 1.0
    b: float = 6.0
    """With a = 1, poison is densest at low, the end that is nearer to honest reports."""

    def __post_init__(self) -> None:
        least, largest = SHAPES
        for name, shape in (("a", self.a), ("b", self.b)):
            if not least <= shape <= largest:
                raise InvalidParameter(name, f"must be in [{least:g}, {largest:g}]", shape)

    def draw_fractions(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Numbers of the Beta distribution."""
        return rng.beta(self.a, self.b, count)

    def distribution_function(self, target: Target, fractions: FloatArray) -> FloatArray:
        """The regularised incomplete beta function."""
        return np.asarray(scipy.special.betainc(self.a, self.b, fractions), dtype=np.float64)
