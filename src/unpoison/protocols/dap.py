"""The Differential Aggregation Protocol (Section V), its five stages as five steps.

The first two happen before a collector sees anything: 1. grouping (`unpoison.plan.assignment`), and
2. perturbation (`unpoison.reports.perturbation.perturb_group`). From a Summary on: 3. probing
(`SchemeAnalysis.probe`), 4. intra-group estimation (`SchemeAnalysis.statistic`), 5. inter-group
aggregation (`aggregate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from unpoison.estimate.estimate import Estimate
from unpoison.estimate.methods import Batch, FilterMethod, methods, unfit_method
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic
from unpoison.filters.em import run_stages
from unpoison.plan import Plan
from unpoison.protocols.assembly import Assembly
from unpoison.protocols.scheme_analysis import SCHEMES, SchemeAnalysis
from unpoison.protocols.scheme_result import SchemeResult
from unpoison.protocols.scheme_verdict import scheme_finding, verdict
from unpoison.protocols.tiers import tier_analyses
from unpoison.protocols.weights import group_weights
from unpoison.registry import check_name
from unpoison.summary import Summary

OF_JOINT_ALONE = ("attackers_at_most", "worst_case_shares", "enrolled")
SCHEME_OPTIONS = tuple(
    field.name for field in fields(FilterOptions) if field.name not in OF_JOINT_ALONE
)
"""Options of the schemes: all but those of the joint filter alone."""


def estimate_dap(
    summary: Summary,
    schemes: Sequence[str] = SCHEMES,
    options: FilterOptions | None = None,
    statistic: Statistic | None = None,
) -> dict[str, Estimate]:
    """Stages 3 to 5 for one or several schemes, which share their work.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 30_000)
    >>> run = simulate(plan, values, "uniform:3C/4,C", 0.2, np.random.default_rng(2))
    >>> bool(abs(estimate_dap(run.summary)["emf-star"].mean - run.truth) < 0.05)
    True
    """
    return estimate_dap_together([summary], schemes, options, statistic)[0]


def estimate_dap_together(
    summaries: Sequence[Summary],
    schemes: Sequence[str] = SCHEMES,
    options: FilterOptions | None = None,
    statistic: Statistic | None = None,
) -> list[dict[str, Estimate]]:
    """Stages 3 to 5 for several collections, whose EM runs share batches.

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
        if not summary.plan.one_group_a_user:
            raise unfit_method(summary.plan, "one of the schemes of DAP")
    options = options or FilterOptions()
    analyses = [tier_analyses(summary, options) for summary in summaries]
    # All EM runs are started before any answer is read: that is what lets them share batches.
    stages = [analysis.stages(schemes) for tiers in analyses for analysis in tiers]
    run_stages(stages, options.max_iterations)
    return [
        {scheme: _estimate(summary, scheme, tiers, options, statistic) for scheme in schemes}
        for summary, tiers in zip(summaries, analyses, strict=True)
    ]


def aggregate(analysis: SchemeAnalysis, scheme: str, weight_rule: str) -> SchemeResult:
    """Stage 5: combine the statistics of a tier's groups (Alg. 5).

    >>> from unpoison import simulate
    >>> from unpoison.protocols import analysis_of
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> analysis = analysis_of(run.summary, [0, 1], FilterOptions())
    >>> result = aggregate(analysis, "emf", "optimal")
    >>> mean = sum(group.weight * group.mean for group in result.group_estimates())
    >>> bool(np.isclose(result.tier_estimate(1.0).mean, mean))
    True
    """
    summary, plan, groups = analysis.summary, analysis.summary.plan, analysis.groups
    fractions = [analysis.solution(scheme, group).byzantine_fraction for group in groups]
    honest = 1 - np.array(fractions)
    honest_users = summary.users[groups] * honest
    variances = np.array([plan.group_mechanisms[group].worst_variance for group in groups])
    weights = group_weights(weight_rule, summary.reports[groups] * honest, honest_users, variances)
    statistics = [analysis.statistic(scheme, group) for group in groups]
    return SchemeResult(
        analysis=analysis,
        scheme=scheme,
        statistics=statistics,
        weights=weights,
        combined=weights @ np.array(statistics),
        honest_users=float(honest_users.sum()),
    )


def _estimate(
    summary: Summary,
    scheme: str,
    analyses: list[SchemeAnalysis],
    options: FilterOptions,
    statistic: Statistic | None,
) -> Estimate:
    tiers = [aggregate(analysis, scheme, options.weights) for analysis in analyses]
    assembly = Assembly(summary, scheme, tiers, statistic or Statistic.of(summary.plan))
    fit = {**tiers[0].evidence(), "weights": options.weights, **assembly.unfiltered_fit()}
    return assembly.estimate(
        fit, verdict(assembly, analyses[0]), scheme_finding(assembly, analyses[0])
    )


@dataclass(frozen=True)
class Scheme(FilterMethod):
    """One of the paper's filters in DAP; all three share probing and EMF's runs.

    >>> methods["emf-star"].describe()
    "the paper's EMF*"
    """

    name: str
    label: str
    default_rank: int = 0
    aliases: tuple[str, ...] = ()

    option_names = SCHEME_OPTIONS
    of_the_paper = True

    @property
    def family(self) -> str:
        """The family of the three schemes: EMF is run once, EMF* takes its γ̂, CEMF* its ŷ."""
        return "dap"

    def describe(self) -> str:
        """The scheme's name in the paper."""
        return f"the paper's {self.label}"

    def fits(self, plan: Plan, statistic: str | None = None) -> bool:
        """Whether users are in one group each."""
        return plan.one_group_a_user

    def answer(
        self, summary: Summary, options: FilterOptions | None, statistic: Statistic | None
    ) -> Estimate:
        """Stages 3 to 5 by this scheme alone."""
        return estimate_dap(summary, [self.name], options, statistic)[self.name]

    def run(self, batch: Batch) -> list[dict[str, Estimate]]:
        """Estimate all collections by all schemes in common EM batches."""
        return estimate_dap_together(batch.summaries, batch.names, batch.options, batch.statistic)


# EMF* is the fallback where the joint filter does not fit (many categories): of the three it has
# the smallest error on most cells of the paper's grid (docs/evaluation.md).
methods.register("emf", order=2)(Scheme("emf", "EMF"))
methods.register("emf-star", order=3)(Scheme("emf-star", "EMF*", default_rank=1, aliases=("emf*",)))
methods.register("cemf-star", order=4)(Scheme("cemf-star", "CEMF*", aliases=("cemf*",)))
