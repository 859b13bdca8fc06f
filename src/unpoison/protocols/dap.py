"""The Differential Aggregation Protocol (Section V), its five stages as five steps.

The first two happen before a collector sees anything: 1. grouping (`unpoison.grouping`), and 2.
perturbation (`unpoison.reports.perturb_group`). From a Summary on: 3. probing (`Analysis.probe`),
4. intra-group estimation (`Analysis.mean`), 5. inter-group aggregation (`aggregate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.estimate import Estimate, TierEstimate
from unpoison.plan import Plan
from unpoison.protocols.analysis import SCHEMES, Analysis, analyses
from unpoison.protocols.assembly import TierResult, assemble, group_estimate, probing_fit
from unpoison.protocols.options import FilterOptions
from unpoison.protocols.weights import group_weights
from unpoison.registry import check_name
from unpoison.summary import Summary


def estimate_dap(
    summary: Summary, schemes: Sequence[str] = SCHEMES, options: FilterOptions | None = None
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
    options = options or FilterOptions()
    tiers = analyses(summary, options)
    for analysis in tiers:
        analysis.solve(schemes)
    return {scheme: _estimate(summary, scheme, tiers, options) for scheme in schemes}


def aggregate(analysis: Analysis, scheme: str, weights: str) -> TierResult:
    """Stage 5: combine the group means of one tier (Alg. 5).

    >>> from unpoison import simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> tier, groups = aggregate(Analysis(run.summary, [0, 1], FilterOptions()), "emf", "optimal")
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
    means = np.array([analysis.mean(scheme, g) for g in groups])
    details = [
        group_estimate(analysis, scheme, group, means[place], shares[place])
        for place, group in enumerate(groups)
    ]
    combined = TierEstimate(
        epsilon=plan.all_tiers[analysis.tier].epsilon,
        mean=plan.natural(float(shares @ means)),
        weight=float(honest_users.sum()),
        byzantine_fraction=analysis.probe.byzantine_fraction,
        side=analysis.probe.side,
    )
    return combined, details


def _estimate(
    summary: Summary, scheme: str, tiers: list[Analysis], options: FilterOptions
) -> Estimate:
    results = [aggregate(analysis, scheme, options.weights) for analysis in tiers]
    fit = {**probing_fit(tiers[0]), "weights": options.weights}
    return assemble(summary, scheme, results, tiers, fit)


def _require_dap(plan: Plan) -> None:
    if plan.protocol != "dap":
        rule = "must be baseline or a defence for a baseline plan"
        raise InvalidParameter("method", rule, "one of the schemes of DAP")
    if plan.categorical:
        raise InvalidParameter("method", "must be one that takes categories", plan.mechanism)
