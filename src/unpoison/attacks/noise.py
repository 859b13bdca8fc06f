"""Noise attack: poison spread evenly over the whole report domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.target import Target
from unpoison.attacks.uniform import Uniform
from unpoison.types import FloatArray, IntArray

WHOLE_DOMAIN = Uniform("L", "R")


@attacks.register("noise")
@dataclass(frozen=True)
class Noise(Attack):
    """Uniform on all of the report domain; on categories `random` does the same.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("square-wave-integer", 1.0, 64), honest_mean=0.1)
    >>> poison = Noise().poison(target, 10_000, np.random.default_rng(1))
    >>> int(poison.min()), int(poison.max())
    (0, 63)
    """

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw evenly from the whole domain."""
        return WHOLE_DOMAIN.poison(target, count, rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Draw counts in which every cell is as likely."""
        return WHOLE_DOMAIN.poison_counts(target, count, rng)
