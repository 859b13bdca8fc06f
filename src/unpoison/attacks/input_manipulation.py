"""Input manipulation: honest reports of a value that is not one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, Target, attacks, check_categories
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

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse also a value that is not among the categories."""
        super().check_fits(mechanism, categories)
        if categories:
            check_categories("input", [self.value], categories)

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Perturb the value once for each report."""
        return target.mechanism.perturb(np.full(count, target.input_of(self.value)), rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """As the mechanism draws the counts of honest users."""
        held = np.array([target.input_of(self.value)])
        return target.mechanism.draw_counts(held, np.array([count]), rng)
