"""Stages 3 and 4 of DAP for the users of one budget: probing, then a mean for each group.

The three schemes share their work: EMF is run once for all, and problems that do not wait for one
another run side by side in one EM batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from unpoison.errors import NotEnoughData
from unpoison.estimate import Picture, numbers
from unpoison.filters import GroupCounts, Probe, Problem, Solution, maximise, probe
from unpoison.protocols.options import FilterOptions
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray

SCHEMES = ("emf", "emf-star", "cemf-star")
PICTURE_BINS = 64


class Analysis:
    """The filters on one tier's groups; `groups` are their numbers in the summary.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = Analysis(run.summary, [0, 1], FilterOptions())
    >>> analysis.probing_group, analysis.probe.side
    (1, 'right')
    """

    def __init__(self, summary: Summary, groups: Iterable[int], options: FilterOptions) -> None:
        self.summary = summary
        self.options = options
        self.groups = list(groups)
        self.tier = next(
            tier
            for tier in range(len(summary.plan.all_tiers))
            if self.groups[0] in summary.plan.tier_groups(tier)
        )
        self.counts = {group: GroupCounts.of(summary, group) for group in self.groups}
        self._solved: dict[str, dict[int, Solution]] = {}

    @property
    def probing_group(self) -> int:
        """The group with the smallest ε: the side and γ̂ come from it and serve all groups."""
        budgets = [self.summary.plan.all_groups[group].epsilon for group in self.groups]
        return self.groups[int(np.argmin(budgets))]

    @cached_property
    def probe(self) -> Probe:
        """Stage 3: the poisoned side, γ̂ and ŷ."""
        group = self.probing_group
        means = self.options.initial_means(self.summary, group)
        rule, bound = self.options.side_rule, self.options.max_iterations
        return probe(self.counts[group], means, rule, bound)

    @cached_property
    def supports(self) -> dict[int, BoolArray]:
        """Where poison may be in each group, given the probed side."""
        side = self.probe.side
        means = {g: self.options.initial_means(self.summary, g)[side] for g in self.groups}
        return {g: self.counts[g].support(side, means[g]) for g in self.groups}

    def solve(self, schemes: Iterable[str]) -> None:
        """Run what the schemes need and has not been run: EMF and EMF* together, then CEMF*."""
        wanted = set(schemes) - set(self._solved)
        problems: dict[tuple[str, int], Problem] = {}
        gamma = self.probe.byzantine_fraction
        if wanted & {"emf", "cemf-star"} and "emf" not in self._solved:
            others = [group for group in self.groups if group != self.probing_group]
            problems |= {("emf", g): self.counts[g].emf(self.supports[g]) for g in others}
            self._solved["emf"] = {self.probing_group: self.probe.solution}
        if "emf-star" in wanted:
            for group in self.groups:
                problem = self.counts[group].emf_star(self.supports[group], gamma)
                problems["emf-star", group] = problem
        self._run(problems)
        if "cemf-star" in wanted:
            found = self._solved["emf"]
            self._run({("cemf-star", g): self._concentrated(g, found[g]) for g in self.groups})

    def solution(self, scheme: str, group: int) -> Solution:
        """x̂ and ŷ of one group."""
        self.solve([scheme])
        return self._solved[scheme][group]

    def mean(self, scheme: str, group: int) -> float:
        """M_t (Eq. M_t), normalised: the reports' sum less the poison's, over honest reports."""
        solution, counts = self.solution(scheme, group), self.counts[group]
        average = self.summary.decoded_average(group)
        removed = float(solution.poison @ counts.buckets.decoded_values)
        return (average - removed) / (1 - solution.byzantine_fraction)

    def picture(self, scheme: str, group: int) -> Picture:
        """The group's reports and the fit, in bins wide enough to look at."""
        solution, counts = self.solution(scheme, group), self.counts[group]
        buckets = counts.buckets
        bins = min(PICTURE_BINS, buckets.outputs)
        edges = np.arange(bins + 1) * buckets.outputs // bins

        def binned(heights: FloatArray) -> tuple[float, ...]:
            return numbers(np.add.reduceat(heights, edges[:-1]))

        return Picture(
            edges=numbers(buckets.output_edges[edges]),
            observed=binned(counts.counts / counts.counts.sum()),
            honest=binned(buckets.transition.forward(solution.honest)),
            poison=binned(solution.poison),
        )

    def _concentrated(self, group: int, found: Solution) -> Problem:
        gamma, factor = self.probe.byzantine_fraction, self.options.suppression
        return self.counts[group].cemf_star(self.supports[group], gamma, found.poison, factor)

    def _run(self, problems: dict[tuple[str, int], Problem]) -> None:
        solutions = maximise(list(problems.values()), self.options.max_iterations)
        for (scheme, group), solution in zip(problems, solutions, strict=True):
            self._solved.setdefault(scheme, {})[group] = solution


def analyses(summary: Summary, options: FilterOptions) -> list[Analysis]:
    """One analysis a tier; a tier that nobody is in has nothing to say.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1, min_epsilon=0.5, tiers=[{"epsilon": 0.25}])
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> [analysis.groups for analysis in analyses(run.summary, FilterOptions())]
    [[0, 1]]
    """
    plan, reports = summary.plan, summary.reports
    tiers = [plan.tier_groups(tier) for tier in range(len(plan.all_tiers))]
    present = [groups for groups in tiers if reports[list(groups)].any()]
    if not present:
        raise NotEnoughData("an estimate needs reports; received none")
    return [Analysis(summary, groups, options) for groups in present]
