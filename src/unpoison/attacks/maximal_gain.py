"""The maximal gain attack of Cao, Jia and Gong (2021), on k-ary randomised response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import attacks
from unpoison.attacks.categories import CategoryAttack
from unpoison.attacks.target import Target
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.types import IntArray


@attacks.register("maximal-gain")
@dataclass(frozen=True)
class MaximalGain(CategoryAttack):
    """Every attacker reports one of `count` targets, without noise.

    No other reports raise the sum of the targets' estimated frequencies more. The attackers
    choose as targets the categories that are rarest among the honest users (of equally rare ones
    the first): with these the gain is largest, and most of all relative to the truth.

    >>> from unpoison.mechanisms import make
    >>> shares = np.array([0.6, 0.1, 0.3])
    >>> drinks = Target(make("k-rr", 1.0, 3), np.nan, ("tea", "coffee", "milk"), shares)
    >>> MaximalGain().poison(drinks, 3, np.random.default_rng(1)).tolist()
    [1.0, 1.0, 1.0]
    """

    count: int = 1

    @classmethod
    def example(cls, target: Target) -> MaximalGain:
        """Two targets, so that reports vary."""
        return cls(count=2)

    def __post_init__(self) -> None:
        if not isinstance(self.count, int | np.integer) or self.count < 1:
            raise InvalidParameter("count", "must be a whole number from 1", repr(self.count))

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse also more targets than there are categories."""
        super().check_fits(mechanism, categories)
        if self.count > mechanism.cells:
            rule = f"must be at most the number of categories, {mechanism.cells}"
            raise InvalidParameter("count", rule, self.count)

    def chosen_categories(self, target: Target) -> IntArray:
        """The rarest categories, the rarest first."""
        cells = target.mechanism.cells
        if target.frequencies is None or np.shape(target.frequencies) != (cells,):
            shape = "none" if target.frequencies is None else np.shape(target.frequencies)
            raise InvalidParameter("frequencies", f"must be known of all {cells} categories", shape)
        return np.argsort(target.frequencies, kind="stable")[: self.count]
