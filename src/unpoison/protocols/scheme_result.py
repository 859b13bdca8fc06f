"""Stage 5 of DAP for one tier: the groups' statistics by one scheme, combined (Alg. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.estimate.distribution import Distribution
from unpoison.estimate.estimate import GroupEstimate, Histogram, TierEstimate, numbers
from unpoison.estimate.honest_reports import distribution_of
from unpoison.protocols.scheme_analysis import SchemeAnalysis
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class SchemeResult:
    """One tier by one scheme: an `Analysis` whose numbers come from a `SchemeAnalysis`.

    `statistics` are the groups' own (normalised), `weights` how they combine to `combined`.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, aggregate, analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> run = simulate(plan, np.full(2000, 3.0), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> result = aggregate(analysis_of(run.summary, [0, 1], FilterOptions()), "emf", "optimal")
    >>> result.tier_estimate(1.0).mean == plan.natural(float(result.combined[0]))
    True
    """

    analysis: SchemeAnalysis
    scheme: str
    statistics: Sequence[FloatArray]
    weights: FloatArray
    combined: FloatArray
    honest_users: float

    @property
    def groups(self) -> list[int]:
        """The numbers of the tier's groups in the summary."""
        return self.analysis.groups

    @property
    def byzantine_fraction(self) -> float:
        """γ̂ as the probing group has it."""
        return self.analysis.probe.byzantine_fraction

    @property
    def converged(self) -> bool:
        """Whether the EM runs of the groups converged, and those that side and γ̂ rest on."""
        groups = (self.analysis.converged(self.scheme, group) for group in self.groups)
        return all(groups) and all(run.converged for run in self.analysis.probe.runs)

    def tier_estimate(self, weight: float) -> TierEstimate:
        """The combined statistic in natural units."""
        analysis = self.analysis
        return TierEstimate(
            epsilon=analysis.summary.plan.all_tiers[analysis.tier].epsilon,
            **analysis.named(self.combined),
            weight=weight,
            byzantine_fraction=self.byzantine_fraction,
            **self.place(),
        )

    def group_estimates(self) -> list[GroupEstimate]:
        """The groups with their statistics in natural units, and their fits."""
        details = zip(self.groups, self.statistics, self.weights, strict=True)
        return [self._group(group, own, float(weight)) for group, own, weight in details]

    def _group(self, group: int, statistic: FloatArray, weight: float) -> GroupEstimate:
        analysis, summary = self.analysis, self.analysis.summary
        solution = analysis.solution(self.scheme, group)
        return GroupEstimate(
            group=group,
            tier=analysis.tier,
            epsilon=summary.plan.all_groups[group].epsilon,
            users=float(summary.users[group]),
            reports=int(summary.reports[group]),
            **analysis.named(statistic),
            weight=weight,
            byzantine_fraction=solution.byzantine_fraction,
            iterations=solution.iterations,
            converged=analysis.converged(self.scheme, group),
            picture=analysis.picture(self.scheme, group),
        )

    def place(self) -> dict[str, Any]:
        """The side or the categories that probing found."""
        return self.analysis.place()

    def histogram(self) -> Histogram:
        """ŷ of the probing group: γ̂ is taken from it."""
        group, probe = self.analysis.probing_group, self.analysis.probe
        edges = self.analysis.counts[group].buckets.output_edges
        return Histogram(
            group=group, edges=numbers(edges), fractions=numbers(probe.solution.poison)
        )

    def fraction_interval(self) -> None:
        """None: the paper's schemes have no interval of γ̂."""

    def distribution(self) -> Distribution:
        """The distribution by EMS, from the reports of all groups that the scheme leaves."""
        analysis = self.analysis
        cells = np.stack([analysis.honest_cells(self.scheme, group) for group in self.groups])
        bound = analysis.options.max_iterations
        return distribution_of(analysis.summary.plan, self.groups, cells, bound)

    def evidence(self) -> dict[str, Any]:
        """Why the poison is taken to be where it is, from the tier's probing group."""
        return {
            "probing_group": self.analysis.probing_group,
            "side_rule": self.analysis.options.side_rule,
            **self.analysis.evidence(),
        }
