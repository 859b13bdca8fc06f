"""Uniform attack: poison spread evenly over a range, the paper's default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import attacks
from unpoison.attacks.ranges import RangeAttack
from unpoison.attacks.target import Target
from unpoison.types import FloatArray


@attacks.register("uniform")
@dataclass(frozen=True)
class Uniform(RangeAttack):
    """Uniform on [low, high], for example [3C/4, C] or [O, C/2].

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Uniform("3C/4", "C").poison(target, 1000, np.random.default_rng(1))
    >>> bool(poison.min() >= 0.75 * target.mechanism.C)
    True
    """

    low: str = "3C/4"
    high: str = "C"

    def draw_fractions(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw evenly between the two ends."""
        return rng.random(count)

    def distribution_function(self, target: Target, fractions: FloatArray) -> FloatArray:
        """The distribution function of even poison: the fraction itself."""
        return fractions
