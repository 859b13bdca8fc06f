"""Attackers who look at the budget of their group first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, Target, attacks
from unpoison.attacks.input_manipulation import InputManipulation
from unpoison.attacks.uniform import Uniform
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray, IntArray


@attacks.register("adaptive")
@dataclass(frozen=True)
class Adaptive(Attack):
    """Uniform poison on [low, high] where the budget is among the `groups` largest of the plan.

    Elsewhere attackers perturb `input` as honest users would, on a scale from -1 to 1; by default
    the honest mean, so that these groups average to the truth.

    >>> from unpoison.mechanisms import make
    >>> large, small = (Target(make("piecewise", 1 / 2**n), 0.1, rank=n, groups=5) for n in (1, 2))
    >>> rng = np.random.default_rng(1)
    >>> [bool((Adaptive().poison(each, 1000, rng) > 0).all()) for each in (large, small)]
    [True, False]
    """

    groups: int = 2
    low: str = "3C/4"
    high: str = "C"
    input: str = "O"
    by_group = True

    def __post_init__(self) -> None:
        if not isinstance(self.groups, int | np.integer) or self.groups < 1:
            raise InvalidParameter("groups", "must be a whole number from 1", repr(self.groups))

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """As the group's budget suggests."""
        return self.chosen(target).poison(target, count, rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """As the group's budget suggests."""
        return self.chosen(target).poison_counts(target, count, rng)

    def chosen(self, target: Target) -> Attack:
        """What the attackers of a group do."""
        if target.rank < self.groups:
            return Uniform(self.low, self.high)
        return InputManipulation(self.input)
