"""Dropout: users stop before they have sent all reports, the more often the larger their value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.simulation.faults.base import Fault, faults
from unpoison.types import FloatArray, IntArray


@faults.register("dropout")
@dataclass(frozen=True)
class Dropout(Fault):
    """Users stop `after` a share of their reports, rounded up to a whole report.

    Their chance of that is proportional to how far their value is above the lowest. So large values
    have fewer reports in groups with several reports a user, while the group with one report a user
    has them all: groups do not have the same values.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> rng = np.random.default_rng(1)
    >>> [len(Dropout().reports(plan, group, np.zeros(100), rng)) for group in range(3)]
    [100, 100, 200]
    """

    after: float = 0.5
    """Half-way: users with two reports or more are left with fewer, and nobody with none."""

    def __post_init__(self) -> None:
        if not 0 <= self.after < 1:
            raise InvalidParameter("after", "must be in [0, 1)", self.after)

    def chances(self, plan: Plan, inputs: FloatArray, numbers: IntArray | None) -> FloatArray:
        """Proportional to the distance from the lowest value, 1 on average."""
        distances = inputs - plan.group_mechanisms[0].input_low
        average = np.average(distances, weights=numbers)
        return np.asarray(distances / average) if average > 0 else np.ones(len(inputs))

    def reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The first honest reports of every user."""
        sent = math.ceil(self.after * plan.all_groups[group].reports)
        return plan.group_mechanisms[group].perturb(np.repeat(inputs, sent), rng)
