"""Fishing attack: attackers enrol until they are in the groups they want, and report there only."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.by_groups import (
    OUTER_QUARTER,
    PlacedAttack,
    check_group_numbers,
    check_groups_exist,
)
from unpoison.attacks.placement import Placement
from unpoison.plan import Plan


@attacks.register("fishing")
@dataclass(frozen=True)
class Fishing(PlacedAttack):
    """`attack` in the `groups` of these numbers, where all attackers are; others hold none.

    Attackers enrol as often as they like, and send nothing from where they do not want to be. So
    these groups have more reports than the others, and a larger share of attackers than all
    reporters together, whose share it is that the collection's share of attackers states.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> honest, attackers = Fishing((1,)).placement(plan).divide(plan, users=100, attackers=10)
    >>> honest.tolist(), attackers.tolist()
    ([30, 30, 30], [0, 10, 0])
    """

    groups: tuple[int, ...] = (0,)
    attack: Attack = OUTER_QUARTER

    def __post_init__(self) -> None:
        super().__post_init__()
        check_group_numbers(self.groups)

    def placement(self, plan: Plan) -> Placement:
        """Put all attackers into the chosen groups, besides the honest users."""
        check_groups_exist(self.groups, len(plan.groups))
        alone = len(plan.groups) == 1
        weights = (float(alone or group in self.groups) for group in range(len(plan.groups)))
        return Placement(tuple(weights), on_top=True)
