"""The base class of attacks on categories: each report is one of some categories, all as likely."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from unpoison.attacks.base import Attack
from unpoison.attacks.target import Target
from unpoison.types import FloatArray, IntArray


class CategoryAttack(Attack):
    """Sends chosen categories without noise; a subclass says which by `chosen_categories`.

    >>> from unpoison.mechanisms import make
    >>> class First(CategoryAttack):
    ...     def chosen_categories(self, target):
    ...         return np.array([0])
    >>> First().poison(Target(make("k-rr", 1.0, 3), np.nan), 2, np.random.default_rng(1)).tolist()
    [0.0, 0.0]
    """

    categorical = True

    @abstractmethod
    def chosen_categories(self, target: Target) -> IntArray:
        """The numbers of the categories."""

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw evenly among the chosen categories."""
        self.check_fits(target.mechanism, target.categories)
        return rng.choice(self.chosen_categories(target), count).astype(np.float64)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Divide evenly among the chosen categories."""
        self.check_fits(target.mechanism, target.categories)
        chosen = self.chosen_categories(target)
        counts = np.zeros(target.mechanism.cells, dtype=np.int64)
        counts[chosen] = rng.multinomial(count, np.full(len(chosen), 1 / len(chosen)))
        return counts
