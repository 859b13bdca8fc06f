"""The base classes of defences that run EMF first, and then a robust average on what it leaves.

Under input manipulation attackers perturb a value of their choice as honest users do, and EMF finds
hardly any poison (γ̂ of 0.03 to 0.04 in the paper). Then the other defence works on the inputs that
EM reconstructs, in which the noise of the mechanism is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.defences.base import Defence
from unpoison.defences.checks import is_number
from unpoison.defences.robust_average import InlierAverage, RobustAverage
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate.honest_reports import mean_of
from unpoison.filters.buckets import MIN_REPORTS
from unpoison.filters.em import Solution, maximise
from unpoison.protocols import FilterOptions, MeanAnalysis, group_weights
from unpoison.summary import Summary

EMF = "emf"


@dataclass(frozen=True)
class EmfFirst(RobustAverage, Defence):
    """Probes γ̂ by EMF, and takes `average` of reconstructed inputs where γ̂ is small.

    γ̂ comes from the group with the smallest ε. Under the `threshold`, EMF* with γ̂ = 0 reconstructs
    the inputs of each group, and `average` is taken of these; else `filtered_mean`. The means of
    groups are weighted as the paper's schemes do (`optimal`), and those of tiers by their honest
    users. Groups with too few reports for EM are left out.

    >>> from unpoison import Plan, simulate
    >>> class Plain(EmfFirst):
    ...     def average(self, values, counts):
    ...         return float(np.average(values, weights=counts))
    ...     def describe(self):
    ...         return "The mean of the inputs that EM reconstructs."
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "none", 0, np.random.default_rng(1))
    >>> bool(abs(Plain().mean(run.summary) - (-0.4)) < 0.1)
    True
    """

    # Just above the γ̂ of 0.03 to 0.04 that EMF finds under input manipulation.
    threshold: float = 0.05

    def __post_init__(self) -> None:
        if not is_number(self.threshold) or not 0 <= self.threshold <= 1:
            raise InvalidParameter("threshold", "must be in [0, 1]", repr(self.threshold))
        super().__post_init__()

    def mean(self, summary: Summary) -> float:
        """The means of tiers, weighted by their honest users."""
        tiers = [self._tier_mean(analysis) for analysis in _analyses(summary)]
        means, honest_users = zip(*tiers, strict=True)
        return float(np.average(means, weights=honest_users))

    def finds_little_poison(self, analysis: MeanAnalysis) -> bool:
        """Whether EMF's γ̂ is under the threshold: attackers, if any, manipulate their inputs."""
        return analysis.probe.byzantine_fraction < self.threshold

    def filtered_mean(self, analysis: MeanAnalysis, group: int) -> float:
        """The mean of a group where EMF has found poison: EMF's own."""
        return analysis.mean(EMF, group)

    def _tier_mean(self, analysis: MeanAnalysis) -> tuple[float, float]:
        """The mean, and how many honest users it stands for."""
        summary, groups = analysis.summary, analysis.groups
        if self.finds_little_poison(analysis):
            inputs = reconstruct_inputs(analysis)
            means = [self._input_mean(analysis, group, inputs[group]) for group in groups]
            gammas = np.zeros(len(groups))
        else:
            means = [self.filtered_mean(analysis, group) for group in groups]
            gammas = np.array([analysis.solution(EMF, g).byzantine_fraction for g in groups])
        users = summary.users[groups] * (1 - gammas)
        variances = np.array([summary.plan.group_mechanisms[g].worst_variance for g in groups])
        weights = group_weights("optimal", summary.reports[groups] * (1 - gammas), users, variances)
        return float(weights @ np.array(means)), float(users.sum())

    def _input_mean(self, analysis: MeanAnalysis, group: int, inputs: Solution) -> float:
        """The robust average of a group's reconstructed inputs."""
        counts = inputs.honest * float(analysis.summary.reports[group])
        return self.average(analysis.counts[group].buckets.input_values, counts)


class EmfThenInliers(EmfFirst, InlierAverage):
    """EMF first, then the inliers: of reconstructed inputs, or of the reports that EMF leaves.

    >>> from unpoison import Plan, simulate
    >>> class Small(EmfThenInliers):
    ...     def inliers(self, values, counts):
    ...         return abs(values) < 2
    ...     def describe(self):
    ...         return "The mean of what is small and no poison."
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "point:C", 0.2, np.random.default_rng(1))
    >>> bool(abs(Small().mean(run.summary)) < 1)
    True
    """

    def filtered_mean(self, analysis: MeanAnalysis, group: int) -> float:
        """The mean of the inliers among the reports that EMF leaves of a group."""
        plan = analysis.summary.plan
        values = plan.group_mechanisms[group].decoded_cells()
        kept = self.inlier_counts(values, analysis.honest_cells(EMF, group))
        return mean_of(plan, [group], kept[None])


def reconstruct_inputs(analysis: MeanAnalysis) -> dict[int, Solution]:
    """The inputs of each group by EMF* with γ̂ = 0, which is EM that trusts everybody.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), "none", 0, np.random.default_rng(1))
    >>> inputs = reconstruct_inputs(MeanAnalysis(run.summary, [0], FilterOptions()))
    >>> round(float(inputs[0].honest.sum()), 6)
    1.0
    """
    problems = [
        analysis.counts[group].emf_star(np.zeros_like(analysis.supports[group]), 0.0)
        for group in analysis.groups
    ]
    solutions = maximise(problems, analysis.options.max_iterations)
    return dict(zip(analysis.groups, solutions, strict=True))


def _analyses(summary: Summary) -> list[MeanAnalysis]:
    """One analysis a tier, of the groups that have enough reports for EM."""
    plan, enough = summary.plan, summary.reports >= MIN_REPORTS
    tiers = [plan.tier_groups(tier) for tier in range(len(plan.all_tiers))]
    present = [[group for group in tier if enough[group]] for tier in tiers]
    if not any(present):
        most = int(summary.reports.max())
        raise NotEnoughData(
            f"EMF needs a group of at least {MIN_REPORTS} reports; the largest has {most}"
        )
    return [MeanAnalysis(summary, groups, FilterOptions()) for groups in present if groups]
