"""The joint filter on the groups of one tier: the chosen model, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.estimate import GroupEstimate, Histogram, TierEstimate
from unpoison.estimate.distribution import Distribution
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.reporting import reporting_p_value
from unpoison.estimate.statistic import named
from unpoison.filters.client_faults import (
    DROPOUT,
    ClientFault,
    Diagnosis,
    diagnose,
    find_dropout,
    whole_groups_fit,
)
from unpoison.filters.joint import (
    Fit,
    Interval,
    Intervals,
    JointCounts,
    ModelChoice,
    constants,
    nobody_p_value,
    outvoted,
    with_agreement,
)
from unpoison.filters.worst_case import PossibleRange, PossibleRanges
from unpoison.protocols import joint_constants
from unpoison.protocols.group_sizes import group_sizes_p_value
from unpoison.protocols.joint_distribution import joint_distribution, unknown_distribution
from unpoison.protocols.joint_groups import JointGroups
from unpoison.protocols.unfiltered import unfiltered_answer
from unpoison.summary import Summary
from unpoison.types import FloatArray

IntervalOf = Callable[[Intervals, FloatArray], Interval]


@dataclass(frozen=True, eq=False)
class JointAnalysis:
    """One tier by the joint filter: an `Analysis` whose numbers come from the chosen model.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "point:C", 0.3, np.random.default_rng(1))
    >>> analysis = JointAnalysis(run.summary, range(4))
    >>> analysis.side, round(analysis.byzantine_fraction, 2)
    ('right', 0.3)
    """

    summary: Summary
    groups: Sequence[int]
    options: FilterOptions = field(default_factory=FilterOptions)

    @cached_property
    def clients(self) -> Diagnosis:
        """Whether clients are broken in a way that their reports show."""
        return diagnose(self.summary, list(self.groups))

    @cached_property
    def choice(self) -> ModelChoice:
        """The model that the data choose, and the others that they cannot rule out."""
        return self.clients.choice

    @property
    def counts(self) -> JointCounts:
        """The tier's counts."""
        return self.choice.counts

    @property
    def fit(self) -> Fit:
        """The fit of the chosen model."""
        return self.choice.best

    @property
    def byzantine_fraction(self) -> float:
        """γ̂."""
        return self.choice.attacker_share

    @property
    def converged(self) -> bool:
        """Whether the chosen model's fit reached its duality gap."""
        return self.fit.converged

    @property
    def outvoted(self) -> bool:
        """Whether attackers seem to be the majority, so that nothing can be known."""
        return outvoted(self.counts, self.fit)

    @cached_property
    def intervals(self) -> Intervals:
        """95 % intervals over all models that the data cannot rule out."""
        if not any(fault.kind == DROPOUT for fault in self.client_faults):
            return Intervals(self.choice)
        # Those who stopped are missing in the groups that are short, and not in the others.
        others = (*self.choice.others, whole_groups_fit(self.counts, self.fit.model))
        return Intervals(replace(self.choice, others=others))

    def interval_of_mean(self, interval_of: IntervalOf) -> Interval:
        """The interval of the mean, over attacks and faults of clients where either may be true."""
        low, high = interval_of(self.intervals, self.counts.values)
        other = self.clients.alternative
        if other is None:
            return low, high
        other_low, other_high = interval_of(Intervals(other), other.counts.values)
        return min(low, other_low), max(high, other_high)

    @property
    def honest_users(self) -> float:
        """How many users seem to be honest."""
        return float(self.counts.users @ (1 - self.fit.attacker_shares))

    @cached_property
    def p_value(self) -> float:
        """The p-value of the hypothesis that nobody attacks.

        Of two tests: how well honest users explain the counts of all buckets, and whether the
        groups' plain averages agree. The latter sees what is spread over many buckets; it has a
        small part of the level, so that either one alone could be relied on (Bonferroni).
        """
        if self.clients.instead_of_attack:
            return self.choice.nobody.p_value
        fitting = nobody_p_value(self.counts, self.choice.nobody)
        if self.clients.faults:
            # Plain averages take all clients for healthy.
            return fitting
        agreement = unfiltered_answer(self.summary, [list(self.counts.groups)]).p_value
        return with_agreement(fitting, agreement)

    @cached_property
    def group_sizes_p_value(self) -> float:
        """The p-value of the hypothesis that users report alike in all groups."""
        users, expected = self.summary.users[list(self.groups)], self._expected_users
        # Of users who enrolled, nearly all may report: groups then differ by less than by chance.
        test = group_sizes_p_value if self.options.enrolled is None else reporting_p_value
        return test(users, expected)

    @property
    def _expected_users(self) -> FloatArray:
        """What the users of each group who report should be in proportion to."""
        enrolled = self.options.enrolled
        shares = [part.share for part in self.summary.plan.all_groups]
        expected = np.array(shares if enrolled is None else enrolled, dtype=float)
        # Of broken clients, a collector refuses what is outside of the group's domain.
        expected[list(self.counts.groups)] *= self.clients.accepted_shares()
        return expected[list(self.groups)]

    @cached_property
    def client_faults(self) -> tuple[ClientFault, ...]:
        """The faults of clients that reports show, and that of users who stop midway."""
        honest, expected = self._honest_users, self._expected_users
        # Groups that attackers alone make larger are no sign of users who stop in the others.
        honest_alike = group_sizes_p_value(honest, expected) > constants.LEAST_FIT_P_VALUE
        if honest_alike or not self.selective:
            return self.clients.faults
        groups = list(self.groups)
        repeats = np.array([self.summary.plan.all_groups[group].reports for group in groups])
        # By all who report: what users with large values leave out may look like poison, too.
        users = self.summary.users[groups].astype(np.float64)
        dropout = find_dropout(tuple(groups), users, expected, repeats)
        return self.clients.faults if dropout is None else (*self.clients.faults, dropout)

    @property
    def _honest_users(self) -> FloatArray:
        """The users of each of the tier's groups, without the attackers that were found."""
        users = self.summary.users.astype(np.float64)
        users[list(self.counts.groups)] *= 1 - self.fit.attacker_shares
        return users[list(self.groups)]

    @property
    def selective(self) -> bool:
        """Whether more users report in some groups than chance allows."""
        return self.group_sizes_p_value < constants.LEAST_FIT_P_VALUE

    @property
    def suspicious(self) -> bool:
        """Whether no attack was found, though the test says that somebody attacks."""
        none_found = not self.byzantine_fraction > 0
        return none_found and self.p_value < constants.POOR_FIT_P_VALUE

    @property
    def may_be_chance(self) -> bool:
        """Whether honest users alone may well give the reports in which attackers were found."""
        return self.byzantine_fraction > 0 and self.p_value > joint_constants.CHANCE

    @property
    def doubtful(self) -> bool:
        """Whether the answer may be off by more than its interval says."""
        unclear = self.choice.doubtful or self.clients.doubtful
        return unclear or self.suspicious or self.may_be_chance or self.selective

    def possible(self, attackers: float) -> list[PossibleRange]:
        """The honest means, or frequencies of each category, with at most that many attackers."""
        if self.summary.plan.categorical:
            return self._possible_ranges.frequencies(attackers)
        return [self._possible_ranges.mean(attackers)]

    @property
    def least_attackers(self) -> float:
        """The share of attackers that the reports need at least."""
        return self._possible_ranges.least_attackers

    @property
    def enough_attackers(self) -> float:
        """A share of attackers that explains the reports."""
        return self._possible_ranges.enough_attackers

    @cached_property
    def _possible_ranges(self) -> PossibleRanges:
        return PossibleRanges(self.counts)

    @property
    def attacked_groups(self) -> tuple[int, ...]:
        """The numbers of the groups in which the model has poison."""
        attacked = self.fit.model.attacked & (self.fit.attacker_shares > 0)
        return tuple(self.counts.groups[index] for index in np.flatnonzero(attacked))

    @cached_property
    def side(self) -> str:
        """Where the poison is, seen from the middle of the report domain."""
        if not self.byzantine_fraction > 0:
            return "none"
        outputs = self.fit.poison.shape[1]
        weights = self.counts.users @ self.fit.poison
        right = weights[outputs // 2 :].sum() / weights.sum()
        if right >= joint_constants.FAR_SIDE:
            return "right"
        return "left" if right <= 1 - joint_constants.FAR_SIDE else "both"

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories with at least one poisoned report in all groups together."""
        names = self.summary.plan.categories or ()
        poisoned = (self.fit.poison * self.counts.reports[:, None]).sum(axis=0) >= 1
        return tuple(name for name, is_poisoned in zip(names, poisoned, strict=True) if is_poisoned)

    def place(self) -> dict[str, Any]:
        """The side or the categories, under the name that an Estimate has for it."""
        if self.summary.plan.categorical:
            return {"categories": self.categories}
        return {"side": self.side}

    def answer(self) -> dict[str, Any]:
        """The mean or the frequencies, in natural units."""
        plan = self.summary.plan
        return named(plan, self.fit.honest if plan.categorical else np.array([self.mean]))

    @cached_property
    def mean(self) -> float:
        """The honest mean in the mechanism's input domain, averaged over faint poison.

        Where attackers are the majority nothing is known, and the fit's own mean stands.
        """
        values = self.counts.values
        return self.fit.mean(values) if self.outvoted else self.intervals.expected_mean(values)

    def fraction_interval(self) -> tuple[float, float]:
        """A 95 % interval of γ̂."""
        return self.intervals.attacker_share()

    def distribution(self) -> Distribution:
        """The smooth histogram with the answer's mean, and 95 % intervals of its CDF."""
        plan = self.summary.plan
        if self.outvoted:
            return unknown_distribution(plan, self.choice)
        return joint_distribution(plan, self.choice, self.mean, self.intervals.error_factor)

    @property
    def tier(self) -> int:
        """The number of the tier."""
        return self.summary.plan.tier_of(self.groups[0])

    def tier_estimate(self, weight: float) -> TierEstimate:
        """The tier's mean or frequencies."""
        return TierEstimate(
            epsilon=self.summary.plan.all_tiers[self.tier].epsilon,
            **self.answer(),
            weight=weight,
            byzantine_fraction=self.byzantine_fraction,
            **self.place(),
        )

    def group_estimates(self) -> list[GroupEstimate]:
        """The estimate from each group alone, without the poison that was found in it."""
        return self._group_details.estimates()

    def histogram(self) -> Histogram:
        """The poison of the group with the most reports."""
        return self._group_details.histogram()

    @property
    def _group_details(self) -> JointGroups:
        return JointGroups(self.summary, self.counts, self.fit)

    def evidence(self) -> dict[str, Any]:
        """How the model was chosen, how well it fits, and how near the optimum it is."""
        return {
            "model": self.fit.model.kind,
            "attacked_groups": list(self.attacked_groups),
            "poison_places": int(self.fit.model.support.sum()),
            "model_deviance": self.fit.deviance,
            "degrees_of_freedom": self.fit.degrees_of_freedom,
            "goodness_of_fit_p_value": self.fit.p_value,
            "nobody_attacks_p_value": self.p_value,
            "fits": self.choice.fits,
            "other_models": list(self.choice.other_kinds),
            "group_sizes_p_value": self.group_sizes_p_value,
            "client_faults": [fault.named() for fault in self.client_faults],
            "doubt": self.doubtful,
            "duality_gap": self.fit.duality_gap,
            "steps": self.fit.steps,
        }
