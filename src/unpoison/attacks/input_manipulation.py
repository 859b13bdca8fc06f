"""Input manipulation: attackers report a false value as honest users report a true one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.target import Target, check_categories
from unpoison.mechanisms import Mechanism
from unpoison.types import FloatArray, IntArray


@attacks.register("input")
@dataclass(frozen=True)
class InputManipulation(Attack):
    """Every attacker perturbs `value` as the mechanism asks, like honest users who hold it.

    The value of numbers is on a scale from -1 (the lowest) to 1 (the highest), a formula in which
    O is the honest mean; of categories it is a name.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("square-wave", 4.0), honest_mean=0.1)
    >>> poison = InputManipulation("1/2").poison(target, 10_000, np.random.default_rng(1))
    >>> round(float(target.mechanism.decode(poison).mean()), 2)
    0.75
    """

    value: str = "1"
    categorical = None
    by_group = True

    @classmethod
    def example(cls, target: Target) -> InputManipulation:
        """The last category, or the highest number."""
        return cls(target.categories[-1]) if target.categories else cls()

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse also a value that is not among the categories."""
        super().check_fits(mechanism, categories)
        if categories:
            check_categories("input", [self.value], categories)

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Perturb the value once for each report."""
        return target.mechanism.perturb(np.full(count, target.input_of(self.value)), rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Draw counts as the mechanism does for honest users who hold the value."""
        value = np.array([target.input_of(self.value)])
        return target.mechanism.draw_counts(value, np.array([count]), rng)
