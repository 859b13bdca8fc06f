"""Stages 3 and 4 of DAP for the users of one budget: probing, then a statistic of each group.

The three schemes share their work: EMF is run once for all, and problems that do not wait for one
another run side by side in one EM batch, with those of other tiers and other collections. Numbers
and categories differ only in where poison may be (a side, or located categories) and in what is
read off the rest (a mean, or frequencies).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from unpoison.estimate import Picture
from unpoison.estimate.estimate import numbers
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import named
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import GroupCounts, Problem, Solution, Stages, run_stages
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray

SCHEMES = ("emf", "emf-star", "cemf-star")
PICTURE_BINS = 64
"""Bins of a plotted group: wide enough that noise does not hide the shape."""


class ProbeResult(Protocol):
    """The result of probing: EMF with poison where it seems to be, and all runs it rests on."""

    @property
    def solution(self) -> Solution:
        """EMF with poison where it seems to be."""

    @property
    def byzantine_fraction(self) -> float:
        """The estimated share of attackers, γ̂."""

    @property
    def runs(self) -> list[Solution]:
        """Every EM run that was made to find it."""


class SchemeAnalysis(ABC):
    """The filters on one tier's groups; `groups` are their numbers in the summary.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0, 1], FilterOptions())
    >>> analysis.probing_group, analysis.probe.side
    (1, 'right')
    """

    def __init__(self, summary: Summary, groups: Iterable[int], options: FilterOptions) -> None:
        self.summary = summary
        self.options = options
        self.groups = list(groups)
        self.tier = summary.plan.tier_of(self.groups[0])
        self.counts = {group: GroupCounts.of(summary, group) for group in self.groups}
        self._solved: dict[str, dict[int, Solution]] = {}
        self._ready: set[str] = set()

    @property
    def probing_group(self) -> int:
        """The group with the smallest ε: the side and γ̂ come from it and serve all groups."""
        budgets = [self.summary.plan.all_groups[group].epsilon for group in self.groups]
        return self.groups[int(np.argmin(budgets))]

    @property
    @abstractmethod
    def probe(self) -> ProbeResult:
        """Stage 3: where the poison is, γ̂ and ŷ."""

    @property
    @abstractmethod
    def supports(self) -> dict[int, BoolArray]:
        """The buckets of each group that poison may be in, given what was probed."""

    @abstractmethod
    def starred(self, group: int) -> Problem:
        """EMF*: what was probed is imposed on the group."""

    @abstractmethod
    def concentrated(self, group: int, emf: Solution) -> Problem:
        """CEMF*: EMF* without the buckets in which `emf` has little poison."""

    @abstractmethod
    def statistic(self, scheme: str, group: int) -> FloatArray:
        """The statistic of a group's honest users, as a vector that can be averaged over groups."""

    def named(self, statistic: FloatArray) -> dict[str, Any]:
        """A statistic in natural units, under the names that an Estimate has for it."""
        return named(self.summary.plan, statistic)

    @abstractmethod
    def place(self) -> dict[str, Any]:
        """The place of the poison, under the name that an Estimate has for it."""

    @abstractmethod
    def evidence(self) -> dict[str, Any]:
        """The numbers that the choice of side or categories rests on."""

    def probing(self) -> Stages[None]:
        """The EM runs that `probe` rests on, where these can go on beside others."""
        yield from ()

    def reading(self, scheme: str) -> Stages[None]:
        """The EM runs that a scheme's `statistic` needs after the filter."""
        yield from ()

    def solve(self, schemes: Iterable[str]) -> None:
        """Run the EM problems that the schemes need and that have not been run yet."""
        run_stages([self.stages(schemes)], self.options.max_iterations)

    def stages(self, schemes: Iterable[str]) -> Stages[None]:
        """Probing, then EMF and EMF* together, then CEMF*, then what statistics need."""
        wanted = set(schemes) - self._ready
        if not wanted:
            return
        yield from self.probing()
        problems: dict[tuple[str, int], Problem] = {}
        if wanted & {"emf", "cemf-star"} and "emf" not in self._solved:
            others = [group for group in self.groups if group != self.probing_group]
            problems |= {("emf", g): self.counts[g].emf(self.supports[g]) for g in others}
            self._solved["emf"] = {self.probing_group: self.probe.solution}
        if "emf-star" in wanted:
            problems |= {("emf-star", g): self.starred(g) for g in self.groups}
        yield from self._filtering(problems)
        if "cemf-star" in wanted:
            emf = self._solved["emf"]
            last = {("cemf-star", g): self.concentrated(g, emf[g]) for g in self.groups}
            yield from self._filtering(last)
        self._ready |= wanted
        for scheme in sorted(wanted):
            yield from self.reading(scheme)

    def solution(self, scheme: str, group: int) -> Solution:
        """x̂ and ŷ of one group."""
        self.solve([scheme])
        return self._solved[scheme][group]

    def honest_counts(self, scheme: str, group: int) -> FloatArray:
        """The group's bucket counts without the poison that the scheme finds."""
        counts, poison = self.counts[group].counts, self.solution(scheme, group).poison
        honest: FloatArray = np.maximum(counts - counts.sum() * poison, 0.0)
        return honest

    def honest_cells(self, scheme: str, group: int) -> FloatArray:
        """The group's cell counts without the poison, taken evenly from a bucket's cells."""
        counts, honest = self.counts[group], self.honest_counts(scheme, group)
        occupied = counts.counts > 0
        share = np.divide(honest, counts.counts, out=np.zeros_like(honest), where=occupied)
        cells: FloatArray = self.summary.counts[group] * np.repeat(
            share, counts.buckets.cell_widths
        )
        return cells

    def converged(self, scheme: str, group: int) -> bool:
        """Whether all EM runs of a group converged."""
        return self.solution(scheme, group).converged

    def picture(self, scheme: str, group: int) -> Picture:
        """The group's reports and the fit, in bins wide enough to look at."""
        solution, counts = self.solution(scheme, group), self.counts[group]
        honest = counts.buckets.transition.forward(solution.honest)
        observed = counts.counts / counts.counts.sum()
        return picture_of(counts.buckets, observed, honest, solution.poison)

    def _filtering(self, problems: dict[tuple[str, int], Problem]) -> Stages[None]:
        solutions = yield list(problems.values())
        for (scheme, group), solution in zip(problems, solutions, strict=True):
            self._solved.setdefault(scheme, {})[group] = solution


def picture_of(
    buckets: Buckets, observed: FloatArray, honest: FloatArray, poison: FloatArray
) -> Picture:
    """Heights of buckets, added up to bins that are wide enough to look at.

    >>> from unpoison.mechanisms import make
    >>> buckets, heights = Buckets(make("piecewise", 1.0), 128, 8), np.full(128, 1 / 128)
    >>> len(picture_of(buckets, heights, heights, np.zeros(128)).observed)
    64
    """
    bins = min(PICTURE_BINS, buckets.outputs)
    edges = np.arange(bins + 1) * buckets.outputs // bins
    parts = [numbers(np.add.reduceat(part, edges[:-1])) for part in (observed, honest, poison)]
    return Picture(numbers(buckets.output_edges[edges]), *parts)
