"""The shift that attackers could reach if nothing is removed: U_max and U_eva over all groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.plan import Plan
from unpoison.planner.reference import Reference
from unpoison.protocols.weights import group_weights
from unpoison.simulation.theory import utility_evasive, utility_max

HONEST_SHAPE = "Beta(2,5)"
EVASIVE_SHARE = 0.3
"""The share of poison that is spent on evasion: from 20 to 30 % on it works, says the paper."""
REFERENCE_USERS = 10**6
"""Users from whom the honest mean is taken; more would not change it noticeably."""


@dataclass(frozen=True)
class Utilities:
    """Shifts of the mean in natural units: U_max, and U_eva when 30 % of the poison is at O'.

    >>> Utilities(most=1.0, evasive=0.75).cost
    0.25
    """

    most: float
    evasive: float

    @property
    def cost(self) -> float:
        """The part of U_max that attackers lose by evading."""
        return self.most - self.evasive


def utilities(plan: Plan, tolerate: float) -> Utilities:
    """U_max and U_eva of a share of attackers, if the groups' means are simply averaged.

    Every group has its own C; groups weigh as their reports and variances say. Honest values are
    like Beta(2,5), so that the upper end is far; O' is the middle of the range.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> shifts = utilities(plan, 0.25)
    >>> bool(shifts.most > shifts.evasive > 0)
    True
    """
    mean = Reference(HONEST_SHAPE, REFERENCE_USERS).truth(plan).mean
    mechanisms, users = plan.group_mechanisms, np.array([group.share for group in plan.groups])
    reports = users * [group.reports for group in plan.groups]
    variances = np.array([mechanism.worst_variance for mechanism in mechanisms])
    weights = group_weights("optimal", reports, users, variances)
    upper_ends = [
        float(mechanism.decode(np.array([mechanism.output_high]))[0]) for mechanism in mechanisms
    ]
    middle = (mechanisms[0].input_low + mechanisms[0].input_high) / 2
    shares = tolerate, 1 - tolerate
    most = [utility_max(*shares, C, mean) for C in upper_ends]
    evasive = [utility_evasive(*shares, C, mean, EVASIVE_SHARE, middle) for C in upper_ends]
    return Utilities(*(float(weights @ shifts) * plan.natural_scale for shifts in (most, evasive)))
