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
from unpoison.plan import Plan
from unpoison.protocols.analysis import SCHEMES, Analysis
from unpoison.protocols.assembly import (
    TierResult,
    assemble,
    group_estimate,
    probing_fit,
    tier_estimate,
)
from unpoison.protocols.options import FilterOptions
from unpoison.protocols.tiers import analyses
from unpoison.protocols.weights import group_weights
from unpoison.registry import check_name
from unpoison.statistic import Statistic
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
    for scheme in schemes:
        check_name("method", scheme, SCHEMES)
    _require_dap(summary.plan)
    options, asked = options or FilterOptions(), asked or Statistic.of(summary.plan)
    tiers = analyses(summary, options)
    for analysis in tiers:
        analysis.solve(schemes)
    return {scheme: _estimate(summary, scheme, tiers, options, asked) for scheme in schemes}


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
