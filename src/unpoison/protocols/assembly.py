"""From what each tier says to one Estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unpoison.estimate import Byzantine, Estimate, GroupEstimate, Histogram, TierEstimate
from unpoison.estimate.distribution import Distribution, mixture
from unpoison.estimate.estimate import numbers
from unpoison.estimate.honest_reports import distribution_of
from unpoison.estimate.postprocessing import post_process_named
from unpoison.estimate.statistic import DISTRIBUTION, Statistic
from unpoison.protocols.scheme_analysis import Analysis
from unpoison.protocols.scheme_verdict import verdict
from unpoison.protocols.unfiltered import Trust, trust_everybody
from unpoison.summary import Summary
from unpoison.types import FloatArray

TierResult = tuple[TierEstimate, list[GroupEstimate]]


def assemble(
    summary: Summary,
    method: str,
    results: list[TierResult],
    analyses: list[Analysis],
    fit: dict[str, Any],
    asked: Statistic,
) -> Estimate:
    """Combine tiers by their honest users (`weight`): a small budget is a choice, not chance.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, aggregate, analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0, 1], FilterOptions())
    >>> result = aggregate(analysis, "emf", "optimal")
    >>> assemble(run.summary, "emf", [result], [analysis], {}, Statistic()).mean == result[0].mean
    True
    """
    honest = np.array([tier.weight for tier, _ in results])
    tiers = [
        replace(tier, weight=float(share))
        for (tier, _), share in zip(results, honest / honest.sum(), strict=True)
    ]
    groups = [group for _, details in results for group in details]
    answer = answer_of(tiers, asked)
    byzantine = _byzantine(summary, analyses)
    trusted = trusted_of(summary, [analysis.groups for analysis in analyses], asked)
    return Estimate(
        method=method,
        **answer,
        byzantine=byzantine,
        groups=tuple(groups),
        tiers=tuple(tiers),
        fit={**fit, **unfiltered(trusted), "agreement_p_value": trusted.p_value},
        converged=_all_converged(groups, analyses),
        users=summary.total_users,
        reports=int(summary.reports.sum()),
        invalid=summary.invalid,
        verdict=verdict(method, answer, byzantine, trusted, analyses[0]),
        distribution=_distribution(method, tiers, analyses, asked),
    )


def group_estimate(
    analysis: Analysis, scheme: str, group: int, statistic: FloatArray, weight: float
) -> GroupEstimate:
    """One group's detail; `statistic` is normalised.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> run = simulate(plan, np.full(2000, 3.0), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0, 1], FilterOptions())
    >>> group_estimate(analysis, "emf", 1, np.array([-0.5]), weight=0.25).mean
    2.5
    """
    summary, solution = analysis.summary, analysis.solution(scheme, group)
    return GroupEstimate(
        group=group,
        tier=analysis.tier,
        epsilon=summary.plan.all_groups[group].epsilon,
        users=float(summary.users[group]),
        reports=int(summary.reports[group]),
        **analysis.named(statistic),
        weight=float(weight),
        byzantine_fraction=solution.byzantine_fraction,
        iterations=solution.iterations,
        converged=analysis.converged(scheme, group),
        picture=analysis.picture(scheme, group),
    )


def tier_estimate(analysis: Analysis, statistic: FloatArray, honest_users: float) -> TierEstimate:
    """What one tier says; `statistic` is normalised, its weight are the honest users.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, analysis_of
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=10)
    >>> run = simulate(plan, np.full(2000, 3.0), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0], FilterOptions())
    >>> tier_estimate(analysis, np.array([0.5]), 100.0).mean
    7.5
    """
    return TierEstimate(
        epsilon=analysis.summary.plan.all_tiers[analysis.tier].epsilon,
        **analysis.named(statistic),
        weight=honest_users,
        byzantine_fraction=analysis.probe.byzantine_fraction,
        **analysis.place(),
    )


def probing_fit(analysis: Analysis) -> dict[str, Any]:
    """The evidence for where the poison is, from the main tier's probing group.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> fit = probing_fit(analysis_of(run.summary, [0, 1], FilterOptions()))
    >>> fit["log_likelihood"]["right"] > fit["log_likelihood"]["left"]
    True
    """
    return {
        "probing_group": analysis.probing_group,
        "side_rule": analysis.options.side_rule,
        **analysis.evidence(),
    }


def answer_of(tiers: Sequence[TierEstimate], asked: Statistic) -> dict[str, Any]:
    """The tiers' means or frequencies by weight, the latter post-processed.

    >>> parts = [TierEstimate(1.0, mean, 0.5, 0.0) for mean in (0.25, 0.75)]
    >>> answer_of(parts, Statistic())
    {'mean': 0.5}
    """
    weights = np.array([tier.weight for tier in tiers])
    if tiers[0].frequencies is None:
        return {"mean": float(weights @ [tier.mean for tier in tiers])}
    raw = weights @ np.array([list((tier.frequencies or {}).values()) for tier in tiers])
    named = dict(zip(tiers[0].frequencies, raw.tolist(), strict=True))
    return {"mean": math.nan, "frequencies": post_process_named(named, asked.post_processing)}


def trusted_of(summary: Summary, tiers: Sequence[Sequence[int]], asked: Statistic) -> Trust:
    """What everybody together says, post-processed as the answer is; `tiers` are their groups.

    >>> from unpoison import Plan, simulate
    >>> run = simulate(Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1), np.full(5000, 0.5))
    >>> bool(abs(trusted_of(run.summary, [[0]], Statistic()).mean - 0.5) < 0.2)
    True
    """
    trusted = trust_everybody(summary, [list(groups) for groups in tiers])
    if trusted.frequencies is None:
        return trusted
    processed = post_process_named(trusted.frequencies, asked.post_processing)
    return replace(trusted, frequencies=processed)


def unfiltered(trusted: Trust) -> dict[str, Any]:
    """What everybody together says, under the name that an Estimate's fit has for it.

    >>> unfiltered(Trust(0.5, 1.0))
    {'unfiltered_mean': 0.5}
    """
    if trusted.frequencies is None:
        return {"unfiltered_mean": trusted.mean}
    return {"unfiltered_frequencies": trusted.frequencies}


def _distribution(
    method: str, tiers: list[TierEstimate], analyses: list[Analysis], asked: Statistic
) -> Distribution | None:
    """What EMS finds behind the reports that the filter leaves, tier by tier."""
    if asked.name != DISTRIBUTION:
        return None
    scheme = "emf" if method == "baseline" else method
    parts = [_tier_distribution(analysis, scheme) for analysis in analyses]
    return mixture(parts, [tier.weight for tier in tiers])


def _tier_distribution(analysis: Analysis, scheme: str) -> Distribution:
    kept = np.stack([analysis.kept_cells(scheme, group) for group in analysis.groups])
    bound = analysis.options.max_iterations
    return distribution_of(analysis.summary.plan, analysis.groups, kept, bound)


def _all_converged(groups: list[GroupEstimate], analyses: list[Analysis]) -> bool:
    """The groups' own runs, and those that the poison's place and γ̂ rest on."""
    probed = (run for analysis in analyses for run in analysis.probe.runs)
    return all(group.converged for group in groups) and all(run.converged for run in probed)


def _byzantine(summary: Summary, analyses: list[Analysis]) -> Byzantine:
    """γ̂ over all users, with the main tier's poison histogram."""
    users = np.array([summary.users[analysis.groups].sum() for analysis in analyses])
    gammas = np.array([analysis.probe.byzantine_fraction for analysis in analyses])
    main = analyses[0]
    histogram = Histogram(
        group=main.probing_group,
        edges=numbers(main.counts[main.probing_group].buckets.output_edges),
        fractions=numbers(main.probe.solution.poison),
    )
    fraction = float(users @ gammas / users.sum())
    return Byzantine(
        fraction, histogram=histogram, **place_of(summary, [each.place() for each in analyses])
    )


def place_of(summary: Summary, places: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The side, `both` where tiers differ; or all categories that some tier has poisoned.

    >>> from unpoison import Plan
    >>> empty = Summary.empty(Plan.new(epsilon=1.0, low=0, high=1))
    >>> place_of(empty, [{"side": "left"}, {"side": "right"}])
    {'side': 'both'}
    """
    if "side" in places[0]:
        sides = {place["side"] for place in places}
        return {"side": sides.pop() if len(sides) == 1 else "both"}
    found = {name for place in places for name in place["categories"]}
    names = summary.plan.categories or ()
    return {"categories": tuple(name for name in names if name in found)}
