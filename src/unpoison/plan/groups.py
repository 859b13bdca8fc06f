"""A plan's groups, tiers and users: which groups there are, and in which a user reports."""

from __future__ import annotations

from functools import cached_property

from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism, make
from unpoison.plan.budgets import BASELINE, Group, Tier


class PlanGroups:
    """The answers of a Plan about its groups and tiers.

    >>> from unpoison.plan import Plan
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, tiers=[{"epsilon": 0.125}], low=0, high=1)
    >>> list(plan.tier_groups(0)), plan.tier_of(3), plan.tier_for_budget(0.2)
    ([0, 1], 1, 1)
    """

    mechanism: str
    protocol: str
    epsilon: float
    groups: tuple[Group, ...]
    tiers: tuple[Tier, ...]
    cells: int

    @property
    def min_epsilon(self) -> float:
        """The smallest budget of a group: ε0 (ε_α in the baseline)."""
        return min(group.epsilon for group in self.groups)

    @property
    def all_tiers(self) -> tuple[Tier, ...]:
        """The plan's own tier, then those for smaller personal budgets."""
        return (Tier(self.epsilon, self.groups), *self.tiers)

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """Every group in the order that reports number them: tier by tier."""
        return tuple(group for tier in self.all_tiers for group in tier.groups)

    @cached_property
    def group_mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanism of each group, at its budget."""
        return tuple(make(self.mechanism, g.epsilon, self.cells) for g in self.all_groups)

    def tier_groups(self, tier: int) -> range:
        """The numbers of the groups of one tier."""
        sizes = [len(tier.groups) for tier in self.all_tiers]
        first = sum(sizes[:tier])
        return range(first, first + sizes[tier])

    def tier_of(self, group: int) -> int:
        """The tier that a group belongs to."""
        tiers = range(len(self.all_tiers))
        return next(tier for tier in tiers if group in self.tier_groups(tier))

    def groups_of_user(self, group: int) -> tuple[int, ...]:
        """The numbers of all groups in which a user of `group` reports.

        That is `group` alone, or both groups of its tier in the baseline, where every user reports
        once with either budget.

        >>> from unpoison.plan import Plan
        >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, protocol="baseline")
        >>> plan.groups_of_user(1)
        (0, 1)
        """
        if self.one_group_a_user:
            return (group,)
        return tuple(self.tier_groups(self.tier_of(group)))

    @property
    def groups_that_count_users(self) -> tuple[int, ...]:
        """Groups that hold every user exactly once: their sizes add up to the number of users.

        >>> from unpoison.plan import Plan
        >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, protocol="baseline")
        >>> plan.groups_that_count_users
        (0,)
        """
        groups = range(len(self.all_groups))
        return tuple(group for group in groups if self.groups_of_user(group)[0] == group)

    def tier_for_budget(self, budget: float) -> int | None:
        """The tier with the largest ε that a personal budget allows, if there is one."""
        allowed = [(t.epsilon, i) for i, t in enumerate(self.all_tiers) if t.epsilon <= budget]
        return max(allowed)[1] if allowed else None

    @property
    def one_group_a_user(self) -> bool:
        """Whether a user reports in one group: in DAP, but not in the baseline."""
        return self.protocol != BASELINE

    def require_one_group_and_budget(self) -> None:
        """Refuse a plan in which users are in several groups, or have budgets of their own.

        >>> from unpoison.plan import Plan
        >>> Plan.new(low=0, high=1, protocol="baseline").require_one_group_and_budget()
        Traceback (most recent call last):
            ...
        unpoison.errors.InvalidParameter: plan must be a dap plan without tiers; received baseline
        """
        if self.tiers or not self.one_group_a_user:
            received = "tiers" if self.tiers else self.protocol
            raise InvalidParameter("plan", "must be a dap plan without tiers", received)
