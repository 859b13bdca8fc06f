"""What attackers could do to a plan that removes nothing: U_max and U_eva over all groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.plan import Plan
from unpoison.planner.reference import Reference
from unpoison.protocols.weights import group_weights
from unpoison.simulation.theory import utility_evasive, utility_max

SHAPE = "Beta(2,5)"
EVADING = 0.3
ENOUGH = 10**6


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
        """What evading costs the attackers."""
        return self.most - self.evasive


def utilities(plan: Plan, tolerate: float) -> Utilities:
    """U_max and U_eva of a share of attackers, if the groups' means are simply averaged.

    Every group has its own C; groups weigh as their reports and variances say. Honest values are
    like Beta(2,5), so that the upper end is far; O' is the middle of the range.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> found = utilities(plan, 0.25)
    >>> bool(found.most > found.evasive > 0)
    True
    """
    mean = Reference(SHAPE, ENOUGH).truth(plan).mean
    parts, users = plan.group_mechanisms, np.array([group.share for group in plan.groups])
    reports = users * [group.reports for group in plan.groups]
    spread = np.array([part.worst_variance for part in parts])
    weights = group_weights("optimal", reports, users, spread)
    far = [float(part.decode(np.array([part.output_high]))[0]) for part in parts]
    middle = (parts[0].input_low + parts[0].input_high) / 2
    numbers = tolerate, 1 - tolerate
    most = [utility_max(*numbers, C, mean) for C in far]
    evasive = [utility_evasive(*numbers, C, mean, EVADING, middle) for C in far]
    return Utilities(*(float(weights @ each) * plan.unit for each in (most, evasive)))
