"""Some-groups attack: another attack in a set of groups, honest reports in all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.by_groups import (
    OUTER_QUARTER,
    AttackByGroups,
    check_group_numbers,
    check_groups_exist,
    check_not_placed,
)
from unpoison.attacks.target import Target
from unpoison.plan import Plan
from unpoison.types import FloatArray, IntArray


@attacks.register("some-groups")
@dataclass(frozen=True)
class SomeGroups(AttackByGroups):
    """`attack` in the `groups` of these numbers; elsewhere attackers report as honest users do.

    There they perturb values of their own, which are distributed like those of the honest users:
    these groups look as if nobody attacked. In the written form the other attack stands after a
    semicolon: `some-groups:0,2;point:C`.

    >>> from unpoison.attacks.target import Collection
    >>> from unpoison.mechanisms import make
    >>> mechanism = make("piecewise", 8.0)
    >>> groups = tuple(Target(mechanism, 0.1, groups=2, group=group) for group in (0, 1))
    >>> collection, rng = Collection(groups, np.array([0.1])), np.random.default_rng(1)
    >>> sent = [SomeGroups((1,)).poison(collection.target(n), 10_000, rng) for n in (0, 1)]
    >>> [round(float(reports.mean()), 1) for reports in sent]
    [0.1, 0.9]
    """

    groups: tuple[int, ...] = (0,)
    attack: Attack = OUTER_QUARTER

    def __post_init__(self) -> None:
        check_not_placed(self.attack)
        check_group_numbers(self.groups)

    def check_plan(self, plan: Plan) -> None:
        """Refuse also a plan that has not all of the groups."""
        super().check_plan(plan)
        check_groups_exist(self.groups, len(plan.all_groups))

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Poison of the other attack in an attacked group, honest reports elsewhere."""
        if self.attacked(target):
            return super().poison(target, count, rng)
        return target.mechanism.perturb(target.known_collection.draw_inputs(count, rng), rng)

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Counts of the reports that `poison` would send."""
        if self.attacked(target):
            return super().poison_counts(target, count, rng)
        collection = target.known_collection
        numbers = rng.multinomial(count, collection.shares)
        return target.mechanism.draw_counts(collection.inputs, numbers, rng)

    def attacked(self, target: Target) -> bool:
        """Whether attackers of the target's group send poison."""
        return target.groups == 1 or target.group in self.groups
