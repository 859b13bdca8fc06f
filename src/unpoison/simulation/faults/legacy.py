"""Legacy clients: they perturb with another budget than that of their group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.mechanisms import make
from unpoison.mechanisms.base import check_epsilon
from unpoison.plan import Plan
from unpoison.simulation.faults.base import Fault, faults
from unpoison.types import FloatArray


@faults.register("legacy")
@dataclass(frozen=True)
class Legacy(Fault):
    """Every report has the budget `epsilon`, whatever the group's is; if 0, the plan's largest.

    The latter are clients from before there were groups. They send as many reports as asked for.

    >>> plan = Plan.new(epsilon=2.0, min_epsilon=0.25, low=0, high=1)
    >>> reports = Legacy().reports(plan, 3, np.ones(1000), np.random.default_rng(1))
    >>> len(reports), bool(reports.max() <= plan.group_mechanisms[0].C)
    (8000, True)
    """

    epsilon: float = 0.0
    categorical = None

    def __post_init__(self) -> None:
        if self.epsilon != 0:
            check_epsilon("epsilon", self.epsilon)

    def reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Reports by the plan's mechanism at the client's own budget."""
        mechanism = make(plan.mechanism, self.epsilon or plan.epsilon, plan.cells)
        return mechanism.perturb(np.repeat(inputs, plan.all_groups[group].reports), rng)
