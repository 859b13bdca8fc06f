"""The base class of attacks that send what another attack sends, but not in all groups alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from unpoison.attacks.base import Attack
from unpoison.attacks.placement import Placement
from unpoison.attacks.random_reports import RandomReports
from unpoison.attacks.target import Target
from unpoison.attacks.uniform import Uniform
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.plan import Plan
from unpoison.types import FloatArray, IntArray

OUTER_QUARTER = Uniform()
"""What attackers send where no other attack is given: the paper's default."""


class AttackByGroups(Attack):
    """Sends what its field `attack` sends; a subclass says how groups differ.

    Groups have the numbers that reports give them, from 0. In a collection that has one group only,
    there is nothing to choose, and attackers attack in it.

    >>> from dataclasses import dataclass
    >>> from unpoison.attacks.point import Point
    >>> from unpoison.mechanisms import make
    >>> @dataclass(frozen=True)
    ... class Everywhere(AttackByGroups):
    ...     attack: Attack = Point("R")
    >>> Everywhere().poison(Target(make("k-rr", 1.0, 3), np.nan), 1, np.random.default_rng(1))
    array([2.])
    """

    attack: Attack
    categorical = None
    by_group = True

    @classmethod
    def example(cls, target: Target) -> Attack:
        """The defaults, with another attack that fits the target."""
        kind = RandomReports if target.mechanism.categorical else Uniform
        attack: dict[str, Any] = {"attack": kind.example(target)}
        return cls(**attack)

    @property
    def active(self) -> bool:
        """Whether anybody attacks, which `attack` says."""
        return self.attack.active

    def check_plan(self, plan: Plan) -> None:
        """Refuse a plan that `attack` does not fit."""
        self.attack.check_plan(plan)

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse a mechanism that `attack` does not fit."""
        self.attack.check_fits(mechanism, categories)

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw the poison of `attack`."""
        return self.attack.poison(target, count, rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Draw the counts of the poison of `attack`."""
        return self.attack.poison_counts(target, count, rng)


class PlacedAttack(AttackByGroups):
    """Chooses how many attackers there are in each group, by `placement`.

    >>> from dataclasses import dataclass
    >>> from unpoison.attacks.placement import Placement
    >>> @dataclass(frozen=True)
    ... class Latecomers(PlacedAttack):
    ...     attack: Attack = OUTER_QUARTER
    ...     def placement(self, plan):
    ...         last = len(plan.groups) - 1
    ...         return Placement((0.0,) * last + (1.0,), on_top=True)
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> Latecomers().placement(plan).weights
    (0.0, 1.0)
    """

    def __post_init__(self) -> None:
        check_not_placed(self.attack)

    @abstractmethod
    def placement(self, plan: Plan) -> Placement:
        """The groups that attackers are in, for a plan."""

    def check_plan(self, plan: Plan) -> None:
        """Refuse also a plan in which users are in several groups, or have budgets of their own."""
        super().check_plan(plan)
        plan.require_one_group_and_budget()
        self.placement(plan)


def check_not_placed(attack: Attack) -> None:
    """Refuse an attack inside another that would choose its groups a second time.

    >>> from unpoison.attacks import Fishing
    >>> check_not_placed(Fishing())
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: attack must be one in all groups; received Fishing
    """
    if isinstance(attack, PlacedAttack):
        raise InvalidParameter("attack", "must be one in all groups", type(attack).__name__)


def check_group_numbers(numbers: Sequence[int]) -> None:
    """Refuse numbers that cannot be those of groups.

    >>> check_group_numbers((0, 0))
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: groups must be different whole numbers from 0; received (0, 0)
    """
    whole = all(isinstance(number, int | np.integer) and number >= 0 for number in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        rule = "must be different whole numbers from 0"
        raise InvalidParameter("groups", rule, tuple(numbers) or "none")


def check_groups_exist(numbers: Sequence[int], groups: int) -> None:
    """Refuse numbers of groups that a plan does not have, unless it has but one.

    >>> check_groups_exist((0, 3), groups=3)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: groups must be from 0 to 2 in this plan; received 3
    """
    if groups > 1 and max(numbers) >= groups:
        raise InvalidParameter(
            "groups", f"must be from 0 to {groups - 1} in this plan", max(numbers)
        )
