"""Noise instead of reports: poison on the whole report domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, Target, attacks
from unpoison.attacks.uniform import Uniform
from unpoison.types import FloatArray, IntArray

EVERYWHERE = Uniform("L", "R")


@attacks.register("noise")
@dataclass(frozen=True)
class Noise(Attack):
    """Uniform on all of the report domain; `random` is the like of it on categories.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("square-wave-integer", 1.0, 64), honest_mean=0.1)
    >>> poison = Noise().poison(target, 10_000, np.random.default_rng(1))
    >>> int(poison.min()), int(poison.max())
    (0, 63)
    """

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw evenly."""
        return EVERYWHERE.poison(target, count, rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Each cell is as likely."""
        return EVERYWHERE.poison_counts(target, count, rng)
