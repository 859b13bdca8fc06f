"""Adaptive attack: poison where budgets are largest, honest-looking reports elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.input_manipulation import InputManipulation
from unpoison.attacks.target import Target
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
    >>> [bool((Adaptive().poison(group, 1000, rng) > 0).all()) for group in (large, small)]
    [True, False]
    """

    groups: int = 2
    """Two, because the groups with the least noise weigh most in the mean."""
    low: str = "3C/4"
    high: str = "C"
    input: str = "O"
    by_group = True

    @classmethod
    def example(cls, target: Target) -> Adaptive:
        """Poison on the upper third of any report domain; only PM has C."""
        return cls(low="(L+2R)/3", high="R")

    def __post_init__(self) -> None:
        if not isinstance(self.groups, int | np.integer) or self.groups < 1:
            raise InvalidParameter("groups", "must be a whole number from 1", repr(self.groups))

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw the poison of the attack that `attack_in` names for the group."""
        return self.attack_in(target).poison(target, count, rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Draw the counts of the attack that `attack_in` names for the group."""
        return self.attack_in(target).poison_counts(target, count, rng)

    def attack_in(self, target: Target) -> Attack:
        """The attack in one group: uniform poison, or input manipulation."""
        if target.rank < self.groups:
            return Uniform(self.low, self.high)
        return InputManipulation(self.input)
