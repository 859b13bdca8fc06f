"""The joint estimator: one likelihood over all groups of a tier, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate.estimate import Estimate, WorstCase
from unpoison.estimate.finding import find_attackers
from unpoison.estimate.methods import FilterMethod, methods, unfit_method
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic
from unpoison.filters.joint import Interval, Intervals
from unpoison.plan import Plan
from unpoison.protocols import joint_constants
from unpoison.protocols.assembly import Assembly, combined_interval
from unpoison.protocols.joint_analysis import IntervalOf, JointAnalysis
from unpoison.protocols.joint_verdict import JointVerdict, much_wider
from unpoison.protocols.many_categories import estimate_many_categories
from unpoison.protocols.worst_case import (
    fewer_explain,
    other_explanations,
    ranges_by_share,
    worst_case_of,
)
from unpoison.summary import Summary
from unpoison.system.blas import single_threaded
from unpoison.types import FloatArray

JOINT = "joint"


@single_threaded
def estimate_joint(
    summary: Summary, options: FilterOptions | None = None, statistic: Statistic | None = None
) -> Estimate:
    """All groups of a tier together; tiers are combined by their honest users.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 50_000)
    >>> run = simulate(plan, values, "evasion:0.3", 0.2, np.random.default_rng(2))
    >>> answer = estimate_joint(run.summary)
    >>> low, high = answer.interval
    >>> low < run.truth < high, round(answer.byzantine.fraction, 2)
    (True, 0.2)
    """
    plan = summary.plan
    if not plan.one_group_a_user:
        raise unfit_method(plan, JOINT)
    tiers = summary.tiers_with_reports
    if not tiers:
        raise NotEnoughData("an estimate needs reports; received none")
    options = options or FilterOptions()
    if options.enrolled is not None and len(options.enrolled) != len(plan.all_groups):
        rule = f"must be {len(plan.all_groups)} numbers, one a group"
        raise InvalidParameter("enrolled", rule, len(options.enrolled))
    if len(plan.categories or ()) > joint_constants.MOST_CATEGORIES:
        return estimate_many_categories(
            summary, tiers, JOINT, statistic or Statistic.of(plan), options
        )
    analyses = [JointAnalysis(summary, groups, options) for groups in tiers]
    return estimate_of_analyses(analyses, statistic or Statistic.of(plan))


def estimate_of_analyses(analyses: Sequence[JointAnalysis], statistic: Statistic) -> Estimate:
    """The Estimate of a collection whose tiers have been analysed.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), rng=np.random.default_rng(1))
    >>> estimate_of_analyses([JointAnalysis(run.summary, range(4))], Statistic()).method
    'joint'
    """
    assembly = Assembly(analyses[0].summary, JOINT, analyses, statistic)
    plan, weights = assembly.summary.plan, assembly.weights
    worst_case = replace(
        worst_case_of(plan, analyses, weights),
        by_share=ranges_by_share(plan, analyses, weights, assembly.answer["mean"]),
    )
    interval = _interval(plan, analyses, weights, worst_case, Intervals.mean)
    with_noise = _interval(plan, analyses, weights, worst_case, Intervals.mean_with_noise)
    others = other_explanations(plan, analyses, weights, interval)
    fit = {
        **_evidence(analyses),
        **_frequency_intervals(plan, analyses, weights),
        **assembly.unfiltered_fit(),
        **_noise_evidence(interval, with_noise),
        "other_means": None if others is None else list(others),
        "fewer_attackers_explain": fewer_explain(analyses),
    }
    fit["doubt"] = fit["doubt"] or others is not None or fit["fewer_attackers_explain"]
    finding = find_attackers(
        assembly.byzantine.fraction,
        assembly.byzantine.interval,
        fit["doubt"],
        any(analysis.may_be_chance for analysis in analyses),
    )
    verdict = JointVerdict(assembly, analyses, interval, with_noise, worst_case, fit, finding)
    return assembly.estimate(fit, str(verdict), finding, interval, worst_case)


def _noise_evidence(interval: Interval | None, with_noise: Interval | None) -> dict[str, Any]:
    """The interval if a few users send noise, and whether that is much wider."""
    if interval is None or with_noise is None:
        return {}
    return {
        "interval_with_noise": list(with_noise),
        "noise_could_hide": much_wider(with_noise, interval),
    }


def _evidence(analyses: Sequence[JointAnalysis]) -> dict[str, Any]:
    """The main tier's evidence, with the most alarming p-value and flags of all tiers.

    The smallest of several p-values is multiplied by their number (Bonferroni).
    """
    tiers = [analysis.evidence() for analysis in analyses]
    p_values = ("goodness_of_fit_p_value", "nobody_attacks_p_value", "group_sizes_p_value")
    return {
        **tiers[0],
        **{name: min(1.0, len(tiers) * min(tier[name] for tier in tiers)) for name in p_values},
        "fits": all(tier["fits"] for tier in tiers),
        "client_faults": [fault for tier in tiers for fault in tier["client_faults"]],
        "doubt": any(tier["doubt"] for tier in tiers),
    }


def _interval(
    plan: Plan,
    analyses: Sequence[JointAnalysis],
    weights: FloatArray,
    worst_case: WorstCase,
    interval_of: IntervalOf,
) -> Interval | None:
    """The interval of the mean over all tiers; None for categories, which have one each.

    Where no model fits, it also covers the worst case; where attackers are the majority, it is the
    whole range.
    """
    if plan.categorical:
        return None
    if any(analysis.outvoted for analysis in analyses):
        return plan.bounds
    intervals = [part.interval_of_mean(interval_of) for part in analyses]
    ends = sorted(plan.natural(end) for end in combined_interval(intervals, weights))
    if not all(analysis.choice.fits for analysis in analyses):
        ends = sorted([*ends, *(worst_case.mean_range or plan.bounds)])
    lowest, highest = plan.bounds
    return max(ends[0], lowest), min(ends[-1], highest)


def _frequency_intervals(
    plan: Plan, analyses: Sequence[JointAnalysis], weights: FloatArray
) -> dict[str, Any]:
    """A 95 % interval for the frequency of each category."""
    if plan.categories is None:
        return {}
    intervals = {}
    for category, name in enumerate(plan.categories):
        indicator = (np.arange(len(plan.categories)) == category).astype(np.float64)
        tiers = [analysis.intervals.mean(indicator) for analysis in analyses]
        low, high = combined_interval(tiers, weights)
        intervals[name] = [max(low, 0.0), min(high, 1.0)]
    return {"frequency_intervals": intervals}


class JointMethod(FilterMethod):
    """The joint filter, as a method: the default wherever it fits.

    >>> methods["joint"].fits(Plan.new(epsilon=1.0, low=0, high=1))
    True
    """

    name = JOINT
    default_rank = 2  # above EMF*, the best of the paper's schemes
    option_names = ("attackers_at_most", "worst_case_shares", "enrolled", "max_iterations")

    def describe(self) -> str:
        """A few words for help texts."""
        return "our joint filter over all groups"

    def fits(self, plan: Plan, statistic: str | None = None) -> bool:
        """Whether users are in one group each."""
        return plan.one_group_a_user

    def answer(
        self, summary: Summary, options: FilterOptions | None, statistic: Statistic | None
    ) -> Estimate:
        """The Estimate of one collection."""
        return estimate_joint(summary, options, statistic)


methods.register(JOINT, order=1)(JointMethod())
