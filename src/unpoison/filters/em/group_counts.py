"""One group's counts in buckets, and EMF, EMF*, CEMF* and EMS on them as problems for EM."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unpoison.filters.buckets import Buckets
from unpoison.filters.em.loop import Problem, tolerance
from unpoison.filters.em.m_steps import (
    FixedPoison,
    FreePoison,
    ImposedFraction,
    MStep,
    Smoothing,
)
from unpoison.filters.sides import SIDES
from unpoison.registry import check_name
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray

DEFAULT_SUPPRESSION = 0.5
"""Fraction of the even share γ̂/(d'/2) under which CEMF* suppresses a bucket (Section V-B)."""
ROUNDING = 1e-9
"""Taken off before ⌈⌉: d'/2 buckets must not become one more by an error in the last digit."""


@dataclass(frozen=True)
class GroupCounts:
    """Counts c_i of one group in its d' output buckets.

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
        """The group's counts in √N_t buckets."""
        mechanism = summary.plan.group_mechanisms[group]
        buckets = Buckets.for_reports(mechanism, int(summary.reports[group]))
        return cls(buckets, buckets.count(summary.counts[group]))

    def support(self, side: str, initial_mean: float) -> BoolArray:
        """The buckets where poison may be: the last (left: first) ⌈d'(C−O')/2C⌉ of d'.

        For O' = 0 these are the d'/2 of Alg. 2.
        """
        check_name("side", side, SIDES)
        mechanism, outputs = self.buckets.mechanism, self.buckets.outputs
        width = mechanism.output_high - mechanism.output_low
        position = float(mechanism.place(np.array(initial_mean)))
        right_share = (mechanism.output_high - position) / width
        share = right_share if side == "right" else 1 - right_share
        size = min(max(math.ceil(outputs * share - ROUNDING), 1), outputs)
        order = np.arange(outputs)
        return order >= outputs - size if side == "right" else order < size

    def emf(self, support: BoolArray) -> Problem:
        """EMF (Alg. 2): poison free on its support."""
        return self._problem(support, FreePoison())

    def emf_star(self, support: BoolArray, byzantine_fraction: float) -> Problem:
        """EMF* (Alg. 4): the total of the poison imposed."""
        return self._problem(support, ImposedFraction(byzantine_fraction))

    def cemf_star(
        self,
        support: BoolArray,
        byzantine_fraction: float,
        emf_poison: FloatArray,
        suppression: float = DEFAULT_SUPPRESSION,
    ) -> Problem:
        """CEMF* (Section V-B): as EMF*, without buckets whose ŷ by EMF is under 0.5 γ̂/(d'/2).

        Where that would leave no bucket at all, none is suppressed.
        """
        unsuppressed = self.unsuppressed(support, byzantine_fraction, emf_poison, suppression)
        return self.emf_star(unsuppressed, byzantine_fraction)

    def unsuppressed(
        self,
        support: BoolArray,
        byzantine_fraction: float,
        emf_poison: FloatArray,
        suppression: float,
    ) -> BoolArray:
        """The buckets of the support that CEMF* does not suppress."""
        threshold = suppression * byzantine_fraction / (self.buckets.outputs / 2)
        unsuppressed = support & (emf_poison >= threshold)
        return unsuppressed if unsuppressed.any() else support

    def with_fixed_poison(self, poison: FloatArray) -> Problem:
        """Poison that is known bucket by bucket; only x̂ is sought."""
        return replace(self._problem(poison > 0, FixedPoison(poison)), poison=poison)

    def ems(self) -> Problem:
        """EM with smoothing and no poison: the histogram behind reports that are trusted."""
        return self._problem(np.zeros(self.buckets.outputs, dtype=bool), Smoothing())

    def _problem(self, support: BoolArray, m_step: MStep) -> Problem:
        """Line 1 of Alg. 2: all x̂_k and ŷ_j start at 1/(d + number of poison buckets)."""
        start = 1.0 / (self.buckets.inputs + support.sum())
        honest = np.full(self.buckets.inputs, start)
        stop = tolerance(self.buckets.mechanism.epsilon)
        poison = np.where(support, start, 0.0)
        return Problem(self.buckets.transition, self.counts, honest, poison, m_step, stop)
