"""What a simulation knows and a collector does not: the honest users, and the least error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.attacks import Target
from unpoison.estimate.distribution import Distribution
from unpoison.plan import Plan
from unpoison.simulation.inputs import Inputs
from unpoison.simulation.oracle_floor import cramer_rao, oracle_floor
from unpoison.summary import Summary
from unpoison.types import FloatArray, IntArray

TRUTH_BUCKETS = 2**12


@dataclass(frozen=True)
class Simulation:
    """One collection: its Summary, the truth about honest users, and the floor of any error.

    `truth` is their mean and `honest` their distribution; categories have `frequencies` instead,
    and `poisoned` names those that attackers send. `floor` is the oracle floor of linear estimators
    for PM, the Cramér-Rao bound for SW and k-RR. `honest_summary` has the reports of honest users
    alone: what an oracle would estimate from.

    >>> from unpoison import simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(1000, 0.25), "point:C", 0.2, np.random.default_rng(1))
    >>> run.truth, run.byzantine_fraction, bool(run.floor > 0)
    (0.25, 0.2, True)
    """

    summary: Summary
    truth: float
    floor: float
    cramer_rao: float
    byzantine_fraction: float
    honest: Distribution | None = None
    frequencies: dict[str, float] | None = None
    poisoned: tuple[str, ...] | None = None
    honest_summary: Summary | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """The honest users' inputs, and what follows from them.

    >>> truth = Truth(Plan.new(epsilon=1.0, low=0, high=1), Inputs(np.array([-0.5, 0.5])))
    >>> truth.mean
    0.0
    """

    plan: Plan
    inputs: Inputs

    @cached_property
    def mean(self) -> float:
        """O, normalised; categories have none."""
        return math.nan if self.plan.categorical else self.inputs.mean_of(self.inputs.values)

    @cached_property
    def frequencies(self) -> FloatArray | None:
        """How often honest users have each category."""
        if not self.plan.categorical:
            return None
        return self.inputs.histogram(np.arange(-0.5, self.plan.cells))

    def target(self, group: int) -> Target:
        """What attackers of a group know."""
        names = self.plan.categories or ()
        budgets = self._budgets(group)
        own = self.plan.all_groups[group].epsilon
        rank = len({each for each in budgets if each > own})
        part = self.plan.group_mechanisms[group]
        return Target(part, self.mean, names, self.frequencies, rank, len(budgets))

    def _budgets(self, group: int) -> list[float]:
        """The budgets of all groups in the tier of one."""
        numbers = self.plan.tier_groups(self.plan.tier_of(group))
        return [self.plan.all_groups[number].epsilon for number in numbers]

    def beside(
        self,
        honest: Summary,
        poison: Summary,
        byzantine_fraction: float,
        honest_users: FloatArray,
        tiers: IntArray | None = None,
    ) -> Simulation:
        """Honest reports and poison in one summary, with truth and floor."""
        people = (self.inputs.values, honest_users, tiers, self.inputs.numbers)
        bound = cramer_rao(self.plan, *people)
        linear = self.plan.group_mechanisms[0].unbiased
        return Simulation(
            summary=honest + poison,
            honest_summary=honest,
            floor=oracle_floor(self.plan, *people) if linear else bound,
            cramer_rao=bound,
            byzantine_fraction=byzantine_fraction,
            **self._answer(poison),
        )

    def _answer(self, poison: Summary) -> dict[str, Any]:
        names, frequencies = self.plan.categories, self.frequencies
        if names is not None and frequencies is not None:
            named = dict(zip(names, frequencies.tolist(), strict=True))
            sent = np.flatnonzero(poison.counts.sum(axis=0)).tolist()
            poisoned = tuple(names[each] for each in sent)
            return {"truth": math.nan, "frequencies": named, "poisoned": poisoned}
        # In a range of few numbers, such as [1e18, 1e18 + 1000], edges fall together.
        natural = np.unique(np.linspace(*self.plan.bounds, TRUTH_BUCKETS + 1))
        edges = self.plan.normalise(natural)
        return {
            "truth": self.plan.natural(self.mean),
            "honest": Distribution.of(natural, self.inputs.histogram(edges)),
        }
