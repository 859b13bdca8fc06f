"""The assembler of Estimates: tiers combined by their honest users, for every method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.estimate.distribution import Distribution, mixture
from unpoison.estimate.estimate import Byzantine, Estimate, TierEstimate, WorstCase
from unpoison.estimate.postprocessing import post_process_named
from unpoison.estimate.statistic import DISTRIBUTION, Statistic
from unpoison.plan import Plan
from unpoison.protocols.analysis import Analysis
from unpoison.protocols.unfiltered import UnfilteredAnswer, unfiltered_answer
from unpoison.summary import Summary
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class Assembly:
    """One collection by one method: the tiers' results, and those of all users.

    Tiers are weighted by their honest users: a small personal budget is a choice, not chance, so
    tiers need not agree and every honest user counts alike.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import JointAnalysis
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analyses = [JointAnalysis(run.summary, [0, 1])]
    >>> assembly = Assembly(run.summary, "joint", analyses, Statistic())
    >>> assembly.estimate({}, "A verdict.", "unclear").mean == assembly.tiers[0].mean
    True
    """

    summary: Summary
    method: str
    analyses: Sequence[Analysis]
    statistic: Statistic

    @cached_property
    def weights(self) -> FloatArray:
        """The weights of the tiers: their shares of the honest users."""
        honest_users = np.array([analysis.honest_users for analysis in self.analyses])
        weights: FloatArray = honest_users / honest_users.sum()
        return weights

    @cached_property
    def tiers(self) -> tuple[TierEstimate, ...]:
        """The estimate of each tier, with its weight."""
        return tuple(
            analysis.tier_estimate(float(weight))
            for analysis, weight in zip(self.analyses, self.weights, strict=True)
        )

    @cached_property
    def answer(self) -> dict[str, Any]:
        """The mean or the post-processed frequencies, under the names that an Estimate has."""
        return combined_answer(self.tiers, self.statistic)

    @cached_property
    def byzantine(self) -> Byzantine:
        """γ̂ over all users, where the poison is, and the main tier's ŷ."""
        users = np.array(
            [self.summary.users[list(analysis.groups)].sum() for analysis in self.analyses]
        )
        shares = users / users.sum()
        return Byzantine(
            float(shares @ [analysis.byzantine_fraction for analysis in self.analyses]),
            interval=self._fraction_interval(shares),
            histogram=self.analyses[0].histogram(),
            **combined_place(self.summary.plan, [analysis.place() for analysis in self.analyses]),
        )

    def _fraction_interval(self, shares: FloatArray) -> tuple[float, float] | None:
        intervals = [analysis.fraction_interval() for analysis in self.analyses]
        present = [interval for interval in intervals if interval is not None]
        return combined_interval(present, shares) if len(present) == len(intervals) else None

    @cached_property
    def unfiltered(self) -> UnfilteredAnswer:
        """The answer without a filter, post-processed as the filtered one is."""
        reports = self.summary.reports
        tiers = [[g for g in analysis.groups if reports[g]] for analysis in self.analyses]
        return unfiltered_answer(self.summary, tiers).post_processed(self.statistic)

    def unfiltered_fit(self) -> dict[str, Any]:
        """The unfiltered answer and whether groups agree, as entries of the Estimate's fit."""
        return {**self.unfiltered.named(), "agreement_p_value": self.unfiltered.p_value}

    def estimate(
        self,
        fit: dict[str, Any],
        verdict: str,
        finding: str,
        interval: tuple[float, float] | None = None,
        worst_case: WorstCase | None = None,
    ) -> Estimate:
        """The whole Estimate; `fit` and the rest are what methods do not have in common."""
        groups = [detail for analysis in self.analyses for detail in analysis.group_estimates()]
        return Estimate(
            method=self.method,
            **self.answer,
            byzantine=replace(self.byzantine, finding=finding),
            interval=interval,
            worst_case=worst_case,
            groups=tuple(groups),
            tiers=self.tiers,
            fit=fit,
            converged=all(analysis.converged for analysis in self.analyses),
            users=self.summary.total_users,
            reports=int(self.summary.reports.sum()),
            invalid=self.summary.invalid,
            verdict=verdict,
            distribution=self.distribution,
            unit=self.summary.plan.unit,
        )

    @cached_property
    def distribution(self) -> Distribution | None:
        """The honest users' distribution over all tiers, where it was asked for."""
        if self.statistic.name != DISTRIBUTION:
            return None
        parts = [analysis.distribution() for analysis in self.analyses]
        return mixture(parts, self.weights.tolist())


def combined_answer(tiers: Sequence[TierEstimate], statistic: Statistic) -> dict[str, Any]:
    """The tiers' means or frequencies by weight, the latter post-processed.

    >>> parts = [TierEstimate(1.0, mean, 0.5, 0.0) for mean in (0.25, 0.75)]
    >>> combined_answer(parts, Statistic())
    {'mean': 0.5}
    """
    weights = np.array([tier.weight for tier in tiers])
    if tiers[0].frequencies is None:
        return {"mean": float(weights @ [tier.mean for tier in tiers])}
    raw = weights @ np.array([list((tier.frequencies or {}).values()) for tier in tiers])
    named = dict(zip(tiers[0].frequencies, raw.tolist(), strict=True))
    return {"mean": math.nan, "frequencies": post_process_named(named, statistic.post_processing)}


def combined_interval(
    intervals: Sequence[tuple[float, float]], weights: FloatArray
) -> tuple[float, float]:
    """Intervals of tiers with their weights, end by end.

    Ends are added because doubt about which model is true does not average out over tiers.

    >>> combined_interval([(0.0, 1.0), (1.0, 3.0)], np.array([0.5, 0.5]))
    (0.5, 2.0)
    """
    lows, highs = np.array(intervals).T
    return float(weights @ lows), float(weights @ highs)


def combined_place(plan: Plan, places: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The side, `both` where tiers differ; or all categories that some tier has poisoned.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> combined_place(plan, [{"side": "left"}, {"side": "right"}])
    {'side': 'both'}
    """
    if "side" in places[0]:
        sides = {place["side"] for place in places}
        return {"side": sides.pop() if len(sides) == 1 else "both"}
    poisoned = {name for place in places for name in place["categories"]}
    return {"categories": tuple(name for name in plan.categories or () if name in poisoned)}
