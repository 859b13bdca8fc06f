"""The ground truth of a simulated collection: honest inputs, their statistics, the least error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.attacks import Collection, Target
from unpoison.estimate.distribution import Distribution
from unpoison.plan import Plan
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.simulation.oracle_floor import HonestUsers, cramer_rao, oracle_floor
from unpoison.summary import Summary
from unpoison.types import FloatArray, IntArray

TRUTH_BUCKETS = 2**12
"""Buckets of the true distribution: far finer than any estimate, so that they add no distance."""


@dataclass(frozen=True)
class Simulation:
    """One simulated collection: its Summary, the truth about honest users, and the floor of errors.

    `truth` is their mean and `honest` their distribution; categories have `frequencies` instead,
    and `poisoned` names those that attackers send. `honest_summary` has the reports of honest users
    alone: what an oracle would estimate from. `floor` and `cramer_rao` are computed when they are
    first asked for: they take longer than all the rest.

    >>> from unpoison import simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(1000, 0.25), "point:C", 0.2, np.random.default_rng(1))
    >>> run.truth, run.byzantine_fraction, bool(run.floor > 0)
    (0.25, 0.2, True)
    """

    summary: Summary
    truth: float
    byzantine_fraction: float
    honest_users: HonestUsers = field(repr=False, compare=False)
    honest: Distribution | None = None
    frequencies: dict[str, float] | None = None
    poisoned: tuple[str, ...] | None = None
    honest_summary: Summary | None = None

    @cached_property
    def cramer_rao(self) -> float:
        """The Cramér-Rao bound: the least squared error of an unbiased estimator."""
        return cramer_rao(self.honest_users)

    @cached_property
    def floor(self) -> float:
        """The oracle floor of linear estimators for PM, the Cramér-Rao bound for SW and k-RR."""
        linear = self.summary.plan.group_mechanisms[0].unbiased
        return oracle_floor(self.honest_users) if linear else self.cramer_rao


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The honest users' inputs, the statistics that follow from them, and the attackers' share.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> GroundTruth(plan, HonestInputs(np.array([-0.5, 0.5]))).mean
    0.0
    """

    plan: Plan
    inputs: HonestInputs
    byzantine_fraction: float = 0.0

    @cached_property
    def mean(self) -> float:
        """O, the honest mean, normalised; NaN for categories."""
        return math.nan if self.plan.categorical else self.inputs.mean_of(self.inputs.values)

    @cached_property
    def frequencies(self) -> FloatArray | None:
        """The share of honest users with each category; None for numbers."""
        if not self.plan.categorical:
            return None
        return self.inputs.histogram(np.arange(-0.5, self.plan.cells))

    def target(self, group: int) -> Target:
        """The target of attackers in a group, who know the whole collection."""
        return self._collection.target(group)

    @cached_property
    def _collection(self) -> Collection:
        """The collection as attackers know it: all groups and users."""
        groups = tuple(self._group(group) for group in range(len(self.plan.all_groups)))
        inputs = self.inputs
        return Collection(groups, inputs.values, inputs.numbers, self.byzantine_fraction)

    def _group(self, group: int) -> Target:
        """The group as attackers know it, without the others."""
        tier = self.plan.tier_groups(self.plan.tier_of(group))
        budgets = [self.plan.all_groups[other].epsilon for other in tier]
        larger = {budget for budget in budgets if budget > self.plan.all_groups[group].epsilon}
        return Target(
            self.plan.group_mechanisms[group],
            self.mean,
            self.plan.categories or (),
            self.frequencies,
            rank=len(larger),
            groups=len(budgets),
            group=group,
        )

    def simulation(
        self,
        honest: Summary,
        poison: Summary,
        honest_users: FloatArray,
        tiers: IntArray | None = None,
    ) -> Simulation:
        """The collection of honest reports and poison, with truth and floor.

        `honest_users` are the honest users of each group, `tiers` the tier of each honest input.
        """
        inputs = self.inputs
        return Simulation(
            summary=honest + poison,
            honest_summary=honest,
            honest_users=HonestUsers(self.plan, inputs.values, honest_users, tiers, inputs.numbers),
            byzantine_fraction=self.byzantine_fraction,
            **self._statistics(poison),
        )

    def _statistics(self, poison: Summary) -> dict[str, Any]:
        """The true mean and distribution, or frequencies and poisoned categories."""
        names, frequencies = self.plan.categories, self.frequencies
        if names is not None and frequencies is not None:
            by_name = dict(zip(names, frequencies.tolist(), strict=True))
            sent = np.flatnonzero(poison.counts.sum(axis=0)).tolist()
            poisoned = tuple(names[category] for category in sent)
            return {"truth": math.nan, "frequencies": by_name, "poisoned": poisoned}
        # In a range of few numbers, such as [1e18, 1e18 + 1000], edges fall together.
        natural = np.unique(np.linspace(*self.plan.bounds, TRUTH_BUCKETS + 1))
        edges = self.plan.normalise(natural)
        return {
            "truth": self.plan.natural(self.mean),
            "honest": Distribution.of(natural, self.inputs.histogram(edges)),
        }
