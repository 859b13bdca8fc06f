"""The baseline protocol (Section IV): every user reports twice, with ε_β and with ε_α."""

from __future__ import annotations

import numpy as np

from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate import Estimate
from unpoison.estimate.statistic import Statistic
from unpoison.protocols.assembly import (
    TierResult,
    assemble,
    group_estimate,
    probing_fit,
    tier_estimate,
)
from unpoison.protocols.frequency_analysis import FrequencyAnalysis
from unpoison.protocols.options import FilterOptions
from unpoison.protocols.scheme_analysis import Analysis
from unpoison.protocols.tiers import analyses
from unpoison.summary import Summary
from unpoison.types import FloatArray


def estimate_baseline(
    summary: Summary, options: FilterOptions | None = None, asked: Statistic | None = None
) -> Estimate:
    """M̃ of Section IV-D: probe at ε_α, subtract the same poison from the reports at ε_β.

    It rests on M_α = M_β, which holds only if both reports of an attacker carry the same value; an
    attacker who scales poison with C_α and C_β makes it absurd (see docs/guide.md).

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(protocol="baseline", epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 30_000)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.2, np.random.default_rng(2))
    >>> bool(abs(estimate_baseline(run.summary).mean - run.truth) < 0.2)
    True
    """
    plan = summary.plan
    if plan.protocol != "baseline":
        rule = "must be emf, emf-star or cemf-star for a dap plan, not baseline"
        raise InvalidParameter("method", rule, plan.protocol)
    options, asked = options or FilterOptions(), asked or Statistic.of(plan)
    tiers = analyses(summary, options)
    results = [_tier(analysis) for analysis in tiers]
    return assemble(summary, "baseline", results, tiers, probing_fit(tiers[0]), asked)


def _tier(analysis: Analysis) -> TierResult:
    summary = analysis.summary
    beta, alpha = analysis.groups
    if summary.reports[alpha] != summary.reports[beta]:
        raise NotEnoughData(
            "in the baseline every user reports in both groups; received "
            f"{summary.reports[beta]} and {summary.reports[alpha]} reports"
        )
    honest = _honest(analysis)
    details = [
        group_estimate(analysis, "emf", beta, honest, 1.0),
        group_estimate(analysis, "emf", alpha, analysis.statistic("emf", alpha), 0.0),
    ]
    users = float(summary.users[beta]) * (1 - analysis.probe.byzantine_fraction)
    return tier_estimate(analysis, honest, users), details


def _honest(analysis: Analysis) -> FloatArray:
    """The statistic at ε_β less the poison found at ε_α: the same categories, or values."""
    beta, _ = analysis.groups
    if isinstance(analysis, FrequencyAnalysis):
        return analysis.debiased(beta, analysis.probe.solution.poison)
    return np.array([_honest_mean(analysis)])


def _honest_mean(analysis: Analysis) -> float:
    """(Σ v'(β) − m̂·M_β)/(N − m̂), with M_β = M_α taken from ŷ(α); normalised.

    M_α = M_β is about values in the paper's report units, so the poison found at ε_α is carried
    over through these and decoded as a report at ε_β.
    """
    beta, alpha = analysis.groups
    found, buckets = analysis.probe, analysis.counts[alpha].buckets
    mechanism = analysis.summary.plan.group_mechanisms[beta]
    gamma = found.byzantine_fraction
    middles = (buckets.output_edges[1:] + buckets.output_edges[:-1]) / 2
    there = mechanism.place(buckets.mechanism.position(middles))
    values = mechanism.decode(there - 0.5 if mechanism.discrete else there)
    poison_mean = float(found.solution.poison @ values) / gamma if gamma > 0 else 0.0
    return (analysis.summary.decoded_average(beta) - gamma * poison_mean) / (1 - gamma)
