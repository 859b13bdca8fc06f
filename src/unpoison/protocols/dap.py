"""The Differential Aggregation Protocol (Section V), its five stages as five steps.

The first two happen before a collector sees anything: 1. grouping (`unpoison.grouping`), and 2.
perturbation (`unpoison.reports.perturb_group`). From a Summary on: 3. probing (`Analysis.probe`),
4. intra-group estimation (`Analysis.statistic`), 5. inter-group aggregation (`aggregate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.estimate import Estimate
from unpoison.estimate.statistic import Statistic
from unpoison.filters.em import run_stages
from unpoison.plan import Plan
from unpoison.protocols.assembly import (
    TierResult,
    assemble,
    group_estimate,
    probing_fit,
    tier_estimate,
)
from unpoison.protocols.options import FilterOptions
from unpoison.protocols.scheme_analysis import SCHEMES, Analysis
from unpoison.protocols.tiers import analyses
from unpoison.protocols.weights import group_weights
from unpoison.registry import check_name
from unpoison.summary import Summary


def estimate_dap(
    summary: Summary,
    schemes: Sequence[str] = SCHEMES,
    options: FilterOptions | None = None,
    asked: Statistic | None = None,
) -> dict[str, Estimate]:
    """Stages 3 to 5 for one or several schemes, which share their work.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 30_000)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.2, np.random.default_rng(2))
    >>> bool(abs(estimate_dap(run.summary)["emf-star"].mean - run.truth) < 0.05)
    True
    """
    return estimate_dap_together([summary], schemes, options, asked)[0]


def estimate_dap_together(
    summaries: Sequence[Summary],
    schemes: Sequence[str] = SCHEMES,
    options: FilterOptions | None = None,
    asked: Statistic | None = None,
) -> list[dict[str, Estimate]]:
    """The same for several collections, whose EM runs share batches.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(5000, 0.3)
    >>> runs = [simulate(plan, values, rng=np.random.default_rng(seed)) for seed in (1, 2)]
    >>> together = estimate_dap_together([run.summary for run in runs], ["emf"])
    >>> together[1]["emf"] == estimate_dap(runs[1].summary, ["emf"])["emf"]
    True
    """
    for scheme in schemes:
        check_name("method", scheme, SCHEMES)
    for summary in summaries:
        _require_dap(summary.plan)
    options = options or FilterOptions()
    tiers = [analyses(summary, options) for summary in summaries]
    works = [analysis.stages(schemes) for each in tiers for analysis in each]
    run_stages(works, options.max_iterations)
    return [
        {
            scheme: _estimate(summary, scheme, each, options, asked or Statistic.of(summary.plan))
            for scheme in schemes
        }
        for summary, each in zip(summaries, tiers, strict=True)
    ]


def aggregate(analysis: Analysis, scheme: str, weights: str) -> TierResult:
    """Stage 5: combine what the groups of one tier say (Alg. 5).

    >>> from unpoison import simulate
    >>> from unpoison.protocols import analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0, 1], FilterOptions())
    >>> tier, groups = aggregate(analysis, "emf", "optimal")
    >>> bool(np.isclose(tier.mean, sum(group.weight * group.mean for group in groups)))
    True
    """
    summary, plan = analysis.summary, analysis.summary.plan
    groups = analysis.groups
    gammas = np.array([analysis.solution(scheme, g).byzantine_fraction for g in groups])
    honest_reports = summary.reports[groups] * (1 - gammas)
    honest_users = summary.users[groups] * (1 - gammas)
    variances = np.array([plan.group_mechanisms[g].worst_variance for g in groups])
    shares = group_weights(weights, honest_reports, honest_users, variances)
    statistics = np.array([analysis.statistic(scheme, g) for g in groups])
    details = [
        group_estimate(analysis, scheme, group, statistics[place], shares[place])
        for place, group in enumerate(groups)
    ]
    return tier_estimate(analysis, shares @ statistics, float(honest_users.sum())), details


def _estimate(
    summary: Summary,
    scheme: str,
    tiers: list[Analysis],
    options: FilterOptions,
    asked: Statistic,
) -> Estimate:
    results = [aggregate(analysis, scheme, options.weights) for analysis in tiers]
    fit = {**probing_fit(tiers[0]), "weights": options.weights}
    return assemble(summary, scheme, results, tiers, fit, asked)


def _require_dap(plan: Plan) -> None:
    if plan.protocol != "dap":
        rule = "must be baseline or a defence for a baseline plan"
        raise InvalidParameter("method", rule, "one of the schemes of DAP")
