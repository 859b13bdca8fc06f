"""What a plan collects on average: counts without noise, from reference users and attackers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unpoison.attacks import parse_attack
from unpoison.filters.joint import Fit, JointCounts, PoisonModel, fit
from unpoison.plan import Plan
from unpoison.plan.assignment import group_sizes
from unpoison.planner.reference import Reference
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray

POISON_DRAWS = 2**18
"""Poison reports from which their distribution over buckets is taken: its own noise is then less
than that of a collection of a million users."""


@dataclass(frozen=True, eq=False)
class ExpectedCollection:
    """The counts that reference users would give on average.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> expected = ExpectedCollection(plan, Reference("uniform", 30_000))
    >>> counts = expected.counts("point:C", 0.25)
    >>> [round(number, 3) for number in counts.counts.sum(axis=1).tolist()]
    [10000.0, 20000.0, 40000.0]
    >>> bool(counts.counts[0, -1] > 2500)
    True
    """

    plan: Plan
    reference: Reference

    @cached_property
    def truth(self) -> GroundTruth:
        """The ground truth if all users are honest."""
        return self.reference.truth(self.plan)

    @cached_property
    def buckets(self) -> JointCounts:
        """The groups' buckets and transitions, with reports spread evenly."""
        plan = self.plan
        reports = group_sizes(plan.groups, self.reference.users) * [
            group.reports for group in plan.groups
        ]
        evenly = np.array([number // plan.cells for number in reports])
        counts = np.repeat(evenly[:, None], plan.cells, axis=1)
        counts[:, 0] += reports - counts.sum(axis=1)
        # Nothing here looks at the sums of reports.
        summary = Summary(plan, counts, (0,) * len(plan.groups))
        return JointCounts.of(summary, range(len(plan.groups)))

    @cached_property
    def honest(self) -> FloatArray:
        """The share of honest reports in each bucket of each group."""
        inputs = self.truth.inputs
        if self.truth.frequencies is not None:
            by_category: FloatArray = self.buckets.transitions @ self.truth.frequencies
            return by_category
        numbers = self.reference.population(self.plan).numbers
        of_values = self.buckets.transitions_from(inputs.values)
        shares: FloatArray = of_values @ (numbers / numbers.sum())
        return shares

    def poison(self, attack: str) -> FloatArray:
        """The share of poison reports in each bucket of each group."""
        parsed, rows = parse_attack(attack), []
        for buckets, group in zip(self.buckets.buckets, self.buckets.groups, strict=True):
            rng = np.random.default_rng(0)
            poison = parsed.poison_counts(self.truth.target(group), POISON_DRAWS, rng)
            rows.append(buckets.count(poison) / POISON_DRAWS)
        return np.stack(rows)

    def counts(self, attack: str = "none", share: float = 0.0) -> JointCounts:
        """The expected counts with that share of attackers."""
        poison = self.poison(attack) if share else self.honest
        return self.mixed_counts(poison, share)

    def mixed_counts(self, poison: FloatArray, share: float) -> JointCounts:
        """The expected counts if that share of reports is distributed like `poison`."""
        shares = (1 - share) * self.honest + share * poison
        return replace(self.buckets, counts=self.buckets.reports[:, None] * shares)

    def attainable_error(self, attack: str = "none", share: float = 0.0) -> float:
        """The standard error of a fit that is told where the poison may be, in natural units.

        The joint filter must find that out first, so its error may be larger. Errors of frequencies
        are root mean squares over categories.

        >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
        >>> expected = ExpectedCollection(plan, Reference("uniform", 30_000))
        >>> quiet, attacked = expected.attainable_error(), expected.attainable_error("point:C", 0.2)
        >>> 0 < quiet < attacked < 0.05
        True
        """
        if not share:
            best = fit(self.counts(), PoisonModel.nobody(*self.honest.shape))
        else:
            poison = self.poison(attack)
            best = fit(self.mixed_counts(poison, share), _model_of(poison))
        honest_users = (1 - share) * self.reference.users
        variance = self._variance(best) - self._variance_of_values / honest_users
        return float(
            np.sqrt(max(variance, 0.0)) * (1 if self.plan.categorical else self.plan.natural_scale)
        )

    def _variance(self, best: Fit) -> float:
        """Variance of a fit's mean, or of its frequencies, averaged over categories."""
        if self.plan.categorical:
            return float(np.diag(best.honest_covariance).mean())
        return best.standard_error(self.buckets.values) ** 2

    @property
    def _variance_of_values(self) -> float:
        """Variance of one user's value, or of membership in a category, averaged over categories.

        What is asked for is the mean of these users, not of a population that they are drawn from.
        """
        frequencies = self.truth.frequencies
        if frequencies is None:
            return self.truth.inputs.variance
        return float((frequencies * (1 - frequencies)).mean())


def _model_of(poison: FloatArray) -> PoisonModel:
    """The model in which such poison is alike, in the groups where it is not all over the place.

    Poison in every bucket of a group is that of attackers who look like honest users there.
    """
    groups, outputs = poison.shape
    attacked: BoolArray = np.any(poison == 0, axis=1)
    if not attacked.any():
        return PoisonModel.even(groups, outputs)
    buckets: BoolArray = np.any(poison[attacked] > 0, axis=0)
    return PoisonModel.alike(buckets, groups, attacked)
