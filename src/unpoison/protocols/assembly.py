"""From what each tier says to one Estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unpoison.estimate import Byzantine, Estimate, GroupEstimate, Histogram, TierEstimate, numbers
from unpoison.protocols.analysis import Analysis
from unpoison.protocols.trust import trust_everybody
from unpoison.protocols.verdict import verdict
from unpoison.summary import Summary

TierResult = tuple[TierEstimate, list[GroupEstimate]]


def assemble(
    summary: Summary,
    method: str,
    results: list[TierResult],
    analyses: list[Analysis],
    fit: dict[str, Any],
) -> Estimate:
    """Combine tiers by their honest users (`weight`): a small budget is a choice, not chance.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions, aggregate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = Analysis(run.summary, [0, 1], FilterOptions())
    >>> result = aggregate(analysis, "emf", "optimal")
    >>> assemble(run.summary, "emf", [result], [analysis], {}).mean == result[0].mean
    True
    """
    honest = np.array([tier.weight for tier, _ in results])
    tiers = [
        replace(tier, weight=float(share))
        for (tier, _), share in zip(results, honest / honest.sum(), strict=True)
    ]
    groups = [group for _, details in results for group in details]
    mean = float(sum(tier.weight * tier.mean for tier in tiers))
    byzantine = _byzantine(summary, analyses)
    trusted = trust_everybody(summary, [analysis.groups for analysis in analyses])
    return Estimate(
        method=method,
        mean=mean,
        byzantine=byzantine,
        groups=tuple(groups),
        tiers=tuple(tiers),
        fit={**fit, "unfiltered_mean": trusted.mean, "agreement_p_value": trusted.p_value},
        converged=_all_converged(groups, analyses),
        users=summary.total_users,
        reports=int(summary.reports.sum()),
        invalid=summary.invalid,
        verdict=verdict(method, mean, byzantine, trusted, analyses[0]),
    )


def group_estimate(
    analysis: Analysis, scheme: str, group: int, mean: float, weight: float
) -> GroupEstimate:
    """One group's detail; `mean` is normalised.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> run = simulate(plan, np.full(2000, 3.0), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = Analysis(run.summary, [0, 1], FilterOptions())
    >>> group_estimate(analysis, "emf", 1, mean=-0.5, weight=0.25).mean
    2.5
    """
    summary, solution = analysis.summary, analysis.solution(scheme, group)
    return GroupEstimate(
        group=group,
        tier=analysis.tier,
        epsilon=summary.plan.all_groups[group].epsilon,
        users=float(summary.users[group]),
        reports=int(summary.reports[group]),
        mean=summary.plan.natural(float(mean)),
        weight=float(weight),
        byzantine_fraction=solution.byzantine_fraction,
        iterations=solution.iterations,
        converged=solution.converged,
        picture=analysis.picture(scheme, group),
    )


def probing_fit(analysis: Analysis) -> dict[str, Any]:
    """The evidence for each side, from the main tier's probing group.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.protocols import FilterOptions
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> likelihood = probing_fit(Analysis(run.summary, [0, 1], FilterOptions()))["log_likelihood"]
    >>> likelihood["right"] > likelihood["left"]
    True
    """
    solutions = analysis.probe.solutions
    return {
        "probing_group": analysis.probing_group,
        "side_rule": analysis.options.side_rule,
        "log_likelihood": {side: each.likelihood for side, each in solutions.items()},
        "honest_variance": {side: float(each.honest.var()) for side, each in solutions.items()},
    }


def _all_converged(groups: list[GroupEstimate], analyses: list[Analysis]) -> bool:
    """The groups' own runs, and those that the side and γ̂ rest on: both sides of every probe."""
    probed = (each for analysis in analyses for each in analysis.probe.solutions.values())
    return all(group.converged for group in groups) and all(each.converged for each in probed)


def _byzantine(summary: Summary, analyses: list[Analysis]) -> Byzantine:
    """γ̂ over all users, with the main tier's poison histogram."""
    users = np.array([summary.users[analysis.groups].sum() for analysis in analyses])
    gammas = np.array([analysis.probe.byzantine_fraction for analysis in analyses])
    sides = {analysis.probe.side for analysis in analyses}
    main = analyses[0]
    histogram = Histogram(
        group=main.probing_group,
        edges=numbers(main.counts[main.probing_group].buckets.output_edges),
        fractions=numbers(main.probe.solution.poison),
    )
    side = sides.pop() if len(sides) == 1 else "both"
    return Byzantine(float(users @ gammas / users.sum()), side, histogram)
