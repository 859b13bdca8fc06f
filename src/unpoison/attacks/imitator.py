"""Imitator attack: reports become those of other honest users, so that nobody seems to attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.by_groups import check_not_placed
from unpoison.attacks.imitation import Gain, Imitated, Imitation
from unpoison.attacks.none import NoAttack
from unpoison.attacks.target import Target, check_categories
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.registry import check_name
from unpoison.types import FloatArray, IntArray

DIRECTIONS = ("up", "down")
NO_DECOY = NoAttack()


@attacks.register("imitator")
@dataclass(frozen=True)
class Imitator(Attack):
    """Makes all reports those of other honest users, whose mean is as far `towards` as can be.

    `towards` is "up" or "down"; of categories it is the name of the one to promote. No method can
    tell from the reports that anybody attacks: those users may be the honest ones. With a `decoy`
    the reports are those of other honest users and of so much visible poison, as a multiple of the
    attackers' own share. It is of the kind that `attack` sends, or, where that is none, what takes
    the others farthest, alike in all groups. Attackers need to know the plan, the honest users'
    values and their own share.

    >>> from unpoison.attacks.target import Collection
    >>> from unpoison.mechanisms import make
    >>> groups = tuple(Target(make("piecewise", 1 / 2**n), 0.0, group=n, groups=2) for n in (0, 1))
    >>> collection = Collection(groups, np.linspace(-1, 1, 100), byzantine_fraction=0.2)
    >>> targets, rng = (collection.target(0), collection.target(1)), np.random.default_rng(1)
    >>> [round(float(Imitator().poison(target, 10**5, rng).mean()), 1) for target in targets]
    [2.4, 2.4]
    """

    towards: str = "up"
    decoy: float = 0.0
    attack: Attack = NO_DECOY
    categorical = None
    by_group = True

    @classmethod
    def example(cls, target: Target) -> Imitator:
        """Towards the last category, or upwards."""
        return cls(target.categories[-1]) if target.categories else cls()

    def __post_init__(self) -> None:
        check_not_placed(self.attack)
        if not 0 <= self.decoy < np.inf:
            raise InvalidParameter("decoy", "must be a number from 0", self.decoy)

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse also a direction that is none, and a decoy that does not fit."""
        super().check_fits(mechanism, categories)
        if not mechanism.categorical:
            check_name("towards", self.towards, DIRECTIONS)
        elif categories:
            check_categories("towards", [self.towards], categories)
        if self.decoy and self.attack.active:
            self.attack.check_fits(mechanism, categories)

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw cells, and places in them."""
        chances = self.chances(target)
        cells = rng.choice(len(chances), count, p=chances)
        if target.mechanism.discrete:
            return cells.astype(np.float64)
        grid = target.mechanism.grid()
        return np.asarray(grid[cells] + rng.random(count) * (grid[cells + 1] - grid[cells]))

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Divide reports among the cells."""
        return rng.multinomial(count, self.chances(target))

    def chances(self, target: Target) -> FloatArray:
        """The chance of each cell of the target's group for a poison report."""
        return self.agreed(target).poison[target.group]

    def agreed(self, target: Target) -> Imitated:
        """The imitation that attackers of all groups work out once, from what they know."""
        collection = target.known_collection
        share = collection.byzantine_fraction
        if not share > 0:
            raise InvalidParameter("byzantine_fraction", "must be above 0 to imitate", share)
        program = Imitation(collection, self._gain(target), self.decoy * share, self.attack)
        return collection.agreed(self, program.solve)

    def _gain(self, target: Target) -> Gain:
        """The attackers' gain: large inputs, small ones, or one category."""
        if target.mechanism.categorical:
            promoted = target.category(self.towards)
            return lambda inputs: inputs == promoted
        sign = 1 if self.towards == "up" else -1
        return lambda inputs: sign * inputs
