"""Whether the groups of a campaign report alike: users who reported beside those who enrolled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from unpoison.collector.campaigns.group_counters import DeviceCount
from unpoison.estimate.reporting import UNLIKE, reporting_p_value
from unpoison.plan import Plan

Counters = Mapping[int, DeviceCount]


class GroupBalance(NamedTuple):
    """The test that the users of all groups report alike, over all tiers of a campaign.

    >>> plan = Plan.new(epsilon=0.5, low=0, high=1, min_epsilon=0.25)
    >>> counters = {0: DeviceCount(1500, 1500), 1: DeviceCount(1500, 1033)}
    >>> GroupBalance.of(plan, counters).broken
    True
    """

    p_value: float

    @classmethod
    def of(cls, plan: Plan, counters: Counters) -> GroupBalance:
        """The smallest p-value of all tiers, times their number (Bonferroni)."""
        tiers = range(len(plan.all_tiers))
        return cls(min(1.0, len(tiers) * min(_p_value(plan, counters, tier) for tier in tiers)))

    @property
    def broken(self) -> bool:
        """Whether groups report too differently for chance."""
        return self.p_value < UNLIKE

    def to_dict(self) -> dict[str, Any]:
        """The field `balance` of a campaign's status."""
        return {"p_value": self.p_value, "broken": self.broken}


def _p_value(plan: Plan, counters: Counters, tier: int) -> float:
    # In the baseline every user reports in both groups, and one of them counts all.
    counted = [group for group in plan.tier_groups(tier) if group in plan.groups_that_count_users]
    enrolled, reported = np.array([counters[group] for group in counted], dtype=np.float64).T
    return reporting_p_value(reported, enrolled)


def expected_reporters(plan: Plan, counters: Counters) -> tuple[float, ...]:
    """The users of each group who were to report, as estimates take them: positive numbers.

    In a tier with a group that nobody has enrolled in, they are the plan's shares.

    >>> plan = Plan.new(epsilon=0.5, low=0, high=1, min_epsilon=0.25)
    >>> expected_reporters(plan, {0: DeviceCount(3, 1), 1: DeviceCount(2, 2)})
    (3.0, 2.0)
    >>> expected_reporters(plan, {0: DeviceCount(1, 1), 1: DeviceCount(0, 0)})
    (0.5, 0.5)
    """
    expected: list[float] = []
    for number, tier in enumerate(plan.all_tiers):
        enrolled = [float(counters[group].enrolled) for group in plan.tier_groups(number)]
        expected += enrolled if min(enrolled) > 0 else [group.share for group in tier.groups]
    return tuple(expected)
