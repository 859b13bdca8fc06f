"""The analysis of categories: poisoned ones are located, and frequencies taken of each group."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.estimate.options import FilterOptions
from unpoison.filters.em import Located, Problem, Solution, locate
from unpoison.mechanisms import CategoricalMechanism
from unpoison.protocols.scheme_analysis import SchemeAnalysis
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray


class FrequencyAnalysis(SchemeAnalysis):
    """Locates poisoned categories in the probing group; poison is restricted to them everywhere.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions
    >>> plan = Plan.new("k-rr", 0.5, min_epsilon=0.25, categories=["tea", "coffee", "milk"])
    >>> drinks = np.repeat(["tea", "coffee", "milk"], [5000, 3000, 2000])
    >>> run = simulate(plan, drinks, "targets:milk", 0.2, np.random.default_rng(1))
    >>> analysis = FrequencyAnalysis(run.summary, [0, 1], FilterOptions())
    >>> analysis.place()
    {'categories': ('milk',)}
    """

    def __init__(self, summary: Summary, groups: Iterable[int], options: FilterOptions) -> None:
        super().__init__(summary, groups, options)
        for name in ("initial_mean", "gamma_sup"):
            if getattr(options, name) != getattr(FilterOptions(), name):
                rule = "goes with numbers: categories have no mean"
                raise InvalidParameter(name, rule, getattr(options, name))

    @cached_property
    def probe(self) -> Located:
        """Stage 3: the poisoned categories, γ̂ and ŷ."""
        options = self.options
        return locate(self.counts[self.probing_group], options.side_rule, options.max_iterations)

    @cached_property
    def supports(self) -> dict[int, BoolArray]:
        """The located categories, in every group."""
        support = np.zeros(self.summary.plan.cells, dtype=bool)
        support[list(self.probe.categories)] = True
        return dict.fromkeys(self.groups, support)

    def starred(self, group: int) -> Problem:
        """EMF*: the poison of each category is imposed, as the probing group has it.

        With one poisoned category this is Alg. 4. With several, a group by itself cannot tell how
        their poison is split (moving it between them leaves the likelihood as it is if their honest
        frequencies move too), but the group with the smallest ε hardly sees honest frequencies.
        """
        return self.counts[group].with_fixed_poison(self.probe.solution.poison)

    def concentrated(self, group: int, emf: Solution) -> Problem:
        """CEMF*: the same on the categories that are left, with the same total."""
        probed, factor = self.probe.solution, self.options.suppression
        gamma, counts = probed.byzantine_fraction, self.counts[group]
        unsuppressed = counts.unsuppressed(self.supports[group], gamma, emf.poison, factor)
        poison = np.where(unsuppressed, probed.poison, 0.0)
        return counts.with_fixed_poison(poison * (gamma / poison.sum()) if poison.any() else poison)

    def statistic(self, scheme: str, group: int) -> FloatArray:
        """The honest users' frequencies, unbiased: some may be negative."""
        return self.debiased(group, self.solution(scheme, group).poison)

    def debiased(self, group: int, poison: FloatArray) -> FloatArray:
        """((s − ŷ)/(1 − γ̂) − other)/(kept − other): the shares left, decoded; they sum to 1."""
        mechanism = cast(CategoricalMechanism, self.counts[group].buckets.mechanism)
        counts = self.counts[group].counts
        honest = (counts / counts.sum() - poison) / (1 - poison.sum())
        return mechanism.decode(honest)

    def place(self) -> dict[str, Any]:
        """The names of the poisoned categories."""
        names = self.summary.plan.categories or ()
        return {"categories": tuple(names[category] for category in self.probe.categories)}

    def evidence(self) -> dict[str, Any]:
        """Deviances of the counts from honest reports alone, and with the poison found."""
        without_poison, with_poison = self.probe.deviances
        return {
            "deviance": {
                "none": without_poison,
                "found": with_poison,
                "allowed": self.probe.allowed,
            },
            "chosen_by_rule": self.probe.ruled,
        }
