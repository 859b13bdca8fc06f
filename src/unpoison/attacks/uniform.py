"""Poison spread evenly over a range: the paper's default attack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Target, attacks
from unpoison.attacks.spread import Spread
from unpoison.types import FloatArray


@attacks.register("uniform")
@dataclass(frozen=True)
class Uniform(Spread):
    """Uniform on [low, high], for example [3C/4, C] or [O, C/2].

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Uniform("3C/4", "C").poison(target, 1000, np.random.default_rng(1))
    >>> bool(poison.min() >= 0.75 * target.mechanism.C)
    True
    """

    low: str = "3C/4"
    high: str = "C"

    def shares(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw evenly between the two ends."""
        return rng.random(count)

    def below(self, target: Target, shares: FloatArray) -> FloatArray:
        """As much of the poison as of the range."""
        return shares
