"""Where attackers report who are not spread over groups at random, as honest users are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.plan.assignment import divide, group_sizes
from unpoison.types import IntArray


@dataclass(frozen=True)
class Placement:
    """Weights of groups: how often attackers are in each, relative to users placed at random.

    If they come `on_top`, the plan divides the honest users alone, and groups with attackers are
    larger than it says; else all groups are as large as it says.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> honest, attackers = Placement((1.0, 0.0), on_top=True).divide(plan, users=100, attackers=20)
    >>> honest.tolist(), attackers.tolist()
    ([40, 40], [20, 0])
    """

    weights: tuple[float, ...]
    on_top: bool

    def divide(self, plan: Plan, users: int, attackers: int) -> tuple[IntArray, IntArray]:
        """The numbers of honest users and of attackers in each group."""
        shares = np.array(self.weights) * [group.share for group in plan.groups]
        attackers_in_group = divide(shares / shares.sum(), attackers)
        if self.on_top:
            return group_sizes(plan.groups, users - attackers), attackers_in_group
        honest_in_group = group_sizes(plan.groups, users) - attackers_in_group
        if honest_in_group.min() < 0:
            fullest = int(honest_in_group.argmin())
            rule = "must leave at most as many attackers in a group as it has users"
            raise InvalidParameter("weights", rule, f"{self.weights} (group {fullest})")
        return honest_in_group, attackers_in_group
