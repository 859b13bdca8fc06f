"""Targets attack: poison on categories that are named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import attacks
from unpoison.attacks.categories import CategoryAttack
from unpoison.attacks.target import Target, check_categories
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.types import IntArray


@attacks.register("targets")
@dataclass(frozen=True)
class Targets(CategoryAttack):
    """Every attacker reports one of the named categories, each as likely, without noise.

    In the written form names are between commas; a name with a comma in it can be given in
    Python only.

    >>> from unpoison.mechanisms import make
    >>> drinks = Target(make("k-rr", 1.0, 3), np.nan, categories=("tea", "coffee", "milk"))
    >>> poison = Targets(("tea", "milk")).poison(drinks, 1000, np.random.default_rng(1))
    >>> sorted(set(poison.tolist()))
    [0.0, 2.0]
    """

    names: tuple[str, ...] = ()

    @classmethod
    def example(cls, target: Target) -> Targets:
        """The first and the last category."""
        return cls((target.categories[0], target.categories[-1]))

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise InvalidParameter("names", "must be a tuple of names", repr(self.names))
        object.__setattr__(self, "names", tuple(self.names))

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse also no names, a name twice, and names that are not among the categories."""
        super().check_fits(mechanism, categories)
        if not self.names:
            raise InvalidParameter("names", "must be one category or more", "none")
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise InvalidParameter(
                "names", "must be different categories", f"{repeated[0]!r} twice"
            )
        if categories:
            check_categories("names", self.names, categories)

    def chosen_categories(self, target: Target) -> IntArray:
        """The numbers of the named categories."""
        if not target.categories:
            raise InvalidParameter("target", "must name its categories", "none")
        return np.array([target.categories.index(name) for name in self.names])
