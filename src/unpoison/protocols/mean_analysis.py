"""The analysis of numbers: a poisoned side, and a mean for each group."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from unpoison.filters.em import GroupCounts, Probe, Problem, Solution, Stages, probing, run_stages
from unpoison.protocols.scheme_analysis import SchemeAnalysis
from unpoison.types import BoolArray, FloatArray


class MeanAnalysis(SchemeAnalysis):
    """Probes both sides (Alg. 3), and takes means of what the poison leaves.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = MeanAnalysis(run.summary, [0, 1], FilterOptions())
    >>> analysis.place(), analysis.mean("emf-star", 1) < 0
    ({'side': 'right'}, True)
    """

    @cached_property
    def probe(self) -> Probe:
        """Stage 3: the poisoned side, γ̂ and ŷ."""
        (probe,) = run_stages([self._probing()], self.options.max_iterations)
        return probe

    def probing(self) -> Stages[None]:
        """EMF on both sides, unless it was run."""
        if "probe" not in vars(self):
            self.probe = yield from self._probing()

    def _probing(self) -> Stages[Probe]:
        group = self.probing_group
        means = self.options.initial_means(self.summary, group)
        return probing(self.counts[group], means, self.options.side_rule)

    @cached_property
    def supports(self) -> dict[int, BoolArray]:
        """The buckets of each group that poison may be in, given the probed side."""
        side = self.probe.side
        means = {g: self.options.initial_means(self.summary, g)[side] for g in self.groups}
        return {g: self.counts[g].support(side, means[g]) for g in self.groups}

    def starred(self, group: int) -> Problem:
        """EMF* (Alg. 4): γ̂ is imposed."""
        gamma = self.probe.byzantine_fraction
        return self.counts[group].emf_star(self.supports[group], gamma)

    def concentrated(self, group: int, emf: Solution) -> Problem:
        """CEMF*: γ̂ is imposed on the buckets that are left."""
        gamma, factor = self.probe.byzantine_fraction, self.options.suppression
        return self.counts[group].cemf_star(self.supports[group], gamma, emf.poison, factor)

    def mean(self, scheme: str, group: int) -> float:
        """The group's mean, normalised: M_t (Eq. M_t), or by EMS where reports are biased (SW)."""
        if self._unbiased:
            return self._decoded_mean(scheme, group)
        return self._smoothed(scheme)[group].mean_of(self.counts[group].buckets.input_values)

    def statistic(self, scheme: str, group: int) -> FloatArray:
        """The mean as a vector."""
        return np.array([self.mean(scheme, group)])

    def place(self) -> dict[str, Any]:
        """The probed side, under the name that an Estimate has for it."""
        return {"side": self.probe.side}

    def evidence(self) -> dict[str, Any]:
        """Log-likelihood and variance of x̂ with poison on either side."""
        solutions = self.probe.solutions
        return {
            "log_likelihood": {side: run.likelihood for side, run in solutions.items()},
            "honest_variance": {side: float(run.honest.var()) for side, run in solutions.items()},
        }

    def converged(self, scheme: str, group: int) -> bool:
        """Whether the group's EM run converged, and its EMS run where the mean comes from one."""
        done = super().converged(scheme, group)
        if self._unbiased:
            return done
        return done and self._smoothed(scheme)[group].converged

    def _decoded_mean(self, scheme: str, group: int) -> float:
        """The reports' sum less the poison's, over honest reports."""
        solution, counts = self.solution(scheme, group), self.counts[group]
        average = self.summary.decoded_average(group)
        removed = float(solution.poison @ counts.buckets.decoded_values)
        return (average - removed) / (1 - solution.byzantine_fraction)

    def _smoothed(self, scheme: str) -> dict[int, Solution]:
        """Section V-D: EMS on what the poison leaves, for all groups side by side."""
        self.solve([scheme])
        return self._smoothed_runs[scheme]

    def reading(self, scheme: str) -> Stages[None]:
        """EMS where reports are biased."""
        if not self._unbiased:
            filtered = [
                GroupCounts(self.counts[group].buckets, self.honest_counts(scheme, group))
                for group in self.groups
            ]
            runs = yield [counts.ems() for counts in filtered]
            self._smoothed_runs[scheme] = dict(zip(self.groups, runs, strict=True))

    @property
    def _unbiased(self) -> bool:
        return self.counts[self.groups[0]].buckets.mechanism.unbiased

    @cached_property
    def _smoothed_runs(self) -> dict[str, dict[int, Solution]]:
        return {}
