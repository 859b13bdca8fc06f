"""Random reports: poison spread evenly over all categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import attacks
from unpoison.attacks.categories import CategoryAttack
from unpoison.attacks.target import Target
from unpoison.types import IntArray


@attacks.register("random")
@dataclass(frozen=True)
class RandomReports(CategoryAttack):
    """Every attacker reports a category at random, all as likely.

    Honest users whose values are spread evenly over the categories send just such reports, so
    nobody can tell these attackers from them: they push every frequency towards 1/k.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("k-rr", 1.0, 3), np.nan)
    >>> poison = RandomReports().poison(target, 30_000, np.random.default_rng(1))
    >>> bool(abs(np.bincount(poison.astype(int)) / 10_000 - 1).max() < 0.05)
    True
    """

    def chosen_categories(self, target: Target) -> IntArray:
        """The numbers of all categories of the plan."""
        return np.arange(target.mechanism.cells)
