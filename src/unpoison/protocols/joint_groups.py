"""The groups of one tier by the joint filter: what each says alone, without its poison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.estimate import GroupEstimate, Histogram, Picture
from unpoison.estimate.estimate import numbers
from unpoison.estimate.statistic import named
from unpoison.filters.joint import Fit, JointCounts
from unpoison.protocols.scheme_analysis import picture_of
from unpoison.protocols.weights import honest_weights
from unpoison.summary import Summary


@dataclass(frozen=True, eq=False)
class JointGroups:
    """Details of the groups that a fit was made of.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(20_000, 0.3)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> groups = JointGroups(run.summary, counts, fit(counts, PoisonModel.nobody(4, 64)))
    >>> round(sum(group.weight for group in groups.estimates()), 6), groups.histogram().group
    (1.0, 3)
    """

    summary: Summary
    counts: JointCounts
    fit: Fit

    def estimates(self) -> list[GroupEstimate]:
        """The estimate from each group alone, without the poison that was found in it."""
        plan, counts = self.summary.plan, self.counts
        weights = honest_weights(
            plan, counts.groups, counts.reports, counts.users, self.fit.attacker_shares
        )
        return [
            GroupEstimate(
                group=group,
                tier=plan.tier_of(group),
                epsilon=plan.all_groups[group].epsilon,
                users=float(counts.users[index]),
                reports=int(counts.reports[index]),
                **self._answer(index),
                weight=float(weights[index]),
                byzantine_fraction=float(self.fit.attacker_shares[index]),
                iterations=self.fit.steps,
                converged=self.fit.converged,
                picture=self._picture(index),
            )
            for index, group in enumerate(counts.groups)
        ]

    def _answer(self, index: int) -> dict[str, Any]:
        """The average of a group's decoded reports without the poison; or its own frequencies."""
        plan, group = self.summary.plan, self.counts.groups[index]
        poison, honest_share = self.fit.poison[index], 1 - self.fit.attacker_shares[index]
        if plan.categories is not None:
            honest = (self.counts.observed[index] - poison) / honest_share
            return named(plan, plan.group_mechanisms[group].decode(honest))
        removed = float(poison @ self.counts.buckets[index].decoded_values)
        mean = (self.summary.decoded_average(group) - removed) / honest_share
        return named(plan, np.array([mean]))

    def _picture(self, index: int) -> Picture:
        poison = self.fit.poison[index]
        honest = self.fit.expected[index] - poison
        buckets = self.counts.buckets[index]
        return picture_of(buckets, self.counts.observed[index], honest, poison)

    def histogram(self) -> Histogram:
        """The poison of the group with the most reports."""
        index = int(np.argmax(self.counts.reports))
        return Histogram(
            group=self.counts.groups[index],
            edges=numbers(self.counts.buckets[index].output_edges),
            fractions=numbers(self.fit.poison[index]),
        )
