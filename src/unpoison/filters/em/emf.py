"""EMF, EMF*, CEMF* and EMS as problems for the EM loop."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unpoison.filters.buckets import Buckets
from unpoison.filters.em.loop import Problem, tolerance
from unpoison.filters.em.steps import Free, Given, Imposed, Smoothed, Step
from unpoison.filters.sides import SIDES
from unpoison.registry import check_name
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray

DEFAULT_SUPPRESSION = 0.5
ROUNDING = 1e-9


@dataclass(frozen=True)
class GroupCounts:
    """One group of a summary in buckets: c_i, with the transition that explains them.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.2, np.random.default_rng(1))
    >>> group = GroupCounts.of(run.summary, 1)
    >>> group.buckets.outputs, float(group.counts.sum()), int(group.support("right", 0.0).sum())
    (44, 2000.0, 22)
    """

    buckets: Buckets
    counts: FloatArray

    @classmethod
    def of(cls, summary: Summary, group: int) -> GroupCounts:
        """The group's counts in √N buckets."""
        mechanism = summary.plan.group_mechanisms[group]
        buckets = Buckets.for_reports(mechanism, int(summary.reports[group]))
        return cls(buckets, buckets.count(summary.counts[group]))

    def support(self, side: str, initial_mean: float) -> BoolArray:
        """The buckets where poison may be: the last (left: first) ⌈d'(C−O')/2C⌉."""
        check_name("side", side, SIDES)
        mechanism, outputs = self.buckets.mechanism, self.buckets.outputs
        width = mechanism.output_high - mechanism.output_low
        right = (mechanism.output_high - float(mechanism.place(np.array(initial_mean)))) / width
        share = right if side == "right" else 1 - right
        size = min(max(math.ceil(outputs * share - ROUNDING), 1), outputs)
        places = np.arange(outputs)
        return places >= outputs - size if side == "right" else places < size

    def emf(self, support: BoolArray) -> Problem:
        """EMF (Alg. 2): poison free on its support."""
        return self._problem(support, Free())

    def emf_star(self, support: BoolArray, byzantine_fraction: float) -> Problem:
        """EMF* (Alg. 4): the total of the poison imposed."""
        return self._problem(support, Imposed(byzantine_fraction))

    def cemf_star(
        self,
        support: BoolArray,
        byzantine_fraction: float,
        found: FloatArray,
        suppression: float = DEFAULT_SUPPRESSION,
    ) -> Problem:
        """CEMF*: as EMF*, without the buckets in which EMF `found` less than 0.5 γ̂/(d'/2).

        Where that would leave no bucket at all, none is suppressed.
        """
        kept = self.unsuppressed(support, byzantine_fraction, found, suppression)
        return self.emf_star(kept, byzantine_fraction)

    def unsuppressed(
        self, support: BoolArray, byzantine_fraction: float, found: FloatArray, suppression: float
    ) -> BoolArray:
        """The buckets of the support that CEMF* keeps."""
        threshold = suppression * byzantine_fraction / (self.buckets.outputs / 2)
        kept = support & (found >= threshold)
        return kept if kept.any() else support

    def given(self, poison: FloatArray) -> Problem:
        """Poison that is known bucket by bucket; only x̂ is sought."""
        return replace(self._problem(poison > 0, Given(poison)), poison=poison)

    def ems(self) -> Problem:
        """EM with smoothing and no poison: the histogram behind reports that are trusted."""
        return self._problem(np.zeros(self.buckets.outputs, dtype=bool), Smoothed())

    def _problem(self, support: BoolArray, step: Step) -> Problem:
        """Line 1 of Alg. 2: every bucket starts alike."""
        start = 1.0 / (self.buckets.inputs + support.sum())
        honest = np.full(self.buckets.inputs, start)
        stop = tolerance(self.buckets.mechanism.epsilon)
        poison = np.where(support, start, 0.0)
        return Problem(self.buckets.transition, self.counts, honest, poison, step, stop)
