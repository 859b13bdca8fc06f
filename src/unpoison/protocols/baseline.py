"""The baseline protocol (Section IV): every user reports twice, with ε_β and with ε_α."""

from __future__ import annotations

import numpy as np

from unpoison.errors import NotEnoughData
from unpoison.estimate.estimate import Estimate
from unpoison.estimate.methods import FilterMethod, methods, unfit_method
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.plan.budgets import BASELINE
from unpoison.protocols.assembly import Assembly
from unpoison.protocols.dap import SCHEME_OPTIONS
from unpoison.protocols.frequency_analysis import FrequencyAnalysis
from unpoison.protocols.scheme_analysis import SchemeAnalysis
from unpoison.protocols.scheme_result import SchemeResult
from unpoison.protocols.scheme_verdict import scheme_finding, verdict
from unpoison.protocols.tiers import tier_analyses
from unpoison.summary import Summary
from unpoison.types import FloatArray


def estimate_baseline(
    summary: Summary, options: FilterOptions | None = None, statistic: Statistic | None = None
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
    if plan.one_group_a_user:
        raise unfit_method(plan, BASELINE)
    options = options or FilterOptions()
    analyses = tier_analyses(summary, options)
    tiers = [_tier(analysis) for analysis in analyses]
    assembly = Assembly(summary, BASELINE, tiers, statistic or Statistic.of(plan))
    fit = {**tiers[0].evidence(), **assembly.unfiltered_fit()}
    return assembly.estimate(
        fit, verdict(assembly, analyses[0]), scheme_finding(assembly, analyses[0])
    )


def _tier(analysis: SchemeAnalysis) -> SchemeResult:
    """EMF on one tier: the answer is that at ε_β, so the reports at ε_α weigh nothing."""
    summary = analysis.summary
    beta, alpha = analysis.groups
    if summary.reports[alpha] != summary.reports[beta]:
        raise NotEnoughData(
            "in the baseline every user reports in both groups; received "
            f"{summary.reports[beta]} and {summary.reports[alpha]} reports"
        )
    honest = _honest(analysis)
    return SchemeResult(
        analysis=analysis,
        scheme="emf",
        statistics=[honest, analysis.statistic("emf", alpha)],
        weights=np.array([1.0, 0.0]),
        combined=honest,
        honest_users=float(summary.users[beta]) * (1 - analysis.probe.byzantine_fraction),
    )


def _honest(analysis: SchemeAnalysis) -> FloatArray:
    """The statistic at ε_β less the poison found at ε_α: the same categories, or values."""
    beta, _ = analysis.groups
    if isinstance(analysis, FrequencyAnalysis):
        return analysis.debiased(beta, analysis.probe.solution.poison)
    return np.array([_honest_mean(analysis)])


def _honest_mean(analysis: SchemeAnalysis) -> float:
    """(Σ v'(β) − m̂·M_β)/(N − m̂), with M_β = M_α taken from ŷ(α); normalised.

    M_α = M_β is about values in the paper's report units, so the poison found at ε_α is carried
    over through these and decoded as a report at ε_β.
    """
    beta, alpha = analysis.groups
    probe, buckets = analysis.probe, analysis.counts[alpha].buckets
    mechanism = analysis.summary.plan.group_mechanisms[beta]
    gamma = probe.byzantine_fraction
    middles = (buckets.output_edges[1:] + buckets.output_edges[:-1]) / 2
    there = mechanism.place(buckets.mechanism.position(middles))
    # Discrete reports are cell numbers, half a cell left of the position they stand for.
    values = mechanism.decode(there - 0.5 if mechanism.discrete else there)
    poison_mean = float(probe.solution.poison @ values) / gamma if gamma > 0 else 0.0
    return (analysis.summary.decoded_average(beta) - gamma * poison_mean) / (1 - gamma)


class BaselineMethod(FilterMethod):
    """The paper's first protocol, as a method.

    >>> methods["baseline"].fits(Plan.new(epsilon=1.0, low=0, high=1))
    False
    """

    name = BASELINE
    default_rank = 1
    option_names = SCHEME_OPTIONS
    of_the_paper = True

    def describe(self) -> str:
        """A few words for help texts."""
        return "the paper's baseline, for baseline plans"

    def fits(self, plan: Plan, statistic: str | None = None) -> bool:
        """Whether every user reports with both budgets."""
        return not plan.one_group_a_user

    def answer(
        self, summary: Summary, options: FilterOptions | None, statistic: Statistic | None
    ) -> Estimate:
        """The Estimate of one baseline collection."""
        return estimate_baseline(summary, options, statistic)


methods.register(BASELINE, order=5)(BaselineMethod())
